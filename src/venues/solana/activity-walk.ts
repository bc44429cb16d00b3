import { VenueError } from '../errors.ts';
import type { CallContext, RejectedRecord } from '../port.ts';
import type { WalletPage, WalletTransaction } from '../wallet-port.ts';
import { type ActivityPosition, type Round, readPosition, type Waiting } from './activity-position.ts';
import { SOLANA } from './hosts.ts';
import { parseSignatures, type SignatureRow } from './parse-signatures.ts';
import { readTokenAccounts } from './read-token-accounts.ts';
import { type ListedTransaction, readTransactions } from './read-transactions.ts';
import type { RpcClient } from './rpc-client.ts';

export interface ActivityWalkSettings {
  /** Signatures of one page, and at most so many transactions of it. */
  pageSize: number;
  /** Slots below the last round's end that are listed again: what a node took long to index is found there. */
  overlapSlots: number;
  /** How long a transaction that is listed but not served is asked for. */
  waitForMs: number;
  /** With more token accounts their own signatures are not read: what came to them shows as changed balances only. */
  maxTokenAccounts: number;
}

export const ACTIVITY_SETTINGS: ActivityWalkSettings = {
  pageSize: 20,
  // A minute, nearly.
  overlapSlots: 150,
  waitForMs: 24 * 3_600_000,
  maxTokenAccounts: 2_000,
};
/** Read before `sinceMs`, which is our clock's word and not the chain's. */
const SINCE_MARGIN_MS = 60_000;
const MAX_KNOWN = 1_000;
/** Token accounts of the first round: nobody knows yet which of them has changed since `sinceMs`. */
const MAX_FIRST_ACCOUNTS = 50;
/** A node that lists so many transactions without serving them has a fault of its own. */
const MAX_WAITING = 2_000;

interface Wallet {
  address: string;
  sinceMs: number;
}

interface ActivityPage extends WalletPage<WalletTransaction> {
  position: ActivityPosition;
  truncated?: string;
}

/**
 * The next page of a wallet's transactions. A round reads, newest first, the signatures of the owner and of those token
 * accounts whose amount has changed since the last round: a transfer into a token account does not name its owner. Also
 * of accounts that a transaction of this round has touched, where in and out may have left the amount as it was. A
 * round ends at the slot of its own look at the token accounts, so what happens meanwhile belongs to the next one.
 */
export async function readActivityPage(
  client: RpcClient,
  wallet: Wallet,
  stored: unknown,
  settings: ActivityWalkSettings,
  context: CallContext,
): Promise<ActivityPage> {
  const from = readPosition(stored);
  const begun = from.round ? { round: from.round } : await beginRound(client, wallet, from, settings, context);
  const retried = from.round ? [] : from.waiting.slice(0, settings.pageSize);
  const [account = wallet.address] = begun.round.queue;
  const page = await listPage(client, account, begun.round, settings, context);
  const sinceMs = from.slot === undefined ? wallet.sinceMs - SINCE_MARGIN_MS : undefined;
  const stopSlot = from.slot === undefined ? 0 : from.slot - settings.overlapSlots;
  const fresh = page.rows.filter((row) => row.slot >= stopSlot && !isBefore(row, sinceMs));
  const isEnd = page.isEnd || fresh.length < page.rows.length;

  const known = new Set([...from.known.map(([signature]) => signature), ...from.waiting.map((each) => each.signature)]);
  const nowMs = context.now();
  const wanted = fresh.filter(({ signature }) => !known.has(signature));
  const listed: ListedTransaction[] = wanted.map((row) => ({ ...row, atMs: row.atMs ?? nowMs, sinceMs: nowMs }));
  const read = await readTransactions(client, wallet.address, [...retried, ...listed], context.signal);

  const { missing, givenUp } = stillMissing(read.missing, nowMs - settings.waitForMs);
  const waiting = [...from.waiting.slice(retried.length), ...missing];
  if (waiting.length > MAX_WAITING) {
    const message = `the node lists ${waiting.length} transactions that it does not serve`;
    throw new VenueError(SOLANA, 'invalid_payload', message, { retryable: true });
  }
  const planned = withTouched(begun.round, read.touched, settings);
  const next = isEnd ? afterAccount(planned, account) : goOn(planned, page.rows);
  const position = advance(from, { begun: planned, next }, waiting, read.done, settings);
  return {
    records: read.records,
    rejected: [...page.rejected, ...read.rejected, ...givenUp],
    position,
    more: position.round !== undefined,
    ...(begun.truncated !== undefined && { truncated: begun.truncated }),
  };
}

function isBefore({ atMs }: SignatureRow, sinceMs: number | undefined): boolean {
  return sinceMs !== undefined && atMs !== undefined && atMs < sinceMs;
}

/** Looks at the token accounts: those whose amount is not what it was come after the owner. */
async function beginRound(
  client: RpcClient,
  { address }: Wallet,
  from: ActivityPosition,
  { maxTokenAccounts }: ActivityWalkSettings,
  { signal }: CallContext,
): Promise<{ round: Round; truncated?: string }> {
  const { slot, accounts } = await readTokenAccounts(client, address, signal);
  const begun = { slot, queue: [address], done: [] };
  if (accounts.length > maxTokenAccounts) {
    const truncated = `${accounts.length} token accounts: what does not name their owner shows in balances only`;
    return { round: begun, truncated };
  }
  const amounts = Object.fromEntries(accounts.map(({ account, raw }) => [account, String(raw)]));
  const before = from.amounts;
  // An account that is gone was closed by its owner: that transaction names both and is found with the owner's.
  const changed =
    before === undefined
      ? Object.keys(amounts).slice(0, MAX_FIRST_ACCOUNTS)
      : Object.keys(amounts).filter((account) => amounts[account] !== before[account]);
  return { round: { ...begun, queue: [address, ...changed], amounts } };
}

interface ListedPage {
  rows: SignatureRow[];
  rejected: RejectedRecord[];
  isEnd: boolean;
}

/**
 * One page of an account's signatures. Every page but the first begins with the last row of the page before: a node
 * that does not know that one answers with nothing, which would otherwise look like the end.
 */
async function listPage(
  client: RpcClient,
  account: string,
  { slot, before, anchor }: Round,
  { pageSize }: ActivityWalkSettings,
  { signal }: CallContext,
): Promise<ListedPage> {
  const query = { limit: pageSize, minContextSlot: slot, ...(before !== undefined && { before }) };
  const raw = await client.listSignatures(account, query, signal);
  const { listed, rejected } = parseSignatures(raw);
  if (raw.length > 0 && listed.length === 0) {
    const message = `no signature of ${raw.length} is readable: ${rejected[0]?.reason}, ${rejected[0]?.detail}`;
    throw new VenueError(SOLANA, 'invalid_payload', message, { retryable: true });
  }
  if (anchor !== undefined && !listed.some(({ signature }) => signature === anchor)) {
    throw new VenueError(SOLANA, 'invalid_payload', 'the node does not know the page before', { retryable: true });
  }
  const rows = listed.filter(({ signature }) => signature !== anchor);
  // With one row there is none before it to begin the next page with.
  return { rows, rejected, isEnd: rows.length === 0 || listed.length < 2 };
}

function goOn(round: Round, rows: readonly SignatureRow[]): Round {
  const last = rows.at(-1);
  const beforeLast = rows.at(-2)?.signature ?? round.anchor;
  if (last === undefined || beforeLast === undefined) throw new TypeError('a page that goes on has two rows');
  return { ...round, before: beforeLast, anchor: last.signature };
}

/** The round with this account done; undefined when it was the last. */
function afterAccount(round: Round, account: string): Round | undefined {
  const { before: _before, anchor: _anchor, ...rest } = round;
  const queue = round.queue.slice(1);
  return queue.length === 0 ? undefined : { ...rest, queue, done: [...round.done, account] };
}

/**
 * The round with the accounts that transactions of this page have touched, as far as it would not look at them
 * otherwise.
 */
function withTouched(round: Round, accounts: readonly string[], { maxTokenAccounts }: ActivityWalkSettings): Round {
  if (round.amounts === undefined) return round;
  const planned = new Set([...round.queue, ...round.done]);
  const added = [...new Set(accounts)].filter((each) => !planned.has(each)).slice(0, maxTokenAccounts);
  return { ...round, queue: [...round.queue, ...added] };
}

function stillMissing(
  waiting: readonly Waiting[],
  giveUpMs: number,
): { missing: Waiting[]; givenUp: RejectedRecord[] } {
  const isLost = ({ sinceMs }: Waiting) => sinceMs < giveUpMs;
  return {
    missing: waiting.filter((each) => !isLost(each)),
    givenUp: waiting.filter(isLost).map((each) => ({
      kind: 'wallets',
      recordId: each.signature,
      reason: 'transaction_unavailable',
      detail: 'listed by the node and never served',
      sample: JSON.stringify(each),
    })),
  };
}

/** The position after this page. When the round is over, all up to its slot has been read. */
function advance(
  from: ActivityPosition,
  { begun, next }: { begun: Round; next: Round | undefined },
  waiting: Waiting[],
  done: readonly [string, number][],
  { overlapSlots }: ActivityWalkSettings,
): ActivityPosition {
  const known = [...from.known, ...done];
  if (next !== undefined) return { ...from, known: newest(known, 0), waiting, round: next };
  const { slot, amounts } = begun;
  return { slot, ...(amounts && { amounts }), known: newest(known, slot - overlapSlots), waiting };
}

/** What is forgotten here is read again, which the store notices. */
function newest(known: readonly [string, number][], fromSlot: number): [string, number][] {
  const kept = known.filter(([, slot]) => slot >= fromSlot);
  return kept.sort(([, a], [, b]) => b - a).slice(0, MAX_KNOWN);
}
