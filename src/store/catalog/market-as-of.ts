import { type Queryable, sql } from '../db/tx.ts';
import {
  MARKET_COLUMNS,
  MARKET_PARTS,
  type MarketRow,
  ONE_MARKET,
  type StoredMarket,
  toMarket,
} from './market-reads.ts';

/** A superseded version in the format of `keepVersions`: column names, times as ISO text, outcomes as `[mint, label]` in order. */
interface VersionFacts {
  event_id: string | null;
  title: string;
  description: string;
  category: string | null;
  tags: string[];
  status: StoredMarket['status'];
  has_book: boolean;
  created_at: string | null;
  open_at: string | null;
  close_at: string | null;
  resolved_at: string | null;
  resolution: string | null;
  winning_outcome_id: string | null;
  resolution_criteria: string | null;
  url: string | null;
  /** Absent in versions of earlier releases. */
  event_title?: string | null;
  sibling_label?: string | null;
  outcomes: [string, string][];
}

/** The current row counts from its `updated_at` on; before that the version that covers the moment. */
const MARKET_AT = sql(
  'market_at',
  `SELECT ${MARKET_COLUMNS}, m.updated_at <= to_timestamp($3::float8) AS is_current, v.known_from, v.facts
   FROM (SELECT * FROM market m WHERE ${ONE_MARKET}) m ${MARKET_PARTS}
   LEFT JOIN LATERAL (
     SELECT v.known_from, v.facts FROM market_version v
     WHERE v.market_id = m.id AND v.known_until > to_timestamp($3::float8) AND v.known_from <= to_timestamp($3::float8)
     ORDER BY v.known_until LIMIT 1) v ON m.updated_at > to_timestamp($3::float8)`,
);

/** A market as known at a moment, epoch seconds; null for a market that is unknown today. */
export async function findMarketAt(
  db: Queryable,
  venues: readonly string[],
  marketId: string,
  at: number,
): Promise<StoredMarket | 'not-yet' | null> {
  const [row] = await db.query<MarketRow & { isCurrent: boolean; knownFrom: Date | null; facts: VersionFacts | null }>(
    MARKET_AT,
    [venues, marketId, at],
  );
  if (!row) return null;
  const withoutVolumes = { ...toMarket(row), volume: null, volume24h: null, liquidity: null };
  if (row.isCurrent) return withoutVolumes;
  return row.facts === null || row.knownFrom === null
    ? 'not-yet'
    : { ...withoutVolumes, ...factsOf(row.facts), updatedAt: row.knownFrom };
}

function factsOf(
  facts: VersionFacts,
): Omit<StoredMarket, 'pk' | 'venue' | 'marketId' | 'updatedAt' | 'volume' | 'volume24h' | 'liquidity'> {
  return {
    eventId: facts.event_id,
    eventTitle: facts.event_title ?? null,
    siblingLabel: facts.sibling_label ?? null,
    title: facts.title,
    description: facts.description,
    category: facts.category,
    tags: facts.tags,
    status: facts.status,
    outcomes: facts.outcomes.map(([outcomeId, label]) => ({ outcomeId, label })),
    createdAt: moment(facts.created_at),
    openAt: moment(facts.open_at),
    closeAt: moment(facts.close_at),
    resolvedAt: moment(facts.resolved_at),
    winningOutcomeId: facts.winning_outcome_id,
    resolutionCriteria: facts.resolution_criteria,
    url: facts.url,
  };
}

function moment(iso: string | null): Date | null {
  return iso === null ? null : new Date(iso);
}
