import { STALE_OBSERVATION_MS } from '../../domain/alerts/condition.ts';
import type { TradeRecord } from '../../domain/markets/market.ts';
import { createTokens, keepTokens } from '../catalog/tokens.ts';
import { seamOf } from '../db/partitions.ts';
import { sql, type Tx } from '../db/tx.ts';
import { insertMarksSql, minuteOf, observedAt } from '../marks/detail.ts';
import { insertPublishSql, LATE_TRADE_MS, microsOf } from '../marks/publish-marks.ts';
import { TRADE_ORDER } from './trade-order.ts';

const IS_FRESH = `ts >= at - ${LATE_TRADE_MS} * interval '1 millisecond'`;

const COLUMNS = 'token_id, ts, trade_id, price, size, side, ordinal, received_at';

/**
 * Inserts new trades and, in the same statement, the marks of minutes that gained a trade, an observation per fresh print, the marks of
 * their alerts, and the marks of the publisher. A repeated trade has no effect. The caller holds the locks of the outcomes, so numbers and
 * clock are in write order; prints of one page keep the venue's order. A trade whose day is in files alone becomes a correction of them: only
 * the job that reads the file knows whether it is new.
 */
const INSERT_TRADES = sql(
  'insert_trades',
  `WITH clock AS MATERIALIZED (SELECT date_trunc('milliseconds', clock_timestamp()) AS at),
   given AS MATERIALIZED (
     SELECT token_id, to_timestamp(ms / 1000) AS ts, trade_id, price, size, side, ordinal, at, to_timestamp(ms / 1000) < ${seamOf('trades')} AS is_archived
     FROM unnest($1::bigint[], $2::float8[], $3::text[], $4::numeric[], $5::numeric[], $6::smallint[], $7::int[])
       AS t (token_id, ms, trade_id, price, size, side, ordinal), clock
     ORDER BY token_id, ms, trade_id COLLATE "C"),
   corrections AS (
     INSERT INTO archive_correction (${COLUMNS}) SELECT ${COLUMNS.replace('received_at', 'at')} FROM given WHERE is_archived ON CONFLICT DO NOTHING),
   inserted AS (
     INSERT INTO trade (${COLUMNS}) SELECT ${COLUMNS.replace('received_at', 'at')} FROM given WHERE NOT is_archived
     ON CONFLICT DO NOTHING RETURNING token_id, ts, trade_id, price, size, side, ordinal),
   folds AS (
     ${insertMarksSql('fold-candles', `SELECT DISTINCT token_id, ${minuteOf('ts')} FROM inserted`)}),
   published AS (
     ${insertPublishSql('trade', `SELECT token_id, ${microsOf('ts')}, trade_id FROM inserted, clock WHERE ${IS_FRESH}`)}),
   late AS (
     ${insertPublishSql(
       'late-trades',
       `SELECT token_id, floor(extract(epoch FROM min(ts)))::bigint, floor(extract(epoch FROM max(ts)))::bigint + 1
        FROM inserted, clock WHERE NOT (${IS_FRESH}) GROUP BY token_id`,
     )}),
   observed AS (
     INSERT INTO observation (token_id, received_at, venue_at, price, size)
     SELECT token_id, at, ts, price, size FROM inserted, clock WHERE ts >= at - $8 * interval '1 millisecond'
     ORDER BY token_id, ${TRADE_ORDER}
     RETURNING token_id, received_at),
   alerts AS (
     ${insertMarksSql('evaluate-alerts', `SELECT DISTINCT token_id, ${observedAt('received_at')} FROM observed`)})
   SELECT token_id, count(*)::int AS trades FROM inserted GROUP BY token_id`,
);

interface WrittenTrades {
  /** The number of new trades. */
  inserted: number;
  /** Tokens with new trades, for the wake-ups. */
  tokenIds: bigint[];
}

/** Writes a batch of trades of one venue. Idempotent; the partitions must exist. */
export async function writeTrades(tx: Tx, trades: readonly TradeRecord[], currency: string): Promise<WrittenTrades> {
  if (trades.length === 0) return { inserted: 0, tokenIds: [] };
  const latestMs = new Map<string, number>();
  for (const { outcomeId, tsMs } of trades) latestMs.set(outcomeId, Math.max(tsMs, latestMs.get(outcomeId) ?? tsMs));
  await keepTokens(tx);
  let tokens = await lockOutcomes(tx, latestMs, STALE_OBSERVATION_MS);
  const missing = [...latestMs.keys()].filter((outcomeId) => !tokens.has(outcomeId));
  if (missing.length > 0) {
    await createTokens(tx, missing, currency);
    tokens = await lockOutcomes(tx, latestMs, STALE_OBSERVATION_MS);
  }
  const rows = await tx.query<{ tokenId: bigint; trades: number }>(INSERT_TRADES, [
    trades.map((trade) => tokens.get(trade.outcomeId)),
    trades.map((trade) => trade.tsMs),
    trades.map((trade) => trade.tradeId),
    trades.map((trade) => trade.price),
    trades.map((trade) => trade.size),
    trades.map((trade) => (trade.side === undefined ? null : trade.side === 'buy' ? 1 : -1)),
    trades.map((trade) => trade.ordinal ?? 0),
    STALE_OBSERVATION_MS,
  ]);
  return {
    inserted: rows.reduce((sum, row) => sum + row.trades, 0),
    tokenIds: rows.map((row) => row.tokenId),
  };
}

const PUBLISH_LATE = sql(
  'publish_late_trades',
  insertPublishSql('late-trades', 'SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])'),
);

/** Publishes that outcomes gained trades of these times, `[start, until)` epoch seconds. */
export async function publishLateTrades(
  tx: Tx,
  ranges: readonly { tokenId: bigint; start: bigint; until: bigint }[],
): Promise<void> {
  await tx.query(PUBLISH_LATE, [
    ranges.map(({ tokenId }) => tokenId),
    ranges.map(({ start }) => start),
    ranges.map(({ until }) => until),
  ]);
}

/*
 * Observations of an outcome are numbered under a lock that its writers hold until their commit, so a reader that sees a number sees all
 * smaller ones. The lock is the row of the latest price. An outcome without a price is locked by its token; the writer of its first price
 * takes the same lock, so no price can appear meanwhile.
 *
 * A token without a market gets a lock that conflicts with the transaction that stores its market: see `publishEarlier`.
 */

/**
 * The stored tokens of these mints, with the locks of those with a trade that is fresh enough for an observation, as far as they have a price.
 * Without one of the tokens it takes no lock, so that all locks are taken in the order of the keys. A list is looked up by IN in an
 * expression, which is hashed.
 */
const LOCK_FRESH = sql(
  'lock_fresh_outcomes',
  `WITH known AS MATERIALIZED (
     SELECT t.id, t.mint, t.mint IN (
       SELECT mint FROM unnest($1::text[], $2::float8[]) AS l (mint, ms) WHERE ms >= extract(epoch FROM clock_timestamp()) * 1000 - $3) AS is_fresh
     FROM token t WHERE t.mint = ANY ($1::text[])),
   complete AS MATERIALIZED (SELECT count(*) = cardinality($1::text[]) AS is_complete FROM known),
   unlisted AS MATERIALIZED (
     SELECT t.id FROM token t WHERE t.id = ANY (ARRAY(SELECT id FROM known, complete WHERE is_complete))
       AND NOT EXISTS (SELECT FROM outcome o WHERE o.token_id = t.id) ORDER BY t.id FOR KEY SHARE OF t),
   locked AS MATERIALIZED (
     SELECT l.token_id FROM latest_price l WHERE l.token_id = ANY (ARRAY(SELECT id FROM known, complete WHERE is_complete AND is_fresh))
     ORDER BY l.token_id FOR NO KEY UPDATE)
   SELECT k.id, k.mint AS token_mint, k.is_fresh AND k.id NOT IN (SELECT token_id FROM locked) AS is_unpriced
   FROM (SELECT count(*) FROM unlisted) AS u, (SELECT count(*) FROM locked) AS p, known k`,
);
const LOCK_TOKENS = sql(
  'lock_unpriced_tokens',
  'SELECT id FROM token WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE',
);
/** A statement after the lock of the tokens, so that it sees first prices that were committed meanwhile. */
const LOCK_PRICES = sql(
  'lock_latest_prices',
  'SELECT token_id FROM latest_price WHERE token_id = ANY ($1::bigint[]) ORDER BY token_id FOR NO KEY UPDATE',
);

/**
 * Locks the outcomes whose trades become observations, those with a trade younger than `freshMs`, and the tokens without a market. `latestMs`
 * has the time of the newest trade of each, epoch milliseconds. Returns the row numbers of the stored tokens; when one is absent, nothing
 * is locked.
 */
async function lockOutcomes(
  tx: Tx,
  latestMs: ReadonlyMap<string, number>,
  freshMs: number,
): Promise<Map<string, bigint>> {
  const rows = await tx.query<{ id: bigint; tokenMint: string; isUnpriced: boolean }>(LOCK_FRESH, [
    [...latestMs.keys()],
    [...latestMs.values()],
    freshMs,
  ]);
  const keys = rows.filter(({ isUnpriced }) => isUnpriced).map(({ id }) => id);
  if (rows.length === latestMs.size && keys.length > 0) {
    await tx.query(LOCK_TOKENS, [keys]);
    await tx.query(LOCK_PRICES, [keys]);
  }
  return new Map(rows.map(({ id, tokenMint }) => [tokenMint, id]));
}
