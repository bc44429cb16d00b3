import { VenueError } from '../errors.ts';
import type { CallContext, RejectedRecord } from '../port.ts';
import type { Round } from './activity-position.ts';
import { readTokenAccounts } from './fetch-token-accounts.ts';
import { SOLANA } from './hosts.ts';
import { parseSignatures, type SignatureRow } from './parse-signatures.ts';
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
  /** The highest transaction version that is requested and parsed. */
  version: number;
}

/** Read before `sinceMs`, which is our clock's word and not the chain's. */
export const SINCE_MARGIN_MS = 60_000;

/** True for a row that is older than the watch; a row without a time is not. */
export function isBefore({ atMs }: SignatureRow, sinceMs: number | undefined): boolean {
  return sinceMs !== undefined && atMs !== undefined && atMs < sinceMs;
}

/** A round at its start; `truncated` says why it cannot see everything. */
export interface BegunRound {
  round: Round;
  truncated?: string;
}

/** Reads the token accounts: `choose` names those whose own signatures are read, after the owner's. */
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
    const truncated = `${accounts.length} token accounts: what does not name their owner shows in balances only`;
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
 * One page of an account's signatures. Every page but the first begins with the last row of the page before: a node
 * that does not know that one answers with nothing, which would otherwise look like the end.
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
    throw new VenueError(SOLANA, 'invalid_payload', 'the node does not know the page before', { retryable: true });
  }
  const rows = listed.filter(({ signature }) => signature !== anchor);
  // With one row there is none before it to begin the next page with.
  return { rows, rejected, isEnd: rows.length === 0 || listed.length < 2 };
}

export function goOn(round: Round, rows: readonly SignatureRow[]): Round {
  const last = rows.at(-1);
  const beforeLast = rows.at(-2)?.signature ?? round.anchor;
  if (last === undefined || beforeLast === undefined) throw new TypeError('a page that goes on has two rows');
  return { ...round, before: beforeLast, anchor: last.signature };
}

/** The round with this account done; undefined when it was the last. */
export function afterAccount(round: Round, account: string): Round | undefined {
  const { before: _before, anchor: _anchor, ...rest } = round;
  const queue = round.queue.slice(1);
  return queue.length === 0 ? undefined : { ...rest, queue, done: [...round.done, account] };
}

/**
 * The round with the accounts that transactions of this page have touched, as far as it would not look at them
 * otherwise.
 */
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
