import { type Queryable, sql } from '../db/tx.ts';

/** The bytes of the account on the present UTC day. A clock that was set back begins no new day. */
const OF_TODAY = `CASE WHEN u.date >= (clock_timestamp() AT TIME ZONE 'UTC')::date THEN u.bytes ELSE 0 END`;
const LIMIT_BYTES = (defaultMb: string) => `coalesce(a.quota_archive_mb_per_day, ${defaultMb})::bigint * 1000000`;

/** One statement: the row of the account orders concurrent downloads, in all processes. */
const RESERVE = sql(
  'reserve_archive_bytes',
  `INSERT INTO archive_use AS u (account_id, date, bytes)
   SELECT a.id, (clock_timestamp() AT TIME ZONE 'UTC')::date, $2::bigint FROM account a
   WHERE a.id = $1 AND $2::bigint <= ${LIMIT_BYTES('$3::int')}
   ON CONFLICT (account_id) DO UPDATE SET date = greatest(u.date, excluded.date), bytes = ${OF_TODAY} + excluded.bytes
   WHERE ${OF_TODAY} + excluded.bytes <= (SELECT ${LIMIT_BYTES('$3::int')} FROM account a WHERE a.id = $1)
   RETURNING u.date::text AS date`,
);

const READ = sql(
  'read_archive_use',
  `SELECT ${OF_TODAY} AS used, ${LIMIT_BYTES('$2::int')} AS limit,
     ceil(extract(epoch FROM date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC') + interval '1 day'
       - clock_timestamp() AT TIME ZONE 'UTC'))::int AS reset_seconds
   FROM account a LEFT JOIN archive_use u ON u.account_id = a.id WHERE a.id = $1`,
);

const RETURN = sql(
  'return_archive_bytes',
  'UPDATE archive_use SET bytes = greatest(bytes - $3::bigint, 0) WHERE account_id = $1 AND date = $2::date',
);

/** Bytes of the archive on the present UTC day. */
interface ArchiveUse {
  readonly used: number;
  readonly limit: number;
  /** Seconds until the next UTC day, by the database's clock. */
  readonly resetSeconds: number;
}

/** The bytes that the account has used today. `defaultMb`: the quota of the configuration, megabytes. */
export async function readArchiveUse(db: Queryable, accountId: bigint, defaultMb: number): Promise<ArchiveUse> {
  const [use] = await db.query<{ used: bigint; limit: bigint; resetSeconds: number }>(READ, [accountId, defaultMb]);
  if (!use) return { used: 0, limit: 0, resetSeconds: 1 };
  return { used: Number(use.used), limit: Number(use.limit), resetSeconds: use.resetSeconds };
}

/** Bytes that count for a day. */
export interface Reservation {
  readonly accountId: bigint;
  /** The UTC day for which they count. */
  readonly date: string;
}

/** Counts bytes within the quota of the account; null when they exceed it. Concurrent downloads never exceed it together. */
export async function reserveArchiveBytes(
  db: Queryable,
  accountId: bigint,
  bytes: number,
  defaultMb: number,
): Promise<Reservation | null> {
  const [row] = await db.query<{ date: string }>(RESERVE, [accountId, bytes, defaultMb]);
  return row ? { accountId, date: row.date } : null;
}

/** Counts reserved bytes no more, because they were not sent. */
export async function returnArchiveBytes(
  db: Queryable,
  { accountId, date }: Reservation,
  bytes: number,
): Promise<void> {
  await db.query(RETURN, [accountId, date, bytes]);
}
