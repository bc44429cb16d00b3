import { isFinal } from '../../domain/alerts/market-rule.ts';
import type { MarketRecord } from '../../domain/markets/market.ts';
import { isDecided } from '../../domain/markets/resolution.ts';
import { sql, type Tx } from '../db/tx.ts';
import { encodeCause, minuteOf } from '../marks/detail.ts';
import { insertMarks, markChangedMarkets } from '../marks/marks.ts';
import { insertPublishSql, LATE_TRADE_MS, markMarkets } from '../marks/publish-marks.ts';
import { type TokenPrice, writePrices } from '../prices/prices.ts';
import { refreshEvents } from './market-events.ts';
import { appendFees } from './market-fees.ts';
import { appendResolutions, restorePrices } from './market-resolutions.ts';
import { oncePerMarket, writeMarketRows } from './market-rows.ts';
import { writeSightings } from './market-sightings.ts';
import { ensureTokens } from './tokens.ts';
import { sampleTotals } from './volume-samples.ts';

/** A token from an alert has the currency USD until a venue lists it. */
const CORRECT_CURRENCY = sql(
  'correct_currency',
  `UPDATE token SET currency = $2 WHERE id IN (
     SELECT id FROM token WHERE id = ANY ($1::bigint[]) AND currency <> $2 ORDER BY id FOR NO KEY UPDATE)`,
);

const DELETE_LOST_OUTCOMES = sql(
  'delete_lost_outcomes',
  `DELETE FROM outcome WHERE market_id = ANY ($1::bigint[]) AND NOT token_id = ANY ($2::bigint[])`,
);

/** Resets the hash of a market that loses an outcome to another one, so that its next listing writes it again: the last listing wins. */
const RESET_LOSER_HASH = sql(
  'reset_loser_hash',
  `UPDATE market SET content_hash = '' WHERE id IN (
     SELECT m.id FROM market m WHERE m.id IN (
       SELECT market_id FROM outcome WHERE token_id = ANY ($2::bigint[]) AND NOT market_id = ANY ($1::bigint[]))
     ORDER BY m.venue, m.venue_market_id FOR NO KEY UPDATE)
   RETURNING id`,
);

/** Returns the outcomes that the market gained: `outcome` has their former state in this statement. */
const UPSERT_OUTCOMES = sql(
  'upsert_outcomes',
  `WITH written AS (INSERT INTO outcome AS o (market_id, token_id, ordinal, label, payout)
   SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::text[], $5::numeric[])
     AS r (market_id, token_id, ordinal, label, payout)
   ORDER BY token_id
   ON CONFLICT (token_id) DO UPDATE SET market_id = excluded.market_id, ordinal = excluded.ordinal,
     label = excluded.label, payout = excluded.payout
   WHERE (o.market_id, o.ordinal, o.label, o.payout) IS DISTINCT FROM
     (excluded.market_id, excluded.ordinal, excluded.label, excluded.payout)
     RETURNING token_id, market_id)
   SELECT w.token_id FROM written w LEFT JOIN outcome o USING (token_id) WHERE o.market_id IS DISTINCT FROM w.market_id`,
);

interface WrittenMarkets {
  /** Markets that were new or differed from their stored rows. */
  changed: number;
  /** Tokens of markets with a new final outcome, whose alerts must expire, and keys of markets whose state alerts look at. */
  finalTokenIds: bigint[];
}

/**
 * Writes a page of the catalog. It does not rewrite unchanged rows, and keeps the old state of a changed row as a version. For a market
 * with a new final outcome it writes the payouts as latest prices and a mark per token for the alerts. The later of two records of one
 * market wins. `sweepStartedAtMs`, epoch milliseconds, is set on the pages of a sweep; see market-sightings.ts.
 */
export async function writeMarkets(
  tx: Tx,
  venue: string,
  currency: string,
  page: readonly MarketRecord[],
  nowMs: number,
  sweepStartedAtMs?: number,
): Promise<WrittenMarkets> {
  const markets = oncePerMarket(page);
  if (markets.length === 0) return { changed: 0, finalTokenIds: [] };
  const { pkOf, changed, formerEvents, resolutions, undecided, fees } = await writeMarketRows(tx, venue, markets);
  await appendFees(tx, fees);
  const moved = await writeSightings(tx, markets, pkOf, { nowMs, sweepStartedAtMs });
  await sampleTotals(tx, venue, markets, { pkOf, moved, nowMs });
  if (changed.length === 0) return { changed: 0, finalTokenIds: [] };

  const named = changed.flatMap((market) =>
    market.outcomes.map((outcome, ordinal) => ({ marketId: pkOf.get(market.marketId), outcome, ordinal })),
  );
  // The later of two markets of the page gets an outcome that both claim, because a conflict would stop the walk here.
  const outcomes = [...new Map(named.map((item) => [item.outcome.outcomeId, item])).values()];
  const created = new Set<bigint>();
  const tokens = await ensureTokens(
    tx,
    outcomes.map(({ outcome }) => outcome.outcomeId),
    currency,
    created,
  );
  const tokenIds = outcomes.map(({ outcome }) => tokens.get(outcome.outcomeId));
  await tx.query(CORRECT_CURRENCY, [tokenIds, currency]);
  const changedPks = changed.flatMap((market) => pkOf.get(market.marketId) ?? []);
  await tx.query(DELETE_LOST_OUTCOMES, [changedPks, tokenIds]);
  const losers = await tx.query<{ id: bigint }>(RESET_LOSER_HASH, [changedPks, tokenIds]);
  await markMarkets(tx, [...changedPks, ...losers.map(({ id }) => id)]);
  const gained = await tx.query<{ tokenId: bigint }>(UPSERT_OUTCOMES, [
    outcomes.map(({ marketId }) => marketId),
    tokenIds,
    outcomes.map(({ ordinal }) => ordinal),
    outcomes.map(({ outcome }) => outcome.label),
    outcomes.map(({ outcome }) => outcome.payout ?? null),
  ]);
  await publishEarlier(
    tx,
    gained.map(({ tokenId }) => tokenId).filter((tokenId) => !created.has(tokenId)),
  );

  const final = changed.filter(({ status }) => isFinal(status));
  const payouts = final
    .flatMap((market) => market.outcomes)
    .flatMap(({ outcomeId, payout }): TokenPrice[] => {
      const tokenId = tokens.get(outcomeId);
      return tokenId === undefined || payout === undefined ? [] : [{ tokenId, asOfMs: nowMs, price: payout }];
    });
  await writePrices(tx, payouts, { observed: false });
  await restorePrices(tx, undecided, nowMs);
  await appendResolutions(tx, resolutions);
  const decided = final.filter(({ status }) => isDecided(status, venue));
  const finalTokenIds = decided
    .flatMap((market) => market.outcomes)
    .flatMap(({ outcomeId }) => tokens.get(outcomeId) ?? []);
  const detail = encodeCause({ kind: 'marketFinal' });
  const marks = finalTokenIds.map((key) => ({ key, detail }));
  await insertMarks(tx, 'evaluate-alerts', marks);
  const marketKeys = await markChangedMarkets(tx, changedPks);
  // Last, so that other writers of these events wait only for the commit.
  await refreshEvents(tx, [
    ...formerEvents.map((eventId) => ({ venue, eventId })),
    ...changed.flatMap(({ eventId, eventUrl: url }) =>
      eventId === undefined ? [] : [{ venue, eventId, ...(url !== undefined && { url }) }],
    ),
  ]);
  return { changed: changed.length, finalTokenIds: [...finalTokenIds, ...marketKeys] };
}

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

/** The files of these days name no market of the trades, or lack them. */
const NOTE_EARLIER = sql(
  'note_earlier_days',
  `SELECT note_archive_change(k.kind, d.token_id, d.date)
   FROM (SELECT DISTINCT token_id, (ts AT TIME ZONE 'UTC')::date AS date FROM trade
         WHERE token_id = ANY ($1::bigint[]) AND ts < date_trunc('day', clock_timestamp(), 'UTC')) d
   CROSS JOIN (VALUES ('trades'), ('candles')) k (kind)`,
);

/** Publishes the facts of tokens that were stored before their market, in the transaction that stores their outcomes. */
async function publishEarlier(tx: Tx, tokenIds: readonly bigint[]): Promise<void> {
  if (tokenIds.length === 0) return;
  await tx.query(LOCK_EARLIER, [tokenIds]);
  await tx.query(PUBLISH_EARLIER, [tokenIds]);
  await tx.query(NOTE_EARLIER, [tokenIds]);
}
