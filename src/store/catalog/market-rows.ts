import { createHash } from 'node:crypto';
import { isFinal } from '../../domain/alerts/market-rule.ts';
import type { MarketRecord } from '../../domain/markets/market.ts';
import { type ResolutionStanding, resolutionChanges } from '../../domain/markets/resolution.ts';
import { sql, type Tx } from '../db/tx.ts';
import { feeDigest, type MarketFee } from './market-fees.ts';
import { type MarketResolution, readStandings } from './market-resolutions.ts';
import { keepVersions } from './market-versions.ts';

/** SQL of whether a process of the former release wrote the result of `market`, or its withdrawal: see migration 0048. */
const IS_OF_FORMER = 'EXISTS (SELECT FROM former_result f WHERE f.market_id = market.id)';
/** SQL of the hash that a record is compared with. Any record differs from a market without a row of its timeline. */
const COMPARED_HASH = `CASE WHEN ${IS_OF_FORMER} THEN '' ELSE encode(content_hash, 'hex') END`;

/** Compares stored markets by hash. A market that is gone has an empty hash, so that any listing differs. */
const READ_HASHES = sql(
  'read_market_hashes',
  `SELECT id, venue_market_id, ${COMPARED_HASH} AS content_hash,
     (SELECT encode(f.hash, 'hex') FROM fee_statement f WHERE f.id = market.fee_id) AS fee_hash
   FROM market WHERE venue = $1 AND venue_market_id = ANY ($2::text[])`,
);

const READ_OMITTED_FIELDS = sql(
  'read_omitted_market_fields',
  `SELECT venue_market_id, description, resolution_criteria, settlement_source, category, tags
   FROM market WHERE venue = $1 AND venue_market_id = ANY ($2::text[])`,
);

const LOCK_MARKETS = sql(
  'lock_markets',
  `SELECT id, venue_market_id, event_id, status, resolution_state IS NOT NULL AS has_state, ${IS_OF_FORMER} AS is_of_former, ${COMPARED_HASH} AS content_hash,
     (extract(epoch FROM clock_timestamp() - updated_at) * 1000)::float8 AS unchanged_ms, stated_at
   FROM market WHERE venue = $1 AND venue_market_id = ANY ($2::text[]) ORDER BY venue_market_id FOR NO KEY UPDATE`,
);

const ROW_TYPE = `event_id text, event_title text, sibling_label text, title text, description text, category text, tags text[], status text,
  has_book boolean, created_at timestamptz, open_at timestamptz, close_at timestamptz, resolved_at timestamptz,
  resolution text, resolution_state text,
  winning_outcome_id text, resolution_criteria text, settlement_source text, url text, content_hash text, stated_at timestamptz`;

const INSERT_MARKETS = sql(
  'insert_markets',
  `INSERT INTO market (venue, venue_market_id, event_id, event_title, sibling_label, title, description, category, tags, status, has_book,
     created_at, open_at, close_at, resolved_at, resolution, resolution_state, winning_outcome_id, resolution_criteria, settlement_source, url,
     content_hash, stated_at, updated_at)
   SELECT $1, r.market_id, r.event_id, r.event_title, r.sibling_label, r.title, r.description, r.category, r.tags, r.status,
     r.has_book, r.created_at, r.open_at, r.close_at, r.resolved_at, r.resolution, r.resolution_state, r.winning_outcome_id, r.resolution_criteria,
     r.settlement_source, r.url, decode(r.content_hash, 'hex'), r.stated_at, clock_timestamp()
   FROM jsonb_to_recordset($2::jsonb) AS r (market_id text, ${ROW_TYPE}) ORDER BY r.market_id COLLATE "C"
   ON CONFLICT (venue, venue_market_id) DO NOTHING RETURNING id, venue_market_id`,
);

const UPDATE_MARKETS = sql(
  'update_markets',
  `UPDATE market m SET event_id = r.event_id, event_title = r.event_title, sibling_label = r.sibling_label, title = r.title, description = r.description, category = r.category,
     tags = r.tags, status = r.status, has_book = r.has_book, created_at = r.created_at, open_at = r.open_at,
     close_at = r.close_at, resolved_at = r.resolved_at, resolution = r.resolution, resolution_state = r.resolution_state,
     resolution_turn = m.resolution_turn + 1, winning_outcome_id = r.winning_outcome_id, resolution_criteria = r.resolution_criteria,
     settlement_source = r.settlement_source, url = r.url,
     content_hash = decode(r.content_hash, 'hex'), stated_at = coalesce(r.stated_at, m.stated_at), gone_at = NULL, updated_at = $2::timestamptz
   FROM jsonb_to_recordset($1::jsonb) AS r (id bigint, ${ROW_TYPE}) WHERE m.id = r.id`,
);

const FORGET_FORMER = sql('forget_former_results', 'DELETE FROM former_result WHERE market_id = ANY ($1::bigint[])');

interface KnownMarket {
  id: bigint;
  venueMarketId: string;
  contentHash: string;
}

/** A market before the page. */
interface HashedMarket extends KnownMarket {
  feeHash: string | null;
}

interface LockedMarket extends KnownMarket {
  eventId: string | null;
  status: string;
  /** Whether its timeline has left the state `none`. */
  hasState: boolean;
  /** Whether a process of the former release wrote its result, or withdrew it. */
  isOfFormer: boolean;
  /** Time since the last change of the row. */
  unchangedMs: number;
  /** The venue's time of the stored record. */
  statedAt: Date | null;
}

interface OmittedFields {
  venueMarketId: string;
  description: string;
  resolutionCriteria: string | null;
  settlementSource: string | null;
  category: string | null;
  tags: string[];
}

interface WrittenRows {
  /** Keys by venue id of all markets of the page. */
  pkOf: Map<string, bigint>;
  /** New markets, and markets that differ from their stored rows. */
  changed: MarketRecord[];
  /** The events that changed markets left. */
  formerEvents: string[];
  /** The new rows of timelines. */
  resolutions: MarketResolution[];
  /** Changed markets without a result that have a timeline: their prices may be payouts of a withdrawn result. */
  undecided: bigint[];
  /** Statements about fees that differ from the stored ones. */
  fees: MarketFee[];
}

function iso(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString();
}

/** The compared fields of a market, without volumes. */
function toRow(market: MarketRecord) {
  const row = {
    market_id: market.marketId,
    event_id: market.eventId ?? null,
    // Undefined fields are not hashed, so that hashes from before these fields stay valid.
    event_title: market.eventTitle,
    sibling_label: market.siblingLabel,
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
    settlement_source: market.settlementSource,
    url: market.url ?? null,
    resolution_steps: market.resolutionSteps,
  };
  const content_hash = createHash('sha256')
    .update(JSON.stringify([row, market.outcomes]))
    .digest('hex');
  // Not compared: some venues move this time without a change of these fields.
  const stated_at = iso(market.statedAtMs);
  return { ...row, content_hash, stated_at, ...stateAfter(market, NOWHERE) };
}

const NOWHERE: ResolutionStanding = { state: 'none' };

/** The column with the state of a market that stood at `standing`. */
function stateAfter({ resolutionSteps = [] }: MarketRecord, standing: ResolutionStanding) {
  const state = resolutionChanges(standing, resolutionSteps).at(-1)?.state ?? standing.state;
  return { resolution_state: state === 'none' ? null : state };
}

function omitsFields(market: MarketRecord): boolean {
  return market.isSummary === true || market.isUntagged === true;
}

/** A market with the fields that its listing omits, taken from the full record. */
function withOmittedFields(
  market: MarketRecord,
  full: Pick<MarketRecord, 'description' | 'resolutionCriteria' | 'settlementSource' | 'category' | 'tags'>,
): MarketRecord {
  const { resolutionCriteria: _criteria, settlementSource: _source, category, ...rest } = market;
  if (!market.isSummary) {
    const kept = full.category ?? category;
    return { ...market, tags: full.tags, ...(kept !== undefined && { category: kept }) };
  }
  return {
    ...rest,
    description: full.description,
    tags: full.tags,
    ...(full.category !== undefined && { category: full.category }),
    ...(full.resolutionCriteria !== undefined && { resolutionCriteria: full.resolutionCriteria }),
    ...(full.settlementSource !== undefined && { settlementSource: full.settlementSource }),
  };
}

/** The later of two records of a market, completed from the earlier one with the fields that its own listing omits. */
function merged(earlier: MarketRecord, later: MarketRecord): MarketRecord {
  const { isSummary: _isSummary, isUntagged: _isUntagged, ...market } = withOmittedFields(later, earlier);
  if (later.isSummary && earlier.isSummary) return { ...market, isSummary: true };
  return omitsFields(earlier) ? { ...market, isUntagged: true } : market;
}

/** One record per market: the later one, completed from an earlier fuller one when it is a summary. */
export function oncePerMarket(page: readonly MarketRecord[]): MarketRecord[] {
  const byId = new Map<string, MarketRecord>();
  for (const market of page) {
    const earlier = byId.get(market.marketId);
    byId.set(market.marketId, earlier && omitsFields(market) ? merged(earlier, market) : market);
  }
  return [...byId.values()];
}

/** Records completed with the stored values of omitted fields. */
async function completed(tx: Tx, venue: string, markets: readonly MarketRecord[]): Promise<MarketRecord[]> {
  return withEventTitles(tx, venue, await withStoredFields(tx, venue, markets));
}

const READ_EVENT_TITLES = sql(
  'read_event_titles',
  `SELECT event_id, title FROM market_event WHERE venue = $1 AND event_id = ANY ($2::text[]) AND title IS NOT NULL`,
);

/** Adds stored event titles, because some answers of a venue name an event by its id only. */
async function withEventTitles(tx: Tx, venue: string, markets: readonly MarketRecord[]): Promise<MarketRecord[]> {
  const isUntitled = ({ eventId, eventTitle }: MarketRecord) => eventId !== undefined && eventTitle === undefined;
  const untitled = markets.filter(isUntitled).map(({ eventId }) => eventId);
  if (untitled.length === 0) return [...markets];
  const rows = await tx.query<{ eventId: string; title: string }>(READ_EVENT_TITLES, [venue, untitled]);
  const titleOf = new Map(rows.map((row) => [row.eventId, row.title]));
  return markets.map((market) => {
    const title = isUntitled(market) ? titleOf.get(market.eventId ?? '') : undefined;
    return title === undefined ? market : { ...market, eventTitle: title };
  });
}

/** Adds the stored values of omitted fields; reads only the rows of such records. */
async function withStoredFields(tx: Tx, venue: string, markets: readonly MarketRecord[]): Promise<MarketRecord[]> {
  const partial = markets.filter(omitsFields).map((market) => market.marketId);
  if (partial.length === 0) return [...markets];
  const rows = await tx.query<OmittedFields>(READ_OMITTED_FIELDS, [venue, partial]);
  const storedOf = new Map(rows.map((row) => [row.venueMarketId, row]));
  return markets.map((market) => {
    const stored = storedOf.get(market.marketId);
    if (!stored || !omitsFields(market)) return market;
    return withOmittedFields(market, {
      description: stored.description,
      tags: stored.tags,
      ...(stored.category !== null && { category: stored.category }),
      ...(stored.resolutionCriteria !== null && { resolutionCriteria: stored.resolutionCriteria }),
      ...(stored.settlementSource !== null && { settlementSource: stored.settlementSource }),
    });
  });
}

/**
 * Writes the market rows of a page that are new or differ from the stored ones, and keeps the superseded versions. It neither writes nor
 * locks unchanged rows. It first inserts new rows and then locks existing ones, both in key order, so that two writers cannot deadlock.
 * Each market appears once in `markets`.
 */
export async function writeMarketRows(tx: Tx, venue: string, markets: readonly MarketRecord[]): Promise<WrittenRows> {
  const known = await tx.query<HashedMarket>(READ_HASHES, [venue, markets.map((market) => market.marketId)]);
  const pkOf = new Map(known.map((row) => [row.venueMarketId, row.id]));
  const hashOf = new Map(known.map((row) => [row.venueMarketId, row.contentHash]));
  const records = await completed(tx, venue, markets);
  const candidates = records
    .map((market) => ({ market, row: toRow(market) }))
    .filter(({ row }) => hashOf.get(row.market_id) !== row.content_hash);

  const fresh = candidates.filter(({ row }) => !hashOf.has(row.market_id)).map(({ row }) => row);
  const inserted =
    fresh.length === 0
      ? []
      : await tx.query<Omit<KnownMarket, 'contentHash'>>(INSERT_MARKETS, [venue, JSON.stringify(fresh)]);
  for (const row of inserted) pkOf.set(row.venueMarketId, row.id);
  const insertedIds = new Set(inserted.map((row) => row.venueMarketId));

  // Another writer may have inserted some of the new ones concurrently; they are handled like existing ones.
  const existing = candidates.filter(({ row }) => !insertedIds.has(row.market_id)).map(({ market }) => market);
  const feeHashOf = new Map(known.map((row) => [row.venueMarketId, row.feeHash]));
  // The present fee of a series says nothing about a market that ended before.
  const charged = markets.filter(
    ({ marketId, status, fees }) => fees && !isFinal(status) && feeHashOf.get(marketId) !== feeDigest(fees),
  );
  const updated = await updateMarkets(tx, venue, { markets: existing, alsoLocked: charged }, pkOf);
  const created = candidates.filter(({ row }) => insertedIds.has(row.market_id)).map(({ market }) => market);
  const first = created.flatMap((market) => {
    const marketPk = pkOf.get(market.marketId);
    return marketPk === undefined ? [] : timelineOf(marketPk, market, NOWHERE, false);
  });
  return {
    pkOf,
    changed: [...created, ...updated.markets],
    formerEvents: updated.formerEvents,
    resolutions: [...first, ...updated.resolutions],
    undecided: updated.undecided,
    fees: charged.flatMap(({ marketId, fees: statement, feesAgeMs = 0, ageMs = 0, statedAtMs }) => {
      const marketPk = pkOf.get(marketId);
      if (marketPk === undefined || statement === undefined) return [];
      return [{ marketPk, statement, ageMs: Math.max(feesAgeMs, ageMs), statedAtMs }];
    }),
  };
}

function timelineOf(marketPk: bigint, market: MarketRecord, standing: ResolutionStanding, isReport: boolean) {
  const changes = resolutionChanges(standing, market.resolutionSteps ?? []);
  return changes.length === 0 ? [] : [{ marketPk, outcomes: market.outcomes.length, changes, isReport }];
}

/**
 * Locks the rows and compares again, because the first comparison ran without a lock. Returns the markets that really differ, and adds
 * their keys. A record from a cache does not replace a row that changed after the cache entry, and one that the venue made earlier than the
 * stored record does not replace it. All rows that the transaction changes are locked at once, in the order of their ids.
 */
async function updateMarkets(
  tx: Tx,
  venue: string,
  { markets, alsoLocked }: Record<'markets' | 'alsoLocked', readonly MarketRecord[]>,
  pkOf: Map<string, bigint>,
): Promise<Pick<WrittenRows, 'formerEvents' | 'resolutions' | 'undecided'> & { markets: MarketRecord[] }> {
  const none = { markets: [], formerEvents: [], resolutions: [], undecided: [] };
  const ids = new Set([...markets, ...alsoLocked].map(({ marketId }) => marketId));
  if (ids.size === 0) return none;
  const locked = await tx.query<LockedMarket>(LOCK_MARKETS, [venue, [...ids]]);
  for (const row of locked) pkOf.set(row.venueMarketId, row.id);
  const lockedOf = new Map(locked.map((row) => [row.venueMarketId, row]));
  const changes = (await completed(tx, venue, markets)).flatMap((market) => {
    const before = lockedOf.get(market.marketId);
    const row = toRow(market);
    if (before === undefined || before.contentHash === row.content_hash) return [];
    if (market.ageMs !== undefined && before.unchangedMs < market.ageMs) return [];
    if (market.statedAtMs !== undefined && market.statedAtMs < (before.statedAt?.getTime() ?? 0)) return [];
    return [{ market, pk: before.id, row: { ...row, id: String(before.id) } }];
  });
  if (changes.length === 0) return none;
  const concerned = changes.filter(({ market }) => {
    const before = lockedOf.get(market.marketId);
    return (
      market.resolutionSteps !== undefined || before?.hasState || before?.isOfFormer || isFinal(before?.status ?? '')
    );
  });
  const standings = await readStandings(
    tx,
    concerned.map(({ pk }) => pk),
  );
  const rows = changes.map(({ market, pk, row }) => ({ ...row, ...stateAfter(market, standings.get(pk) ?? NOWHERE) }));
  const changedAt = await keepVersions(
    tx,
    changes.map(({ pk }) => pk),
  );
  await tx.query(UPDATE_MARKETS, [JSON.stringify(rows), changedAt]);
  const ofFormer = changes.flatMap(({ market, pk }) => (lockedOf.get(market.marketId)?.isOfFormer ? [pk] : []));
  if (ofFormer.length > 0) await tx.query(FORGET_FORMER, [ofFormer]);
  const formerEvents = rows.flatMap((row) => {
    const former = lockedOf.get(row.market_id)?.eventId;
    return former === undefined || former === null || former === row.event_id ? [] : [former];
  });
  const resolutions = changes.flatMap(({ market, pk }) => {
    const standing = standings.get(pk);
    const before = lockedOf.get(market.marketId);
    // The former release stored the result of a market without a timeline before this one knew the market.
    const isOld = isFinal(before?.status ?? '') && before?.isOfFormer !== true;
    return timelineOf(pk, market, standing ?? NOWHERE, standing !== undefined || !isOld);
  });
  const undecided = changes.flatMap(({ market, pk }) => (standings.has(pk) && !isFinal(market.status) ? [pk] : []));
  return { markets: changes.map(({ market }) => market), formerEvents, resolutions, undecided };
}
