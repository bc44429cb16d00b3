import { randomBytes } from 'node:crypto';
import type { MarketStatus } from '../../src/domain/markets/market.ts';
import { refreshEvents } from '../../src/store/catalog/market-events.ts';
import { ensureTokens } from '../../src/store/catalog/tokens.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';

const INSERT_MARKET = sql(
  'test_insert_market',
  `INSERT INTO market (venue, venue_market_id, event_id, title, description, category, tags, status, has_book, created_at,
     open_at, close_at, resolved_at, resolution, winning_outcome_id, resolution_criteria, url, event_title, sibling_label, content_hash)
   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, '\\x00') RETURNING id`,
);
const INSERT_OUTCOME = sql(
  'test_insert_outcome',
  `INSERT INTO outcome (token_id, market_id, ordinal, label) VALUES ($1, $2, $3, $4)`,
);
const INSERT_STATS = sql(
  'test_insert_stats',
  `INSERT INTO market_stats (market_id, volume, volume_24h, liquidity) VALUES ($1, $2, $3, $4)`,
);

export interface StoredMarketFields {
  venue?: string;
  marketId?: string;
  eventId?: string;
  eventTitle?: string;
  eventUrl?: string;
  siblingLabel?: string;
  title?: string;
  description?: string;
  category?: string;
  tags?: string[];
  status?: MarketStatus;
  hasBook?: boolean;
  createdAt?: Date;
  openAt?: Date;
  closeAt?: Date;
  resolvedAt?: Date;
  resolution?: string;
  winningOutcomeId?: string;
  resolutionCriteria?: string;
  url?: string;
  /** Outcome labels; outcome ids derive from the market id. */
  labels?: string[];
  /** `numeric` text: volume, 24 h volume, liquidity. */
  stats?: [volume: string | null, volume24h: string | null, liquidity: string | null];
}

export interface TestMarket {
  pk: bigint;
  marketId: string;
  outcomes: { tokenId: bigint; outcomeId: string; label: string }[];
}

/** Inserts a market with its outcomes directly, and refreshes its event. */
export async function aStoredMarket(db: Database, fields: StoredMarketFields = {}): Promise<TestMarket> {
  const { marketId = `0x${randomBytes(8).toString('hex')}`, labels = ['Yes', 'No'] } = fields;
  const [market] = await db.query<{ id: bigint }>(INSERT_MARKET, [
    fields.venue ?? 'polymarket',
    marketId,
    fields.eventId ?? null,
    fields.title ?? 'Will it rain?',
    fields.description ?? '',
    fields.category ?? null,
    fields.tags ?? [],
    fields.status ?? 'open',
    fields.hasBook ?? true,
    fields.createdAt ?? null,
    fields.openAt ?? null,
    fields.closeAt ?? null,
    fields.resolvedAt ?? null,
    fields.resolution ?? null,
    fields.winningOutcomeId ?? null,
    fields.resolutionCriteria ?? null,
    fields.url ?? null,
    fields.eventTitle ?? null,
    fields.siblingLabel ?? null,
  ]);
  const pk = market?.id ?? 0n;
  const mints = labels.map((label) => `${marketId}:${label.toLowerCase()}`);
  const tokens = await ensureTokens(db, mints, 'USD');
  const outcomes = labels.map((label, ordinal) => {
    const outcomeId = mints[ordinal] ?? '';
    return { label, outcomeId, tokenId: tokens.get(outcomeId) ?? 0n };
  });
  for (const [ordinal, { tokenId, label }] of outcomes.entries()) {
    await db.query(INSERT_OUTCOME, [tokenId, pk, ordinal, label]);
  }
  const { eventId, eventUrl } = fields;
  if (eventId !== undefined) {
    const event = { venue: fields.venue ?? 'polymarket', eventId, ...(eventUrl !== undefined && { url: eventUrl }) };
    await db.transaction((tx) => refreshEvents(tx, [event]));
  }
  if (fields.stats) await db.query(INSERT_STATS, [pk, ...fields.stats]);
  return { pk, marketId, outcomes };
}
