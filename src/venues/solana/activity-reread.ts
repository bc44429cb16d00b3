import type { CallContext } from '../port.ts';
import { type ActivityPosition, readPosition } from './activity-position.ts';
import {
  type ActivityWalkSettings,
  afterAccount,
  type BegunRound,
  beginRound,
  continueRound,
  isBefore,
  listPage,
  SINCE_MARGIN_MS,
  withTouched,
} from './activity-round.ts';
import { type ListedTransaction, readTransactions } from './fetch-transactions.ts';
import type { RereadBudget } from './reread-budget.ts';
import { type RpcClient, TOKEN_PROGRAMS } from './rpc-client.ts';
import type { ActivityPage } from './walk-activity.ts';

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
export function isRereadDue(stored: unknown, { version }: ActivityWalkSettings): boolean {
  const { version: readVersion = -1, round, slot, waiting } = readPosition(stored, version);
  return readVersion < version && slot !== undefined && round === undefined && waiting.length < MAX_WAITING;
}

/**
 * The next page of the re-read: one round over the owner and every token account, back to `sinceMs`. A rejected signature does not name its
 * wallet, and the quarantine keeps a bounded number of them, so the walk does not depend on it. The walk reads every transaction that names
 * the owner, because a stored one may name a token account that is now closed. It skips stored ones that name a token account only. Call it
 * when `isRereadDue`.
 */
export async function readRereadPage(
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
