import { newId } from '../../../domain/values/ids.ts';
import { LEASE_ENDED, LeaseLostError, leaseEnd } from '../../db/leases.ts';
import { type Queryable, sql, type Tx } from '../../db/tx.ts';
import type { BacktestFiring, BacktestResult } from './backtest.ts';
import type { BacktestRequest } from './request.ts';

export const BACKTEST_STATES = ['queued', 'running', 'done', 'failed'] as const;
type BacktestState = (typeof BACKTEST_STATES)[number];

/** Why a backtest failed: it has more observations or markets than a job evaluates, or each attempt failed. */
export const BACKTEST_ERRORS = ['too_large', 'attempts_failed'] as const;
export type BacktestError = (typeof BACKTEST_ERRORS)[number];

/** Backtests of an account that have not ended. */
export const MAX_OPEN_BACKTESTS = 3;
/** An ended backtest can be read for this long. */
const BACKTESTS_KEPT_HOURS = 24;
/** A process that dies without a trace blocks its backtest for this long. It renews the lease with its progress. */
const LEASE_SECONDS = 30;
const MAX_ATTEMPTS = 3;

/** A stored backtest, for its owner. */
export interface StoredBacktest {
  pk: bigint;
  id: string;
  state: BacktestState;
  /** 0 to 1. */
  progress: number;
  result: BacktestResult | null;
  error: BacktestError | null;
  createdAt: Date;
  finishedAt: Date | null;
}

/** Serializes creations of one account, so that the number of open ones is exact. */
const LOCK_ACCOUNT = sql('lock_account_for_backtest', 'SELECT id FROM account WHERE id = $1 FOR NO KEY UPDATE');
const COUNT_OPEN = sql(
  'count_open_backtests',
  'SELECT count(*)::int AS open FROM alert_backtest WHERE account_id = $1 AND finished_at IS NULL',
);
const COLUMNS = 'pk, id, state, progress, result, error, created_at, finished_at';
const INSERT = sql(
  'insert_backtest',
  `INSERT INTO alert_backtest (id, account_id, request) VALUES ($1, $2, $3) RETURNING ${COLUMNS}`,
);

/** Stores a backtest for a job; null when the account has too many that have not ended. */
export async function createBacktest(
  tx: Tx,
  accountId: bigint,
  request: BacktestRequest,
): Promise<StoredBacktest | null> {
  await tx.query(LOCK_ACCOUNT, [accountId]);
  const [counted] = await tx.query<{ open: number }>(COUNT_OPEN, [accountId]);
  if ((counted?.open ?? 0) >= MAX_OPEN_BACKTESTS) return null;
  const [row] = await tx.query<Row>(INSERT, [newId('bt'), accountId, JSON.stringify(request)]);
  if (!row) throw new TypeError('the insert of a backtest returned no row');
  return toStored(row);
}

const FIND = sql('find_backtest', `SELECT ${COLUMNS} FROM alert_backtest WHERE account_id = $1 AND id = $2`);

type Row = Omit<StoredBacktest, 'result'> & { result: StoredResult | null };
/** A number beyond 2^53 would lose digits in JSON. */
type StoredFiring = Omit<BacktestFiring, 'n'> & { n: string };
type StoredResult = Omit<BacktestResult, 'firings' | 'corrections'> & {
  firings: StoredFiring[];
  corrections?: StoredFiring[] | undefined;
};

const fromStored = ({ n, ...firing }: StoredFiring): BacktestFiring => ({ ...firing, n: BigInt(n) });
const forStorage = ({ n, ...firing }: BacktestFiring): StoredFiring => ({ ...firing, n: String(n) });

function toStored({ result, ...row }: Row): StoredBacktest {
  if (result === null) return { ...row, result };
  return {
    ...row,
    result: { ...result, firings: result.firings.map(fromStored), corrections: result.corrections?.map(fromStored) },
  };
}

/** One backtest of an account; null when it is unknown or of another account. */
export async function findBacktest(db: Queryable, accountId: bigint, id: string): Promise<StoredBacktest | null> {
  const [row] = await db.query<Row>(FIND, [accountId, id]);
  return row ? toStored(row) : null;
}

const FREE = '(lease_until IS NULL OR lease_until < clock_timestamp())';
const DUE = sql(
  'due_backtests',
  `SELECT pk FROM alert_backtest WHERE finished_at IS NULL AND ${FREE} ORDER BY pk LIMIT $1`,
);

/** Backtests without a running process, oldest first. */
export async function dueBacktests(db: Queryable, limit: number): Promise<bigint[]> {
  return (await db.query<{ pk: bigint }>(DUE, [limit])).map(({ pk }) => pk);
}

/** The right of one process to run a backtest. */
export interface BacktestClaim {
  pk: bigint;
  token: string;
  request: BacktestRequest;
}

const GIVE_UP = sql(
  'give_up_backtest',
  `UPDATE alert_backtest SET state = 'failed', error = 'attempts_failed', finished_at = clock_timestamp(), ${LEASE_ENDED}
   WHERE pk = $1 AND finished_at IS NULL AND ${FREE} AND attempts >= ${MAX_ATTEMPTS}`,
);
const CLAIM = sql(
  'claim_backtest',
  `UPDATE alert_backtest SET state = 'running', attempts = attempts + 1, progress = 0, lease_token = $2,
     lease_until = ${leaseEnd(LEASE_SECONDS)}
   WHERE pk = $1 AND finished_at IS NULL AND ${FREE} RETURNING request`,
);

/** Takes a backtest; null when it has ended, or another process runs it. Each attempt starts at the beginning. */
export async function claimBacktest(db: Queryable, pk: bigint, token: string): Promise<BacktestClaim | null> {
  await db.query(GIVE_UP, [pk]);
  const [row] = await db.query<{ request: BacktestRequest }>(CLAIM, [pk, token]);
  return row ? { pk, token, request: row.request } : null;
}

const ADVANCE = sql(
  'advance_backtest',
  `UPDATE alert_backtest SET progress = $3, lease_until = ${leaseEnd(LEASE_SECONDS)} WHERE pk = $1 AND lease_token = $2 RETURNING pk`,
);

/**
 * Stores the finished share and renews the lease.
 * @throws LeaseLostError when another process took over.
 */
export async function advanceBacktest(db: Queryable, { pk, token }: BacktestClaim, progress: number): Promise<void> {
  const rows = await db.query(ADVANCE, [pk, token, progress]);
  if (rows.length === 0) throw new LeaseLostError('the backtest');
}

const FINISH = sql(
  'finish_backtest',
  `UPDATE alert_backtest SET state = CASE WHEN $3::jsonb IS NULL THEN 'failed' ELSE 'done' END, result = $3::jsonb,
     error = CASE WHEN $3::jsonb IS NULL THEN 'too_large' END, progress = CASE WHEN $3::jsonb IS NULL THEN progress ELSE 1 END,
     finished_at = clock_timestamp(), ${LEASE_ENDED}
   WHERE pk = $1 AND lease_token = $2`,
);

/** Stores the result, null for a backtest that is too large. Has no effect after a takeover. */
export async function finishBacktest(
  db: Queryable,
  { pk, token }: BacktestClaim,
  result: BacktestResult | null,
): Promise<void> {
  const stored = result && {
    ...result,
    firings: result.firings.map(forStorage),
    corrections: result.corrections?.map(forStorage),
  };
  await db.query(FINISH, [pk, token, stored && JSON.stringify(stored)]);
}

const RELEASE = sql(
  'release_backtest',
  `UPDATE alert_backtest SET state = 'queued', attempts = attempts - CASE WHEN $3::boolean THEN 0 ELSE 1 END, ${LEASE_ENDED}
   WHERE pk = $1 AND lease_token = $2`,
);

/** Ends an attempt without a result. `isCounted`: the attempt failed, and did not end with its process. */
export async function releaseBacktest(
  db: Queryable,
  { pk, token }: BacktestClaim,
  { isCounted }: { isCounted: boolean },
): Promise<void> {
  await db.query(RELEASE, [pk, token, isCounted]);
}

const END = sql(
  'end_backtest_leases',
  `UPDATE alert_backtest SET state = 'queued', ${LEASE_ENDED} WHERE finished_at IS NULL AND lease_token LIKE $1 RETURNING pk`,
);

/** Ends every lease of a process; returns their number. */
export async function endBacktestsOf(db: Queryable, presence: number): Promise<number> {
  return (await db.query(END, [`${presence}.%`])).length;
}

const PRUNE = sql(
  'prune_backtests',
  `DELETE FROM alert_backtest WHERE finished_at < clock_timestamp() - ${BACKTESTS_KEPT_HOURS} * interval '1 hour' RETURNING 1`,
);

/** Deletes ended backtests; returns their number. */
export async function pruneBacktests(db: Queryable): Promise<number> {
  return (await db.query(PRUNE)).length;
}
