import { sql, type Tx } from '../db/tx.ts';
import { minuteOf } from '../marks/detail.ts';
import { insertPublishSql, LATE_TRADE_MS } from '../marks/publish-marks.ts';

/*
 * The publisher finds the market of a change by its outcome. A claim that takes a mark before the market is stored has no market to name,
 * and drops the mark. So the transaction that stores the outcome marks the earlier facts.
 *
 * Trades become a range of history, because a claim that takes the trade's own mark after this commit publishes it: a second mark of the
 * trade would publish it twice. States are published as they are at the claim. The range of candles contains those of trades that are not
 * folded yet, and stored ones whose trades retention has dropped.
 */

/**
 * Conflicts with the lock of writers of trades without a market (`lockOutcomes`): trades of transactions that hold it are visible to
 * the next statement, and the others are published behind this commit.
 */
const LOCK_EARLIER = sql(
  'lock_earlier_tokens',
  'SELECT id FROM token WHERE id = ANY ($1::bigint[]) ORDER BY id FOR UPDATE',
);

const PUBLISH_EARLIER = sql(
  'publish_earlier_facts',
  `WITH listed AS MATERIALIZED (SELECT unnest($1::bigint[]) AS token_id),
   minutes AS MATERIALIZED (
     SELECT t.token_id, ${minuteOf('t.ts')} AS minute, floor(extract(epoch FROM min(t.ts)))::bigint AS start,
       floor(extract(epoch FROM max(t.ts)))::bigint + 1 AS until,
       min(t.ts) < clock_timestamp() - ${LATE_TRADE_MS} * interval '1 millisecond' AS is_late
     FROM listed JOIN trade t USING (token_id) GROUP BY 1, 2),
   prices AS (${insertPublishSql('price', 'SELECT token_id FROM listed')}),
   books AS (${insertPublishSql('book', 'SELECT token_id FROM listed')}),
   trades AS (
     ${insertPublishSql('late-trades', 'SELECT token_id, min(start), max(until) FROM minutes GROUP BY token_id')}),
   late AS (
     ${insertPublishSql(
       'late-candles',
       `SELECT token_id, min(minute), max(minute) + 60 FROM (
          SELECT token_id, minute FROM minutes WHERE is_late
          UNION ALL SELECT token_id, bucket FROM listed JOIN candle c USING (token_id)
          WHERE c.interval_seconds = 60 AND c.bucket + 60 < extract(epoch FROM clock_timestamp()) - ${LATE_TRADE_MS / 1000}) m GROUP BY token_id`,
     )})
   ${insertPublishSql('candle', 'SELECT token_id, minute FROM minutes WHERE NOT is_late')}`,
);

/** Publishes the facts of tokens that were stored before their market, in the transaction that stores their outcomes. */
export async function publishEarlier(tx: Tx, tokenIds: readonly bigint[]): Promise<void> {
  if (tokenIds.length === 0) return;
  await tx.query(LOCK_EARLIER, [tokenIds]);
  await tx.query(PUBLISH_EARLIER, [tokenIds]);
}
