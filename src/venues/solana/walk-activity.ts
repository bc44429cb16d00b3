import { VenueError } from '../errors.ts';
import type { CallContext, RejectedRecord } from '../port.ts';
import type { WalletPage, WalletTransaction } from '../wallet-port.ts';
import { type ActivityPosition, type Round, readPosition, type Waiting } from './activity-position.ts';
import { readTokenAccounts } from './fetch-token-accounts.ts';
import { type ListedTransaction, readTransactions } from './fetch-transactions.ts';
import { SOLANA, TRANSACTION_VERSION } from './hosts.ts';
import { parseSignatures, type SignatureRow } from './parse-signatures.ts';
import type { RpcClient } from './rpc-client.ts';

export const ACTIVITY_SETTINGS: ActivityWalkSettings = {
  pageSize: 20,
  // About a minute.
  overlapSlots: 150,
  waitForMs: 24 * 3_600_000,
  maxTokenAccounts: 2_000,
  version: TRANSACTION_VERSION,
};
const MAX_KNOWN = 1_000;
/** Token accounts of the first round, in which all accounts may have changed since `sinceMs`. */
const MAX_FIRST_ACCOUNTS = 50;
/** A node that lists so many transactions without serving them is faulty. */
const MAX_WAITING = 2_000;

interface Wallet {
  address: string;
  sinceMs: number;
}

export interface ActivityPage extends WalletPage<WalletTransaction> {
  position: ActivityPosition;
  truncated?: string;
}

/**
 * The next page of a wallet's transactions. A round reads, newest first, the signatures of the owner and of the token accounts whose amount
 * changed since the last round: a transfer into a token account does not name its owner. It also reads accounts that a transaction of this
 * round touched, where in and out may have left the amount unchanged. A round ends at the slot of its own read of the token accounts, so
 * later transactions belong to the next one.
 */
export async function readActivityPage(
  client: RpcClient,
  wallet: Wallet,
  stored: unknown,
  settings: ActivityWalkSettings,
  context: CallContext,
): Promise<ActivityPage> {
  const from = readPosition(stored, settings.version);
  const choose = (amounts: Readonly<Record<string, string>>) => changedAccounts(from, amounts);
  const begun = from.round
    ? { round: from.round }
    : await beginRound(client, wallet.address, choose, settings, context);
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
  const all = [...retried, ...listed];
  const read = await readTransactions(client, wallet.address, all, settings.version, context);

  const { missing, givenUp } = stillMissing(read.missing, nowMs - settings.waitForMs);
  const waiting = [...from.waiting.slice(retried.length), ...missing];
  if (waiting.length > MAX_WAITING) {
    const message = `the node lists ${waiting.length} transactions that it does not serve`;
    throw new VenueError(SOLANA, 'invalid_payload', message, { retryable: true });
  }
  const planned = withTouched(begun.round, read.touched, settings);
  const next = isEnd ? afterAccount(planned, account) : continueRound(planned, page.rows);
  const position = advance(from, { begun: planned, next }, waiting, read.done, settings);
  return {
    records: read.records,
    rejected: [...page.rejected, ...read.rejected, ...givenUp],
    position,
    more: position.round !== undefined,
    ...(begun.truncated !== undefined && { truncated: begun.truncated }),
  };
}

/** An absent account was closed by its owner: that transaction names both and is found in the owner's list. */
function changedAccounts({ amounts: before }: ActivityPosition, amounts: Readonly<Record<string, string>>): string[] {
  const accounts = Object.keys(amounts);
  if (before === undefined) return accounts.slice(0, MAX_FIRST_ACCOUNTS);
  return accounts.filter((account) => amounts[account] !== before[account]);
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

/** The position after this page. When the round is over, everything up to its slot was read. */
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
  const { version, reread } = from;
  return {
    ...(version !== undefined && { version }),
    ...(reread && { reread }),
    slot,
    ...(amounts && { amounts }),
    known: newest(known, slot - overlapSlots),
    waiting,
  };
}

/** A signature that is forgotten here is read again, and the store recognises it. */
function newest(known: readonly [string, number][], fromSlot: number): [string, number][] {
  const kept = known.filter(([, slot]) => slot >= fromSlot);
  return kept.sort(([, a], [, b]) => b - a).slice(0, MAX_KNOWN);
}

export interface ActivityWalkSettings {
  /** Signatures of one page, which is also the maximum of its transactions. */
  pageSize: number;
  /** Slots below the last round's end that are listed again: this finds transactions that a node indexed late. */
  overlapSlots: number;
  /** Age at which a listed transaction that is not served is given up. */
  waitForMs: number;
  /** With more token accounts, their own signatures are not read: transfers to them appear as changed balances only. */
  maxTokenAccounts: number;
  /** The highest transaction version that is requested and parsed. */
  version: number;
}

/** Margin below `sinceMs`, which comes from this clock and not from the chain. */
export const SINCE_MARGIN_MS = 60_000;

/** True for a row that is older than the watch, and false for a row without a time. */
export function isBefore({ atMs }: SignatureRow, sinceMs: number | undefined): boolean {
  return sinceMs !== undefined && atMs !== undefined && atMs < sinceMs;
}

/** A round at its start; `truncated` is the reason when it cannot see everything. */
export interface BegunRound {
  round: Round;
  truncated?: string;
}

/** Reads the token accounts. `choose` returns those whose own signatures are read, after the owner's. */
export async function beginRound(
  client: RpcClient,
  address: string,
  choose: (amounts: Readonly<Record<string, string>>) => readonly string[],
  { maxTokenAccounts }: ActivityWalkSettings,
  { signal }: CallContext,
): Promise<BegunRound> {
  const { slot, accounts } = await readTokenAccounts(client, address, signal);
  const begun = { slot, queue: [address], done: [] };
  if (accounts.length > maxTokenAccounts) {
    const truncated = `${accounts.length} token accounts: transactions that do not name their owner change balances only`;
    return { round: begun, truncated };
  }
  const amounts = Object.fromEntries(accounts.map(({ account, raw }) => [account, String(raw)]));
  return { round: { ...begun, queue: [address, ...choose(amounts)], amounts } };
}

interface ListedPage {
  rows: SignatureRow[];
  rejected: RejectedRecord[];
  isEnd: boolean;
}

/**
 * One page of an account's signatures. Every page but the first begins with the last row of the previous page: a node that does not know
 * that row returns nothing, which would otherwise look like the end.
 */
export async function listPage(
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
    throw new VenueError(SOLANA, 'invalid_payload', 'the node does not know the previous page', { retryable: true });
  }
  const rows = listed.filter(({ signature }) => signature !== anchor);
  // A single row has no row before it, with which the next page would begin.
  return { rows, rejected, isEnd: rows.length === 0 || listed.length < 2 };
}

export function continueRound(round: Round, rows: readonly SignatureRow[]): Round {
  const last = rows.at(-1);
  const beforeLast = rows.at(-2)?.signature ?? round.anchor;
  if (last === undefined || beforeLast === undefined) throw new TypeError('a page that goes on has two rows');
  return { ...round, before: beforeLast, anchor: last.signature };
}

/** The round after this account; undefined after the last account. */
export function afterAccount(round: Round, account: string): Round | undefined {
  const { before: _before, anchor: _anchor, ...rest } = round;
  const queue = round.queue.slice(1);
  return queue.length === 0 ? undefined : { ...rest, queue, done: [...round.done, account] };
}

/** The round plus the accounts that transactions of this page touched, as far as it would not read them otherwise. */
export function withTouched(
  round: Round,
  accounts: readonly string[],
  { maxTokenAccounts }: ActivityWalkSettings,
): Round {
  if (round.amounts === undefined) return round;
  const planned = new Set([...round.queue, ...round.done]);
  const added = [...new Set(accounts)].filter((each) => !planned.has(each)).slice(0, maxTokenAccounts);
  return { ...round, queue: [...round.queue, ...added] };
}
