import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { minuteOf } from '../marks/detail.ts';
import type { Mark } from '../marks/marks.ts';

const SAMPLE = sql(
  'sample_snapshots',
  `INSERT INTO snapshot AS s (token_id, ts, price, bid, ask)
   SELECT m.token_id, m.minute + 60, h.price, h.bid, h.ask
   FROM (SELECT DISTINCT * FROM unnest($1::bigint[], $2::bigint[]) AS u (token_id, minute)) m
   CROSS JOIN LATERAL (
     SELECT price, bid, ask FROM price_history h
     WHERE h.token_id = m.token_id AND h.received_at >= to_timestamp(m.minute) AND h.received_at < to_timestamp(m.minute + 60)
     ORDER BY h.received_at DESC LIMIT 1) h
   ORDER BY 1, 2
   ON CONFLICT (token_id, ts) DO UPDATE SET price = excluded.price, bid = excluded.bid, ask = excluded.ask
   WHERE (s.price, s.bid, s.ask) IS DISTINCT FROM (excluded.price, excluded.bid, excluded.ask)
   RETURNING token_id`,
);

/**
 * Samples price history at the end of each marked minute (specification section 2.5): one row per outcome with a change in it.
 * A pure function of history, so a second run changes nothing. Returns the number of written rows.
 */
export async function sampleSnapshots(tx: Tx, marks: readonly Mark[]): Promise<number> {
  const minutes = marks.map(({ detail }) => detail);
  const rows = await tx.query(SAMPLE, [marks.map(({ key }) => key), minutes]);
  return rows.length;
}

const CURRENT_MINUTE = sql('current_minute', `SELECT ${minuteOf('clock_timestamp()')} AS minute`);

/** The current minute by the database clock, epoch seconds: marks below it are ripe. */
export async function currentMinute(db: Queryable): Promise<bigint> {
  const [row] = await db.query<{ minute: bigint }>(CURRENT_MINUTE);
  return row?.minute ?? 0n;
}
