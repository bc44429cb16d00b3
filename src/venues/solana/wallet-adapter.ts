import { VenueError } from '../errors.ts';
import type { VenueObserver } from '../observer.ts';
import type { CallContext } from '../port.ts';
import { createReport } from '../report.ts';
import type { WalletAdapter, WalletBalance, WalletPage } from '../wallet-port.ts';
import { type ActivityPosition, readPosition } from './activity-position.ts';
import { MintSums, parseLamports } from './amount.ts';
import { readTokenAccounts, type TokenAccounts } from './fetch-token-accounts.ts';
import { type ListedTransaction, readTransactions } from './fetch-transactions.ts';
import { SOL_DECIMALS, SOL_MINT, SOLANA, type SolanaHttpSettings } from './hosts.ts';
import { createRpcClient, PER_SECOND, type RpcClient, TOKEN_PROGRAMS } from './rpc-client.ts';
import {
  ACTIVITY_SETTINGS,
  type ActivityPage,
  type ActivityWalkSettings,
  afterAccount,
  type BegunRound,
  beginRound,
  continueRound,
  isBefore,
  listPage,
  readActivityPage,
  SINCE_MARGIN_MS,
  withTouched,
} from './walk-activity.ts';

/** Wallets from a Solana JSON-RPC node. The identity of a transaction is its signature. */
export function createSolanaWallets(options: {
  /** May contain a key in its path or its query. */
  url: string;
  http?: SolanaHttpSettings;
  activity?: Partial<ActivityWalkSettings>;
  observer?: VenueObserver;
  /** Milliseconds without requests after a node answered 403. */
  blockedPauseMs?: number;
}): WalletAdapter {
  const client = createRpcClient(options);
  const settings = { ...ACTIVITY_SETTINGS, ...options.activity };
  const report = createReport(SOLANA, options.observer);
  const budget = createRereadBudget(options.http?.requestsPerSecond ?? PER_SECOND, settings.pageSize);
  return {
    venue: SOLANA,
    async pollActivity(wallet, position, context) {
      const { truncated, ...page } = await readActivityPage(client, wallet, position, settings, context);
      report.truncated('wallets', truncated);
      return report.counted('wallets', page.records.length + page.rejected.length, page);
    },
    async rereadActivity(wallet, position, context) {
      if (!isRereadDue(position, settings) || !budget.isAvailable()) return undefined;
      const { truncated, ...page } = await readRereadPage({ client, budget, settings }, wallet, position, context);
      report.truncated('wallets', truncated);
      return report.counted('wallets', page.records.length + page.rejected.length, page);
    },
    pollBalances: (address, _position, context) => readBalances(client, address, context.signal),
    close: () => client.close(),
  };
}

const MAX_TRIES = 3;

/**
 * All balances of an owner, in one page: native lamports and wrapped SOL as one mint, the accounts of one mint added up. These reads happen
 * at several moments, and SOL that is wrapped between them would count twice or not at all. The lamports are therefore read before and
 * after, and the read is accepted only when they are equal.
 * @throws VenueError when the owner's lamports keep changing, or a token account is unreadable to its mint.
 */
async function readBalances(client: RpcClient, owner: string, signal: AbortSignal): Promise<WalletPage<WalletBalance>> {
  let before = await readLamports(client, owner, signal);
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const tokens = await readTokenAccounts(client, owner, signal);
    const after = await readLamports(client, owner, signal);
    if (before === after) {
      const { rejected } = tokens;
      return { records: balancesOf(after, tokens), rejected, position: null, more: false };
    }
    before = after;
  }
  throw unreadable('the balance changes during each read');
}

/**
 * The sums by mint. The mint of an unreadable account is skipped, because its sum would be wrong; its rejection names it. When even the
 * mint is unreadable, no sum is certain.
 */
function balancesOf(lamports: bigint, { accounts, rejected }: TokenAccounts): WalletBalance[] {
  const nameless = rejected.find(({ recordId }) => recordId === undefined);
  if (nameless) throw unreadable(`a token account cannot be read: ${nameless.reason}, ${nameless.detail}`);
  const left = new Set(rejected.map(({ recordId }) => recordId));
  const sums = new MintSums();
  if (!left.has(SOL_MINT)) sums.add(SOL_MINT, lamports, SOL_DECIMALS);
  for (const { account, mint, raw, decimals } of accounts) {
    if (left.has(mint) || sums.add(mint, raw, decimals)) continue;
    throw unreadable(`token account ${account}: its decimals differ from its mint`);
  }
  return sums.entries().map(toBalance);
}

function unreadable(message: string): VenueError {
  return new VenueError(SOLANA, 'invalid_payload', message, { retryable: true });
}

function toBalance({ mint, amount }: ReturnType<MintSums['entries']>[number]): WalletBalance {
  return { tokenMint: mint, amount, ...(mint === SOL_MINT && { tokenSymbol: 'SOL' }) };
}

async function readLamports(client: RpcClient, owner: string, signal: AbortSignal): Promise<bigint> {
  const { value } = await client.getBalance(owner, signal);
  const lamports = parseLamports(value);
  if (lamports !== null) return lamports;
  throw new VenueError(SOLANA, 'invalid_payload', 'getBalance: not a whole number below 2^53', { retryable: false });
}

/** With this many listed transactions that the node does not serve, the live walk comes first. */
const MAX_WAITING = 1_000;

interface RereadWallet {
  address: string;
  sinceMs: number;
  areStored(signatures: readonly string[]): Promise<ReadonlySet<string>>;
}

/**
 * Whether transactions since the watch began may have been rejected for a version that this release reads. The live walk comes first: its
 * round must be over.
 */
function isRereadDue(stored: unknown, { version }: ActivityWalkSettings): boolean {
  const { version: readVersion = -1, round, slot, waiting } = readPosition(stored, version);
  return readVersion < version && slot !== undefined && round === undefined && waiting.length < MAX_WAITING;
}

/**
 * The next page of the re-read: one round over the owner and every token account, back to `sinceMs`. A rejected signature does not name its
 * wallet, and the quarantine keeps a bounded number of them, so the walk does not depend on it. The walk reads every transaction that names
 * the owner, because a stored one may name a token account that is now closed. It skips stored ones that name a token account only. Call it
 * when `isRereadDue`.
 */
async function readRereadPage(
  reader: { client: RpcClient; budget: RereadBudget; settings: ActivityWalkSettings },
  wallet: RereadWallet,
  stored: unknown,
  context: CallContext,
): Promise<ActivityPage> {
  const { client, budget, settings } = reader;
  const { address, sinceMs } = wallet;
  const { reread, ...from } = readPosition(stored, settings.version);
  budget.take(reread ? 1 : 1 + TOKEN_PROGRAMS.length);
  const begun: BegunRound = reread
    ? { round: reread.round }
    : await beginRound(client, address, Object.keys, settings, context);
  const { round } = begun;
  const [account = address] = round.queue;
  const page = await listPage(client, account, round, settings, context);
  const fresh = page.rows.filter((row) => !isBefore(row, sinceMs - SINCE_MARGIN_MS));
  const isEnd = page.isEnd || fresh.length < page.rows.length;

  const nowMs = context.now();
  const isStored = await wallet.areStored(fresh.map(({ signature }) => signature));
  const waiting = new Set(from.waiting.map(({ signature }) => signature));
  const wanted = fresh.filter(({ signature }) => {
    return !waiting.has(signature) && (account === address || !isStored.has(signature));
  });
  const listed: ListedTransaction[] = wanted.map((row) => ({ ...row, atMs: row.atMs ?? nowMs, sinceMs: nowMs }));
  budget.take(listed.length);
  const read = await readTransactions(client, address, listed, settings.version, context);

  // Only the presence of amounts matters here: the live walk compares them.
  const known = round.amounts && { amounts: {} };
  const planned = withTouched({ ...round, ...known }, read.touched, settings);
  const next = isEnd ? afterAccount(planned, account) : continueRound(planned, page.rows);
  const missing = read.missing.filter(({ signature }) => !isStored.has(signature));
  const base: ActivityPosition = { ...from, waiting: [...from.waiting, ...missing] };
  return {
    records: read.records,
    rejected: [...page.rejected, ...read.rejected],
    position: next
      ? { ...base, reread: { version: settings.version, round: next } }
      : { ...base, version: settings.version },
    more: next !== undefined,
    ...(begun.truncated !== undefined && { truncated: begun.truncated }),
  };
}

/** The share of a node's rate for re-reads: the live walks have the rest. */
const SHARE = 0.25;

interface RereadBudget {
  /** Whether earlier re-reads have used no more than their share. */
  isAvailable(): boolean;
  /** Counts requests of a re-read. */
  take(requests: number): void;
}

/**
 * The share of a node's request rate for re-reads. A page is read at once or later, and never waits: a wallet is not leased while the share
 * fills up again.
 */
function createRereadBudget(hostRequestsPerSecond: number, burst: number): RereadBudget {
  const perMs = (hostRequestsPerSecond * SHARE) / 1_000;
  let taken = 0;
  let atMs = performance.now();
  const drain = () => {
    const nowMs = performance.now();
    taken = Math.max(0, taken - (nowMs - atMs) * perMs);
    atMs = nowMs;
  };
  return {
    isAvailable() {
      drain();
      return taken < burst;
    },
    take(requests) {
      drain();
      taken += requests;
    },
  };
}
