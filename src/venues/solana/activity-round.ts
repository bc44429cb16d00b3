import { VenueError } from '../errors.ts';
import type { CallContext, RejectedRecord } from '../port.ts';
import type { Round } from './activity-position.ts';
import { readTokenAccounts } from './fetch-token-accounts.ts';
import { SOLANA } from './hosts.ts';
import { parseSignatures, type SignatureRow } from './parse-signatures.ts';
import type { RpcClient } from './rpc-client.ts';

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
