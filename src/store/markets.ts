import { createHash } from 'node:crypto';
import type { MarketRecord } from '../domain/market.ts';
import { insertMarks } from './marks.ts';
import { type TokenPrice, writePrices } from './prices.ts';
import { ensureTokens } from './tokens.ts';
import { sql, type Tx } from './tx.ts';

const UPSERT_MARKETS = sql(
  'upsert_markets',
  `INSERT INTO market AS m (venue, venue_market_id, event_id, title, description, category, tags, status, has_book,
     created_at, open_at, close_at, resolved_at, resolution, winning_outcome_id, resolution_criteria, url, content_hash)
   SELECT $1, r.market_id, r.event_id, r.title, r.description, r.category, r.tags, r.status, r.has_book,
     r.created_at, r.open_at, r.close_at, r.resolved_at, r.resolution, r.winning_outcome_id, r.resolution_criteria, r.url,
     decode(r.content_hash, 'hex')
   FROM jsonb_to_recordset($2::jsonb) AS r (market_id text, event_id text, title text, description text, category text,
     tags text[], status text, has_book boolean, created_at timestamptz, open_at timestamptz, close_at timestamptz,
     resolved_at timestamptz, resolution text, winning_outcome_id text, resolution_criteria text, url text,
     content_hash text)
   ORDER BY r.market_id COLLATE "C"
   ON CONFLICT (venue, venue_market_id) DO UPDATE SET event_id = excluded.event_id, title = excluded.title,
     description = excluded.description, category = excluded.category, tags = excluded.tags, status = excluded.status,
     has_book = excluded.has_book, created_at = excluded.created_at, open_at = excluded.open_at,
     close_at = excluded.close_at, resolved_at = excluded.resolved_at, resolution = excluded.resolution,
     winning_outcome_id = excluded.winning_outcome_id, resolution_criteria = excluded.resolution_criteria,
     url = excluded.url, content_hash = excluded.content_hash, updated_at = now()
   WHERE m.content_hash <> excluded.content_hash
   RETURNING venue_market_id`,
);

const MARKET_IDS = sql(
  'market_ids',
  `SELECT id, venue_market_id FROM market WHERE venue = $1 AND venue_market_id = ANY ($2::text[])`,
);

/** A token that an alert named before its venue did was taken for USD. */
const CORRECT_CURRENCY = sql(
  'correct_currency',
  `UPDATE token SET currency = $2 WHERE id IN (
     SELECT id FROM token WHERE id = ANY ($1::bigint[]) AND currency <> $2 ORDER BY id FOR NO KEY UPDATE)`,
);

const DELETE_LOST_OUTCOMES = sql(
  'delete_lost_outcomes',
  `DELETE FROM outcome WHERE market_id = ANY ($1::bigint[]) AND NOT token_id = ANY ($2::bigint[])`,
);

const UPSERT_OUTCOMES = sql(
  'upsert_outcomes',
  `INSERT INTO outcome AS o (market_id, token_id, ordinal, label, payout)
   SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::text[], $5::numeric[])
     AS r (market_id, token_id, ordinal, label, payout)
   ORDER BY token_id
   ON CONFLICT (token_id) DO UPDATE SET market_id = excluded.market_id, ordinal = excluded.ordinal,
     label = excluded.label, payout = excluded.payout
   WHERE (o.market_id, o.ordinal, o.label, o.payout) IS DISTINCT FROM
     (excluded.market_id, excluded.ordinal, excluded.label, excluded.payout)`,
);

const UPSERT_STATS = sql(
  'upsert_market_stats',
  `INSERT INTO market_stats AS s (market_id, volume, volume_24h, liquidity)
   SELECT * FROM unnest($1::bigint[], $2::numeric[], $3::numeric[], $4::numeric[]) AS r (market_id, volume, volume_24h, liquidity)
   ORDER BY market_id
   ON CONFLICT (market_id) DO UPDATE SET volume = excluded.volume, volume_24h = excluded.volume_24h,
     liquidity = excluded.liquidity
   WHERE (s.volume, s.volume_24h, s.liquidity) IS DISTINCT FROM (excluded.volume, excluded.volume_24h, excluded.liquidity)`,
);

export interface WrittenMarkets {
  /** Markets that were new or differed from what we had. */
  changed: number;
  /** Tokens of markets whose outcome became final: their alerts are to be closed. */
  finalTokenIds: bigint[];
}

/** Detail of an `evaluate-alerts` mark that says: the market of this token has its final outcome. */
export const MARKET_FINAL_DETAIL = 0n;

function isFinal(market: MarketRecord): boolean {
  return market.status === 'resolved' || market.status === 'settled';
}

function iso(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

/** What is compared to tell a changed market; volumes are not part of it. */
function toRow(market: MarketRecord) {
  const row = {
    market_id: market.marketId,
    event_id: market.eventId ?? null,
    title: market.title,
    description: market.description,
    category: market.category ?? null,
    tags: market.tags,
    status: market.status,
    has_book: market.hasBook,
    created_at: iso(market.createdAtMs),
    open_at: iso(market.openAtMs),
    close_at: iso(market.closeAtMs),
    resolved_at: iso(market.resolvedAtMs),
    resolution: market.resolution ?? null,
    winning_outcome_id: market.winningOutcomeId ?? null,
    resolution_criteria: market.resolutionCriteria ?? null,
    url: market.url ?? null,
  };
  const content_hash = createHash('sha256')
    .update(JSON.stringify([row, market.outcomes]))
    .digest('hex');
  return { ...row, content_hash };
}

/**
 * Writes a page of the catalog. Rows that did not change are not rewritten. A market whose outcome became final gets its
 * payouts as latest prices and a mark per token for the alerts. Later of two records of one market wins.
 */
export async function writeMarkets(
  tx: Tx,
  venue: string,
  currency: string,
  page: readonly MarketRecord[],
  nowMs: number,
): Promise<WrittenMarkets> {
  const markets = [...new Map(page.map((market) => [market.marketId, market])).values()];
  if (markets.length === 0) return { changed: 0, finalTokenIds: [] };
  const changedRows = await tx.query<{ venue_market_id: string }>(UPSERT_MARKETS, [
    venue,
    JSON.stringify(markets.map(toRow)),
  ]);
  const ids = await tx.query<{ id: string; venue_market_id: string }>(MARKET_IDS, [
    venue,
    markets.map((market) => market.marketId),
  ]);
  const idOf = new Map(ids.map((row) => [row.venue_market_id, BigInt(row.id)]));
  await tx.query(UPSERT_STATS, [
    markets.map((market) => idOf.get(market.marketId)),
    markets.map((market) => market.volume ?? null),
    markets.map((market) => market.volume24h ?? null),
    markets.map((market) => market.liquidity ?? null),
  ]);
  const changedIds = new Set(changedRows.map((row) => row.venue_market_id));
  const changed = markets.filter((market) => changedIds.has(market.marketId));
  if (changed.length === 0) return { changed: 0, finalTokenIds: [] };

  const named = changed.flatMap((market) =>
    market.outcomes.map((outcome, ordinal) => ({ marketId: idOf.get(market.marketId), outcome, ordinal })),
  );
  // An outcome that two markets of the page claim goes to the later one: a conflict would stop the whole walk here.
  const outcomes = [...new Map(named.map((item) => [item.outcome.outcomeId, item])).values()];
  const tokens = await ensureTokens(
    tx,
    outcomes.map(({ outcome }) => outcome.outcomeId),
    currency,
  );
  const tokenIds = outcomes.map(({ outcome }) => tokens.get(outcome.outcomeId));
  await tx.query(CORRECT_CURRENCY, [tokenIds, currency]);
  await tx.query(DELETE_LOST_OUTCOMES, [changed.map((market) => idOf.get(market.marketId)), tokenIds]);
  await tx.query(UPSERT_OUTCOMES, [
    outcomes.map(({ marketId }) => marketId),
    tokenIds,
    outcomes.map(({ ordinal }) => ordinal),
    outcomes.map(({ outcome }) => outcome.label),
    outcomes.map(({ outcome }) => outcome.payout ?? null),
  ]);

  const final = changed.filter(isFinal).flatMap((market) => market.outcomes);
  const payouts = final.flatMap(({ outcomeId, payout }): TokenPrice[] => {
    const tokenId = tokens.get(outcomeId);
    return tokenId === undefined || payout === undefined ? [] : [{ tokenId, asOfMs: nowMs, price: payout }];
  });
  await writePrices(tx, payouts, { observed: false });
  const finalTokenIds = final.flatMap(({ outcomeId }) => tokens.get(outcomeId) ?? []);
  await insertMarks(
    tx,
    'evaluate-alerts',
    finalTokenIds.map((key) => ({ key, detail: MARKET_FINAL_DETAIL })),
  );
  return { changed: changed.length, finalTokenIds };
}
