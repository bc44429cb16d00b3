import {
  MAX_PAUSE_MS,
  RATE_DECREASE,
  RATE_FLOOR,
  RATE_RECOVERY_SECONDS,
  RESERVE_MS,
  RESERVED_SHARE,
  TURN_ROUNDING,
} from '../../domain/values/request-rate.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** A budget with the ceiling of this process. */
interface HostBudget {
  /** The name of the budget. */
  host: string;
  /** Requests per second. */
  ceiling: number;
  /** Turns that may be taken at once after a quiet time. */
  burst: number;
}

/** A change of a budget. Moments are those of earlier changes (`at`). */
export interface BudgetChange {
  /** Turns to take, at most. */
  turns?: number;
  /** The takes of answered requests. */
  successes?: readonly number[];
  /** Turns to reserve, at most, and the take of the last reserve of this client, which ended so long ago. */
  reserve?: { most: number; ended?: { at: number; agoMs: number } };
  /** The take of a refused request. */
  limitedAt?: number;
  /** A pause that the host asks for. */
  pauseMs?: number;
}

interface ChangedBudget {
  granted: number;
  reserved: number;
  rate: number;
  /** The wait for the next turn; 0 while one is left. */
  waitMs: number;
  /** The moment of the change by the database's clock, epoch milliseconds. */
  at: number;
}

/** A slowed rate stays as it is under a new ceiling, as far as the ceiling and its floor allow. */
const OPEN = sql(
  'open_host_budget',
  `INSERT INTO host_budget AS h (host, ceiling, rate, tokens, refilled_at) VALUES ($1, $2, $2, $3, clock_timestamp())
   ON CONFLICT (host) DO UPDATE SET ceiling = excluded.ceiling,
     rate = CASE WHEN h.rate >= h.ceiling THEN excluded.ceiling
                 ELSE least(excluded.ceiling, greatest(excluded.ceiling * ${RATE_FLOOR}, h.rate)) END
   WHERE h.ceiling <> excluded.ceiling`,
);

/** Creates the budget, at its ceiling, or gives the stored one this ceiling. */
export async function openHostBudget(db: Queryable, { host, ceiling, burst }: HostBudget): Promise<void> {
  await db.query(OPEN, [host, ceiling, burst]);
}

/** The Postgres channel of budgets that slowed down or paused, by a trigger; the payload is the name. See migration 0038. */
export const SLOWED_CHANNEL = 'oddswire_budget';

/** Milliseconds of an SQL time. All moments pass through it, so equal ones stay equal. */
const ms = (time: string): string => `extract(epoch FROM ${time})::float8 * 1000`;

/**
 * One round trip for every change. Each step is a common table expression, because the next one needs its result. The clock is read after
 * the lock, so changes have increasing times in their order. `least` cuts times of the future, which a clock that was set back leaves.
 * The arithmetic is that of the ledger in memory (`src/venues/http/rate-ledger.ts`). A process of a release without reserves leaves
 * `reserved` as it is and fills the bucket to the whole burst.
 */
const CHANGE = sql(
  'change_host_budget',
  `WITH locked AS MATERIALIZED (SELECT * FROM host_budget WHERE host = $1 FOR UPDATE),
   clocked AS MATERIALIZED (SELECT *, clock_timestamp() AS now FROM locked),
   known AS MATERIALIZED (
     SELECT now, host, ceiling, rate, tokens, $2 * rate AS capacity, least(slowed_at, now) AS slowed_at,
       least(paused_until, now + ${MAX_PAUSE_MS} * interval '1 millisecond') AS paused_until,
       least(refilled_at, now) AS refilled_at,
       ARRAY(SELECT at FROM unnest(reserved) AS r (at) WHERE at BETWEEN ${ms('now')} - ${RESERVE_MS} - $2 * 1000 AND ${ms('now')}) AS reserved
     FROM clocked),
   timed AS MATERIALIZED (
     SELECT *, greatest(0, ${ms('(now - greatest(refilled_at, paused_until))')}) AS elapsed_ms,
       CASE WHEN $8::float8 IS NULL THEN reserved ELSE array_remove(reserved, $8) END AS held
     FROM known),
   refilled AS MATERIALIZED (
     SELECT now, host, ceiling, rate, slowed_at, paused_until, held,
       least(greatest(1, capacity - cardinality(held)),
         least(greatest(1, capacity - cardinality(reserved)), tokens + (elapsed_ms - least(elapsed_ms, $9)) * rate / 1000)
           + least(elapsed_ms, $9) * rate / 1000) AS tokens
     FROM timed),
   raised AS MATERIALIZED (
     SELECT now, host, ceiling, slowed_at, paused_until, tokens, held,
       least(ceiling, sqrt(rate * rate + 2 * ceiling / ${RATE_RECOVERY_SECONDS} * (
         SELECT count(*) FROM unnest($4::float8[]) AS taken (at) WHERE taken.at > ${ms('slowed_at')}))) AS rate,
       coalesce($5::float8 > ${ms('slowed_at')}, false) AS is_slower
     FROM refilled),
   followed AS MATERIALIZED (
     SELECT now, host, ceiling, held,
       CASE WHEN is_slower THEN now ELSE slowed_at END AS slowed_at,
       CASE WHEN is_slower THEN greatest(ceiling * ${RATE_FLOOR}, rate * ${RATE_DECREASE}) ELSE rate END AS rate,
       CASE WHEN $6::float8 IS NULL THEN paused_until
            ELSE greatest(paused_until, now + least($6, ${MAX_PAUSE_MS}) * interval '1 millisecond') END AS paused_until,
       -- A pause ends with one turn and not with a burst.
       CASE WHEN is_slower THEN 0 WHEN $6 IS NOT NULL THEN least(tokens, 1) ELSE tokens END AS tokens
     FROM raised),
   granted AS MATERIALIZED (
     SELECT *, CASE WHEN paused_until > now THEN 0 ELSE least($3::int, floor(tokens + ${TURN_ROUNDING})::int) END AS turns
     FROM followed),
   kept AS MATERIALIZED (
     SELECT *, CASE WHEN rate < ceiling OR paused_until > now THEN 0
       ELSE greatest(0, least($7::int, floor($2 * ceiling * ${RESERVED_SHARE} + ${TURN_ROUNDING})::int - cardinality(held),
         floor(greatest(0, tokens - turns) + ${TURN_ROUNDING})::int)) END AS more
     FROM granted)
   UPDATE host_budget AS h
   SET rate = g.rate, tokens = greatest(0, g.tokens - g.turns - g.more), refilled_at = g.now, paused_until = g.paused_until,
     slowed_at = g.slowed_at, reserved = g.held || array_fill(${ms('g.now')}, ARRAY[g.more])
   FROM kept AS g WHERE h.host = g.host
   RETURNING g.turns AS granted, g.more AS reserved, h.rate, ${ms('g.now')} AS at,
     ${ms('(greatest(h.paused_until, g.now) - g.now)')}
       + CASE WHEN 1 - h.tokens > ${TURN_ROUNDING} THEN (1 - h.tokens) / h.rate * 1000 ELSE 0 END AS wait_ms`,
);

/** Changes the budget; undefined when it does not exist. Concurrent changes follow one another. */
export async function changeHostBudget(
  db: Queryable,
  { host, ceiling, burst }: HostBudget,
  { turns = 0, successes = [], limitedAt, pauseMs, reserve: { most = 0, ended } = { most: 0 } }: BudgetChange,
): Promise<ChangedBudget | undefined> {
  const change = [turns, successes, limitedAt ?? null, pauseMs ?? null, most, ended?.at ?? null, ended?.agoMs ?? 0];
  const values = [host, burst / ceiling, ...change];
  const [changed] = await db.query<ChangedBudget>(CHANGE, values);
  return changed;
}

const RATES = sql('host_budget_rates', 'SELECT host, rate FROM host_budget WHERE host = ANY($1)');

/** The present rates of the budgets that exist, requests per second by name. */
export async function hostRates(db: Queryable, hosts: readonly string[]): Promise<Map<string, number>> {
  const rows = hosts.length === 0 ? [] : await db.query<{ host: string; rate: number }>(RATES, [hosts]);
  return new Map(rows.map(({ host, rate }) => [host, rate]));
}
