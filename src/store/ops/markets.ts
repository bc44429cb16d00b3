import { type Queryable, sql } from '../db/tx.ts';
import { LEADER_FIRST } from '../series/market-trends.ts';
import type { StoredCandle } from '../series/reads.ts';
import { HISTORY_COLUMNS, type TradeHistory } from '../series/trade-history.ts';

/** An outcome of a market with its latest price, `numeric` text. */
export interface OpsOutcome {
  tokenId: bigint;
  outcomeId: string;
  label: string;
  /** The payout per unit, once known. */
  payout: string | null;
  price: string | null;
  bid: string | null;
  ask: string | null;
  /** When the venue last had the price, and the time of receipt of its last change. */
  asOf: Date | null;
  receivedAt: Date | null;
  /** Active alerts of the outcome. */
  activeAlerts: number;
}

/** The stored state of a market beside its facts. */
export interface OpsMarketState {
  outcomes: OpsOutcome[];
  /** The last time a catalog walk listed it. */
  seenAt: Date | null;
  /** The start of the first sweep that did not list it. */
  missingSince: Date | null;
  /** The venue neither lists it nor answers a look-up by its id. */
  goneAt: Date | null;
  hasBook: boolean;
  /** The number of stored superseded versions. */
  versions: number;
  /** The walk back through its older trades, once requested. */
  history: TradeHistory | null;
}

/** The limit of the count of active alerts per outcome and condition. */
export const MAX_COUNTED_ALERTS = 1_000;

const COUNT_ALERTS = (condition: string) => `(SELECT count(*)::int FROM (SELECT FROM alert a
     WHERE a.token_id = o.token_id AND a.status = 'active' AND a.condition = '${condition}' LIMIT ${MAX_COUNTED_ALERTS}) c)`;

const OUTCOMES = sql(
  'ops_outcomes',
  `SELECT o.token_id, t.mint AS outcome_id, o.label, o.payout, l.price, l.bid, l.ask, l.as_of, l.received_at,
     ${COUNT_ALERTS('above')} + ${COUNT_ALERTS('below')} AS active_alerts
   FROM outcome o JOIN token t ON t.id = o.token_id LEFT JOIN current_price l ON l.token_id = o.token_id
   WHERE o.market_id = $1 ORDER BY o.ordinal`,
);

const STATE = sql(
  'ops_market_state',
  `SELECT m.has_book, m.gone_at, s.seen_at, s.missing_since,
     (SELECT count(*)::int FROM market_version v WHERE v.market_id = m.id) AS versions
   FROM market m LEFT JOIN market_stats s ON s.market_id = m.id WHERE m.id = $1`,
);

const HISTORY = sql('ops_market_history', `SELECT ${HISTORY_COLUMNS} FROM trade_history h WHERE h.market_id = $1`);

/** The state of a market by its internal key; null when it does not exist. */
export async function readOpsMarket(db: Queryable, marketPk: bigint): Promise<OpsMarketState | null> {
  const [state] = await db.query<Omit<OpsMarketState, 'outcomes' | 'history'>>(STATE, [marketPk]);
  if (!state) return null;
  const outcomes = await db.query<OpsOutcome>(OUTCOMES, [marketPk]);
  const [history = null] = await db.query<TradeHistory>(HISTORY, [marketPk]);
  return { ...state, outcomes, history };
}

export interface StoredObservation {
  receivedAt: Date;
  venueAt: Date;
  price: string;
}

const OBSERVATIONS = sql(
  'ops_observations',
  `SELECT received_at, venue_at, price FROM observation
   WHERE token_id = $1 AND received_at > clock_timestamp() - interval '7 days' ORDER BY received_at DESC LIMIT $2`,
);

/** The latest prices that alerts were compared with, newest first; of the last seven days. */
export function readObservations(db: Queryable, tokenId: bigint, limit: number): Promise<StoredObservation[]> {
  return db.query(OBSERVATIONS, [tokenId, limit]);
}

const LAST_CANDLES = sql(
  'ops_last_candles',
  `SELECT bucket::float8 AS bucket, open, high, low, close, volume, notional, trades FROM candle
   WHERE token_id = $1 AND interval_seconds = $2 ORDER BY candle.bucket DESC LIMIT $3`,
);

/** The last stored candles of an outcome, regardless of their age, oldest first. */
export async function readLastCandles(
  db: Queryable,
  tokenId: bigint,
  intervalSeconds: number,
  limit: number,
): Promise<StoredCandle[]> {
  return (await db.query<StoredCandle>(LAST_CANDLES, [tokenId, intervalSeconds, limit])).reverse();
}

/** The latest price of the first outcome of a market, or of the leader among more than two, `numeric` text. */
export interface LeadingPrice {
  marketPk: bigint;
  label: string;
  price: string;
}

const LEADING_PRICES = sql(
  'ops_leading_prices',
  `SELECT k.* FROM unnest($1::bigint[]) AS m (id)
   CROSS JOIN LATERAL (
     SELECT o.market_id AS market_pk, o.label, l.price FROM outcome o LEFT JOIN current_price l ON l.token_id = o.token_id
     WHERE o.market_id = m.id ORDER BY ${LEADER_FIRST} LIMIT 1) k
   WHERE k.price IS NOT NULL`,
);

/** The prices of these markets, in one statement; markets without a price are absent. */
export async function readLeadingPrices(
  db: Queryable,
  marketPks: readonly bigint[],
): Promise<Map<bigint, LeadingPrice>> {
  const rows = marketPks.length === 0 ? [] : await db.query<LeadingPrice>(LEADING_PRICES, [marketPks]);
  return new Map(rows.map((row) => [row.marketPk, row]));
}
