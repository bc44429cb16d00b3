import type { Condition } from '../../domain/alerts/conditions.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** Longer than a running process takes between two heartbeats. */
const RUNS = `h.seen_at > clock_timestamp() - interval '15 seconds'`;

const KNOWN_TO_ALL = sql(
  'condition_known_to_all',
  `SELECT NOT EXISTS (SELECT FROM process_heartbeat h WHERE ${RUNS} AND $1 <> ALL (coalesce(h.conditions, $2::text[]))) AS is_known`,
);
/** The conditions of a process that does not name them: its release is older than the column `conditions`. */
const UNNAMED_CONDITIONS: readonly Condition[] = [
  ...(['above', 'below', 'crosses_above', 'crosses_below', 'change', 'spread', 'trade', 'volume'] as const),
  ...(['status', 'new_market'] as const),
];

/** Whether every running process knows a condition of alerts: one of an older release fails at an alert with another condition. */
export async function isKnownToAll(db: Queryable, condition: Condition): Promise<boolean> {
  const [row] = await db.query<{ isKnown: boolean }>(KNOWN_TO_ALL, [condition, UNNAMED_CONDITIONS]);
  return row?.isKnown === true;
}

const FORMER_ALERTERS = sql(
  'former_alerters',
  `SELECT EXISTS (SELECT FROM process_heartbeat h WHERE h.process = 'alerter' AND ${RUNS} AND h.conditions IS NULL) AS is_running`,
);

/** Whether an alerter runs that does not name its conditions. */
export async function runsFormerAlerter(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ isRunning: boolean }>(FORMER_ALERTERS);
  return row?.isRunning === true;
}
