import { VenueError } from '../errors.ts';
import type { CallContext, RejectedRecord } from '../port.ts';
import type { WalletPage, WalletTransaction } from '../wallet-port.ts';
import { type ActivityPosition, type Round, readPosition, type Waiting } from './activity-position.ts';
import {
  type ActivityWalkSettings,
  afterAccount,
  beginRound,
  continueRound,
  isBefore,
  listPage,
  SINCE_MARGIN_MS,
  withTouched,
} from './activity-round.ts';
import { type ListedTransaction, readTransactions } from './fetch-transactions.ts';
import { SOLANA, TRANSACTION_VERSION } from './hosts.ts';
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
