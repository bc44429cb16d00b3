import { newMarket, status as statusCondition } from '../../../domain/alerts/conditions/market.ts';
import { correctionsOf, isFinal, knownPayouts, type MarketChange } from '../../../domain/alerts/market-rule.ts';
import type {
  PayoutReason,
  ResolutionFacts,
  ResolutionSource,
  ResolutionState,
  ResolutionTransition,
} from '../../../domain/markets/resolution.ts';
import type { ApiJson } from '../../../domain/values/api-json.ts';
import { decimal } from '../../../domain/values/decimal.ts';
import {
  feedGapData,
  MAX_GAP_MARKETS,
  marketResolutionData,
  marketRulesData,
  marketStatusData,
  newMarketData,
  type TradeBound,
  tradeData,
} from '../../../domain/webhooks/broadcast.ts';
import type { BroadcastEvent } from '../../../domain/webhooks/event.ts';
import { readRules } from '../../catalog/market-rules.ts';
import { type Queryable, sql } from '../../db/tx.ts';
import { readMarketChanges } from '../market-rules.ts';
import { wholeMs } from '../rules.ts';

/** A fact for every account with a webhook that lists its type. */
export interface Fact {
  type: BroadcastEvent;
  /** Its identity: the fact has one event per account. */
  identity: string;
  /** When it was stored, epoch milliseconds. */
  atMs: number;
  data: ApiJson;
  /** The group of marks that caused it. */
  group: string;
  /** The market and event of a trade, for the webhooks that pin one. */
  ids?: readonly string[];
  /** Of a fact that only corrects a result: its reports before. A webhook that emitted one of them emits the correction. */
  corrects?: readonly Pick<Fact, 'atMs' | 'data'>[];
}

const MARKETS = sql(
  'broadcast_markets',
  `SELECT id, venue, venue_market_id AS market_id, event_id, title, category, created_at, close_at, url
   FROM market WHERE id = ANY ($1::bigint[])`,
);

interface MarketRow {
  id: bigint;
  venue: string;
  marketId: string;
  eventId: string | null;
  title: string;
  category: string | null;
  createdAt: Date | null;
  closeAt: Date | null;
  url: string | null;
}

/**
 * The changes of markets since a moment each, epoch milliseconds. The change of a status, and of a reported result, has its time in its
 * identity.
 */
export async function readMarketFacts(
  db: Queryable,
  changedOf: ReadonlyMap<bigint, { sinceMs: number; group: string }>,
): Promise<Fact[]> {
  if (changedOf.size === 0) return [];
  const pks = [...changedOf.keys()];
  const rows = new Map((await db.query<MarketRow>(MARKETS, [pks])).map((row) => [row.id, row]));
  const changes = await readMarketChanges(db, pks);
  return pks.flatMap((pk): Fact[] => {
    const row = rows.get(pk);
    const { sinceMs = 0, group = '' } = changedOf.get(pk) ?? {};
    return row === undefined ? [] : factsOfMarket(row, changes.get(pk) ?? [], { sinceMs, group });
  });
}

const isStatusReport = (change: MarketChange) => statusCondition.isReported(change);

function factsOfMarket(
  row: MarketRow,
  changes: readonly MarketChange[],
  { sinceMs, group }: { sinceMs: number; group: string },
): Fact[] {
  const market = { ...row, eventId: row.eventId ?? undefined, category: row.category ?? undefined };
  const corrections = correctionsOf(changes, isStatusReport);
  const correctionOf = new Map(corrections.map((correction) => [correction.change.n, correction]));
  const statusOf = (change: MarketChange) => {
    const { status, former, atMs, winner, resolution } = change;
    const correction = correctionOf.get(change.n);
    return marketStatusData({
      ...market,
      status,
      previousStatus: former ?? status,
      winningOutcomeId: isFinal(status) ? (winner ?? undefined) : undefined,
      resolution: isFinal(status) ? (resolution ?? undefined) : undefined,
      observedAt: new Date(atMs),
      corrected: correction && { previousWinner: correction.previousWinner, payouts: knownPayouts(change) },
    });
  };
  const recent = changes.filter(({ atMs }) => atMs >= sinceMs);
  return recent.flatMap((change): Fact[] => {
    const { atMs, status } = change;
    const common = { atMs, group };
    if (newMarket.isReported(change)) {
      const { createdAt, closeAt, url } = row;
      const times = { createdAt: createdAt ?? undefined, closeAt: closeAt ?? undefined, observedAt: new Date(atMs) };
      const data = newMarketData({ ...market, ...times, status, url: url ?? undefined });
      return [{ ...common, type: 'new_market', identity: `${row.venue}:${row.marketId}`, data }];
    }
    const correction = correctionOf.get(change.n);
    const isStatus = isStatusReport(change);
    if (!isStatus && correction === undefined) return [];
    const reports = (correction?.earlier ?? []).filter(isStatusReport);
    const corrects = reports.map((report) => ({ atMs: report.atMs, data: statusOf(report) }));
    return [
      {
        ...common,
        type: 'market_status',
        identity: `${row.venue}:${row.marketId}:${change.n}`,
        data: statusOf(change),
        ...(!isStatus && { corrects }),
      },
    ];
  });
}

const RESOLUTIONS = sql(
  'broadcast_resolutions',
  `SELECT * FROM (
     SELECT r.*, lag(r.state, 1, 'none') OVER (PARTITION BY r.market_id ORDER BY r.n) AS previous_state, ${wholeMs('r.received_at')} AS at_ms
     FROM market_resolution r WHERE r.market_id = ANY ($1::bigint[])) r
   WHERE r.is_report ORDER BY r.market_id, r.n`,
);

interface ResolutionRow {
  marketId: bigint;
  n: number;
  transition: ResolutionTransition;
  state: ResolutionState;
  previousState: ResolutionState;
  round: number | null;
  at: Date | null;
  atMs: bigint;
  payouts: { outcomeId: string; payout: string }[] | null;
  reason: PayoutReason | null;
  source: ResolutionSource;
  facts: ResolutionFacts;
}

/** The new rows of the timelines of markets since a moment each. */
export async function readResolutionFacts(
  db: Queryable,
  changedOf: ReadonlyMap<bigint, { sinceMs: number; group: string }>,
): Promise<Fact[]> {
  if (changedOf.size === 0) return [];
  const pks = [...changedOf.keys()];
  const rows = await db.query<ResolutionRow>(RESOLUTIONS, [pks]);
  const markets = rows.length === 0 ? [] : await db.query<MarketRow>(MARKETS, [pks]);
  const marketOf = new Map(markets.map((market) => [market.id, market]));
  return rows.flatMap((row): Fact[] => {
    const market = marketOf.get(row.marketId);
    const { sinceMs = 0, group = '' } = changedOf.get(row.marketId) ?? {};
    const atMs = Number(row.atMs);
    if (market === undefined || atMs < sinceMs) return [];
    const data = marketResolutionData({
      ...market,
      ...row.facts,
      marketId: market.marketId,
      eventId: market.eventId ?? undefined,
      category: market.category ?? undefined,
      transition: row.transition,
      state: row.state,
      previousState: row.previousState,
      round: row.round ?? undefined,
      at: row.at ?? undefined,
      payouts: row.payouts?.map(({ outcomeId, payout }) => ({ outcomeId, payout: decimal(payout) })) ?? null,
      reason: row.reason ?? undefined,
      source: row.source,
      observedAt: new Date(atMs),
    });
    const identity = `${market.venue}:${market.marketId}:${row.n}`;
    return [{ type: 'market_resolution', identity, atMs, group, data }];
  });
}

/**
 * The changes of the rules of markets since a moment each, epoch milliseconds. The number of a version never changes, so it is the identity
 * of the change.
 */
export async function readRulesFacts(
  db: Queryable,
  changedOf: ReadonlyMap<bigint, { sinceMs: number; group: string }>,
): Promise<Fact[]> {
  const changed = [...(await readRules(db, [...changedOf.keys()]))].flatMap(([pk, versions]) => {
    const { sinceMs = 0, group = '' } = changedOf.get(pk) ?? {};
    return versions.flatMap(({ version, hash, sinceMs: atMs }) => {
      const previousHash = versions[version - 2]?.hash;
      return previousHash === undefined || atMs < sinceMs ? [] : [{ pk, group, version, hash, previousHash, atMs }];
    });
  });
  if (changed.length === 0) return [];
  const rows = await db.query<MarketRow>(MARKETS, [changed.map(({ pk }) => pk)]);
  const rowOf = new Map(rows.map((row) => [row.id, row]));
  return changed.flatMap(({ pk, group, atMs, ...rules }): Fact[] => {
    const row = rowOf.get(pk);
    if (!row) return [];
    const market = { ...row, eventId: row.eventId ?? undefined, category: row.category ?? undefined };
    const data = marketRulesData({ ...market, ...rules, observedAt: new Date(atMs) });
    return [{ type: 'market_rules', identity: `${row.venue}:${row.marketId}:${rules.version}`, atMs, data, group }];
  });
}

/** A correction of a price changes less than this (`ROUNDING` of `src/store/series/trade-reread.ts`). */
const CORRECTED_DIGITS = '1e-9';

/**
 * The trades that were observed at moments of tokens. An observation has no id of its trade, so its time, price and size find the trade, or
 * several equal ones of the instant. A re-read may have corrected the last digits of the price of the trade since.
 */
const TRADES = sql(
  'broadcast_trades',
  `WITH wanted AS MATERIALIZED (
     SELECT c.token_id, c.at_ms, u.label, m.venue, m.venue_market_id AS market_id, m.event_id, m.title, m.category
     FROM unnest($1::bigint[], $2::bigint[]) AS c (token_id, at_ms)
     JOIN outcome u ON u.token_id = c.token_id JOIN market m ON m.id = u.market_id
     WHERE m.venue_market_id = ANY ($3::text[]) OR m.event_id = ANY ($4::text[]) OR $5::numeric IS NOT NULL),
   fresh AS MATERIALIZED (
     SELECT w.token_id, w.at_ms, o.venue_at, o.price AS seen_price, o.size AS seen_size, min(o.n) AS n
     FROM wanted w JOIN observation o
       ON o.token_id = w.token_id AND o.received_at = timestamptz 'epoch' + w.at_ms * interval '1 millisecond' AND o.size IS NOT NULL
     WHERE w.market_id = ANY ($3::text[]) OR w.event_id = ANY ($4::text[]) OR o.price * o.size >= $5::numeric
     GROUP BY w.token_id, w.at_ms, o.venue_at, o.price, o.size)
   SELECT f.token_id, f.at_ms, t.trade_id, t.price, t.size, t.side, t.ts AS traded_at, k.mint AS token_mint, k.currency, w.label, w.venue,
     w.market_id, w.event_id, w.title, w.category
   FROM fresh f JOIN wanted w ON w.token_id = f.token_id AND w.at_ms = f.at_ms JOIN token k ON k.id = f.token_id
   JOIN trade t ON t.token_id = f.token_id AND t.ts = f.venue_at AND t.size = f.seen_size
     AND abs(t.price - f.seen_price) < ${CORRECTED_DIGITS}
   ORDER BY f.n, t.trade_id COLLATE "C"`,
);

interface TradeRow {
  tokenId: bigint;
  atMs: bigint;
  tradeId: string;
  price: string;
  size: string;
  side: number | null;
  tradedAt: Date;
  tokenMint: string;
  currency: string;
  label: string;
  venue: string;
  marketId: string;
  eventId: string | null;
  title: string;
  category: string | null;
}

/** The trades of these moments that are within one of the bounds. */
export async function readTradeFacts(
  db: Queryable,
  observed: readonly { tokenId: bigint; atMs: bigint; group: string }[],
  bounds: readonly TradeBound[],
): Promise<Fact[]> {
  if (bounds.length === 0 || observed.length === 0) return [];
  const ids = (by: 'market' | 'event') => bounds.flatMap((bound) => (bound.by === by ? bound.ids : []));
  const least = bounds.flatMap((bound) => (bound.by === 'notional' ? [bound.atLeast] : []));
  const rows = await db.query<TradeRow>(TRADES, [
    observed.map(({ tokenId }) => tokenId),
    observed.map(({ atMs }) => atMs),
    ids('market'),
    ids('event'),
    least.length === 0 ? null : Math.min(...least),
  ]);
  const groupOf = new Map(observed.map(({ tokenId, atMs, group }) => [`${tokenId} ${atMs}`, group]));
  return rows.map(({ eventId, category, label, side, price, size, ...row }): Fact => {
    const observedAt = new Date(Number(row.atMs));
    const data = tradeData({
      ...row,
      eventId: eventId ?? undefined,
      category: category ?? undefined,
      tokenSymbol: label,
      price: decimal(price),
      size: decimal(size),
      side: side === null ? undefined : side > 0 ? 'buy' : 'sell',
      observedAt,
    });
    return {
      type: 'trade',
      identity: `${row.venue}:${row.tokenMint}:${row.tradeId}`,
      atMs: observedAt.getTime(),
      data,
      group: groupOf.get(`${row.tokenId} ${row.atMs}`) ?? '',
      ids: [row.marketId, ...(eventId === null ? [] : [eventId])],
    };
  });
}

const GAPS = sql(
  'broadcast_gaps',
  `WITH named AS MATERIALIZED (SELECT id, gap FROM feed_gap WHERE id = ANY ($1::bigint[]))
   SELECT g.gap, ARRAY(SELECT n.id FROM named n WHERE n.gap = g.gap) AS ids, min(g.venue) AS venue, min(g.affected) AS affected,
     min(g.reason) AS cause, min(g.from_at) AS from_at, CASE WHEN bool_and(g.to_at IS NOT NULL) THEN max(g.to_at) END AS to_at,
     count(*)::int AS markets,
     CASE WHEN count(*) <= ${MAX_GAP_MARKETS} THEN array_agg(m.venue_market_id ORDER BY m.venue_market_id COLLATE "C") END AS market_ids
   FROM feed_gap g JOIN market m ON m.id = g.market_id
   WHERE g.gap IN (SELECT gap FROM named) GROUP BY g.gap ORDER BY min(g.id)`,
);

interface GapRow {
  gap: string;
  /** The rows that marks name. */
  ids: bigint[];
  venue: string;
  affected: string;
  cause: string;
  fromAt: Date;
  toAt: Date | null;
  markets: number;
  marketIds: string[] | null;
}

export interface GapCause {
  kind: 'gapBegan' | 'gapEnded';
  /** A row of the gap. */
  rowId: bigint;
  atMs: number;
  group: string;
}

/**
 * The beginning of a gap that lasts, and the end of a gap in all of its markets. A mark of an end without the end of the last market is no
 * fact: the mark of the last one follows.
 */
export async function readGapFacts(db: Queryable, causes: readonly GapCause[]): Promise<Fact[]> {
  if (causes.length === 0) return [];
  const rows = await db.query<GapRow>(GAPS, [causes.map(({ rowId }) => rowId)]);
  const rowOf = new Map(rows.flatMap((row) => row.ids.map((id) => [id, row] as const)));
  return causes.flatMap(({ kind, rowId, atMs, group }): Fact[] => {
    const row = rowOf.get(rowId);
    if (!row || (kind === 'gapEnded' && row.toAt === null)) return [];
    const { gap, venue, affected, cause, markets, marketIds } = row;
    const data = feedGapData({
      venue,
      gapId: gap,
      affected,
      cause,
      from: row.fromAt,
      to: row.toAt ?? undefined,
      markets,
      marketIds: marketIds ?? undefined,
    });
    return [{ type: 'feed_gap', identity: `${gap}:${row.toAt === null ? 'began' : 'ended'}`, atMs, data, group }];
  });
}
