import { type Queryable, sql } from '../db/tx.ts';

/** Advisory lock space of lanes whose job waits for signals: the first of the two lock keys. */
const LANE_LOCK_SPACE = 0x6f_64_6c; // "odl"
/** The Postgres channel of signals; the payload is `job:lane` for each lane, with commas. */
export const LANE_CHANNEL = 'oddswire_lanes';
/** The same for requested polls. */
export const POLL_CHANNEL = 'oddswire_polls';
/** The Postgres channel that wakes the publisher of the journal. */
export const PUBLISH_CHANNEL = 'oddswire_publish';

/** A lane of a stage, by the name of its job, or a poll of a venue that other processes request. */
interface Lane {
  readonly job: string;
  readonly lane: number;
}

/** Notifications serialize commits, so they have a transaction of their own, which does not wait for the disk. */
const SIGNAL = sql(
  'signal_lanes',
  `WITH lanes AS MATERIALIZED (
     SELECT job, lane, NOT pg_try_advisory_xact_lock_shared($1, hashtext(job) # lane) AS is_awake
     FROM unnest($2::text[], $3::int[]) AS l (job, lane))
   SELECT set_config('synchronous_commit', 'off', true),
     (SELECT pg_notify('${LANE_CHANNEL}', string_agg(job || ':' || lane, ',')) FROM lanes
      WHERE is_awake AND job NOT LIKE 'poll-%' HAVING count(*) > 0),
     (SELECT pg_notify('${POLL_CHANNEL}', string_agg(job || ':' || lane, ',')) FROM lanes
      WHERE is_awake AND job LIKE 'poll-%' HAVING count(*) > 0),
     (SELECT pg_notify('${PUBLISH_CHANNEL}', '') WHERE $4),
     (SELECT coalesce(json_agg(json_build_object('job', job, 'lane', lane)), '[]') FROM lanes WHERE NOT is_awake) AS asleep`,
);

/**
 * Signals lanes after their marks were committed, and the publisher; returns the lanes that no job waits for, which need one. A job frees its
 * lane before its last claim, so a mark of a lane that is awake here is visible to that claim.
 */
export async function signalLanes(
  db: Queryable,
  lanes: readonly Lane[],
  wakesPublisher: boolean,
): Promise<readonly Lane[]> {
  const columns = [lanes.map(({ job }) => job), lanes.map(({ lane }) => lane)];
  const [row] = await db.query<{ asleep: Lane[] }>(SIGNAL, [LANE_LOCK_SPACE, ...columns, wakesPublisher]);
  return row?.asleep ?? [];
}

/** The lanes of a payload. */
export function lanesOf(payload: string): readonly Lane[] {
  return payload.split(',').map((text) => {
    const [job = '', lane] = text.split(':');
    return { job, lane: Number(lane) };
  });
}

const TAKE = sql('take_lane', 'SELECT pg_try_advisory_lock($1, hashtext($2) # $3) AS is_taken');

/** Takes a lane for the life of the session; false while another session has it, or signals it at this moment. */
export async function takeLane(session: Queryable, { job, lane }: Lane): Promise<boolean> {
  const [row] = await session.query<{ isTaken: boolean }>(TAKE, [LANE_LOCK_SPACE, job, lane]);
  return row?.isTaken ?? false;
}

const FREE = sql('free_lanes', 'SELECT pg_advisory_unlock($1, hashtext($2) # lane) FROM unnest($3::int[]) AS l (lane)');

/** Frees lanes of this session. A job that claims after this sees every mark that was signalled and got no job. */
export async function freeLanes(session: Queryable, job: string, lanes: readonly number[]): Promise<void> {
  if (lanes.length > 0) await session.query(FREE, [LANE_LOCK_SPACE, job, lanes]);
}
