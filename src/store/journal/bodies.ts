import { type Field, type Fields, PROBABILITY_RANGE } from '../../domain/wire/fields.ts';
import {
  BOOK,
  CANDLE,
  LEVEL,
  type MARKET,
  MARKET_CHANGE,
  PAYOUT,
  PRICE,
  RESOLUTION,
  TRADE,
} from '../../domain/wire/market-data.ts';

/** The SQL of each field. The ids of market and outcome are columns of the journal. */
type Columns<T extends Fields> = Readonly<Record<Exclude<keyof T, 'market_id' | 'outcome_id'>, string>>;

/** SQL of the JSON of an object without its unknown fields. */
function bodyOf<T extends Fields>(fields: T, columns: Columns<T>): string {
  const objectOf = (entries: [string, string][]) =>
    `jsonb_build_object(${entries.map(([name, column]) => `'${name}', ${jsonOf(fields[name], column)}`).join(', ')})`;
  const all = Object.entries<string>(columns);
  const known = all.filter(([name]) => !fields[name]?.nullable);
  const nullable = all.filter(([name]) => fields[name]?.nullable);
  const isPlain = nullable.length === 0;
  // Values of `json` keep their digits and their order, so `jsonb` is only for objects with a null.
  return isPlain
    ? `json_strip_nulls(${objectOf(known).replace('jsonb_', 'json_')})`
    : `(jsonb_strip_nulls(${objectOf(known)}) || ${objectOf(nullable)})::json`;
}

function jsonOf(field: Field | undefined, column: string): string {
  switch (field?.kind) {
    case 'decimal':
      return `(${column})::text`;
    case 'probability':
      return `CASE WHEN ${column} BETWEEN ${PROBABILITY_RANGE.least} AND ${PROBABILITY_RANGE.greatest} THEN ${column}::text END`;
    case 'time':
      return secondsOf(column);
    default:
      return column;
  }
}

/** SQL of a moment in epoch seconds. */
export function secondsOf(moment: string): string {
  return `floor(extract(epoch FROM ${moment}))::bigint`;
}

/** Of `latest_price l`. */
export const PRICE_BODY = bodyOf(PRICE, {
  as_of: 'l.as_of',
  price: 'l.price',
  probability: 'l.price',
  best_bid: 'l.bid',
  best_ask: 'l.ask',
});

/** Of `trade t`. */
export const TRADE_BODY = bodyOf(TRADE, {
  trade_id: 't.trade_id',
  timestamp: 't.ts',
  price: 't.price',
  size: 't.size',
  side: `CASE WHEN t.side > 0 THEN 'buy' WHEN t.side < 0 THEN 'sell' END`,
  received_at: 't.received_at',
});

/** The best level of a side, `[price, size, orders]`, as a list. */
const topOf = (side: string) =>
  `CASE WHEN ${side} ->> 0 IS NULL THEN '[]'::json ELSE json_build_array(${bodyOf(LEVEL, {
    price: `${side} -> 0 ->> 0`,
    size: `${side} -> 0 ->> 1`,
    count: `${side} -> 0 -> 2`,
  })}) END`;

/** Of `book_latest b`, with the best level of each side. */
export const BOOK_BODY = bodyOf(BOOK, {
  as_of: 'b.as_of',
  bids: topOf('b.bids'),
  asks: topOf('b.asks'),
  best_bid: 'b.bids -> 0 ->> 0',
  best_ask: 'b.asks -> 0 ->> 0',
  spread: '(b.asks -> 0 ->> 0)::numeric - (b.bids -> 0 ->> 0)::numeric',
});

/** Of `candle c` with the interval 1m and the head `h`. */
export const CANDLE_BODY = bodyOf(
  { interval: { kind: 'text' }, ...CANDLE },
  {
    interval: `'1m'`,
    timestamp: 'c.bucket',
    open: 'c.open',
    high: 'c.high',
    low: 'c.low',
    close: 'c.close',
    volume: 'c.volume',
    notional: 'c.notional',
    trades: 'c.trades',
    closed: 'c.bucket < h.closing',
  },
);

/** Fields of a market that are no columns of `market` with the same name. */
const ELSEWHERE: Readonly<Partial<Record<string, string>>> = {
  market_id: 'm.venue_market_id',
  outcomes: `coalesce(o.outcomes, '[]')`,
  volume: 's.volume',
  volume_24h: 's.volume_24h',
  liquidity: 's.liquidity',
  // Null: a former release stored the market, or it has no timeline.
  resolution_state: `coalesce(m.resolution_state, CASE WHEN m.status IN ('resolved', 'settled') THEN m.status ELSE 'none' END)`,
} satisfies Partial<Record<keyof typeof MARKET, string>>;

/** SQL of each field of `market m` with `market_stats s` and its outcomes `o`. */
export function marketColumn(name: string): string {
  return ELSEWHERE[name] ?? `m.${name}`;
}

/** The facts of `market_resolution r`. */
export const RESOLUTION_FACT_COLUMNS = {
  proposer: `r.facts ->> 'proposer'`,
  disputer: `r.facts ->> 'disputer'`,
  transaction: `r.facts ->> 'transaction'`,
  bond: `r.facts ->> 'bond'`,
  observed_value: `r.facts ->> 'observedValue'`,
  strike: `r.facts ->> 'strike'`,
  raw_state: `r.facts ->> 'rawState'`,
} as const;

/** Of `market_resolution r`. */
export const RESOLUTION_BODY = bodyOf(RESOLUTION, {
  transition: 'r.transition',
  state: 'r.state',
  round: 'r.round',
  at: 'r.at',
  received_at: 'r.received_at',
  payouts: `(SELECT jsonb_agg(${bodyOf(PAYOUT, {
    payout: `p.value ->> 'payout'`,
  })}::jsonb || jsonb_build_object('outcome_id', p.value ->> 'outcomeId') ORDER BY p.ordinality)
     FROM jsonb_array_elements(r.payouts) WITH ORDINALITY p)`,
  reason: 'r.reason',
  source: 'r.source',
  ...RESOLUTION_FACT_COLUMNS,
});

const ofMarket = Object.keys(MARKET_CHANGE).filter((name) => name !== 'market_id');
export const MARKET_BODY = bodyOf<Fields>(
  MARKET_CHANGE,
  Object.fromEntries(ofMarket.map((name) => [name, marketColumn(name)])),
);
