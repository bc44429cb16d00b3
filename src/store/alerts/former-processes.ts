import { CONDITIONS, type Condition } from '../../domain/alerts/conditions.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** Longer than a running process takes between two heartbeats. */
const RUNS = `h.seen_at > clock_timestamp() - interval '15 seconds'`;

const KNOWN_TO_ALL = sql(
  'condition_known_to_all',
  `SELECT NOT EXISTS (SELECT FROM process_heartbeat h WHERE ${RUNS} AND $1 <> ALL (coalesce(h.conditions, $2::text[]))) AS is_known`,
);
/** The conditions of the former release, whose processes do not name theirs. */
const NEW_CONDITIONS: ReadonlySet<Condition> = new Set(['resolution', 'executable', 'net_difference']);
const FORMER_CONDITIONS = CONDITIONS.filter((condition) => !NEW_CONDITIONS.has(condition));

/** Whether every running process knows a condition of alerts: one of the former release fails at an alert with another condition. */
export async function isKnownToAll(db: Queryable, condition: Condition): Promise<boolean> {
  const [row] = await db.query<{ isKnown: boolean }>(KNOWN_TO_ALL, [condition, FORMER_CONDITIONS]);
  return row?.isKnown === true;
}

const FORMER_ALERTERS = sql(
  'former_alerters',
  `SELECT EXISTS (SELECT FROM process_heartbeat h WHERE h.process = 'alerter' AND ${RUNS} AND h.conditions IS NULL) AS is_running`,
);

/** Whether an alerter of the former release runs. */
export async function runsFormerAlerter(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ isRunning: boolean }>(FORMER_ALERTERS);
  return row?.isRunning === true;
}
