import type { ArchiveDay } from '../../../src/domain/archive/file.ts';
import type { ArchiveKind } from '../../../src/domain/archive/kinds.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { type Database, sql } from '../../../src/store/db/tx.ts';
import { storedCoverage } from '../../factories/stored-coverage.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { storedTimeline } from '../../factories/stored-resolution.ts';

/* The days whose archive is disturbed: the market `m` of Polymarket has trades, candles, prices and books on each of them. */

export const DAY_MS = 86_400_000;
/** Postgres keeps finer candles at least for so long. */
export const KEEP_DAYS = 45;
const KEPT_FROM = new Date(Date.now() - KEEP_DAYS * DAY_MS);
/** The days are the last ones of a month whose partition can be dropped. */
export const SEAM_MS = Date.UTC(KEPT_FROM.getUTCFullYear(), KEPT_FROM.getUTCMonth());
export const DAYS = 5;
export const FIRST_MS = SEAM_MS - DAYS * DAY_MS;
export const PARTITION = `trade_${new Date(FIRST_MS).toISOString().slice(0, 7).replace('-', '')}`;
export const RANGE = { start: FIRST_MS / 1000, end: SEAM_MS / 1000 };
export const OUTCOMES = ['yes', 'no', 'a', 'b'].map((label) => `m:${label}`);
/** Candles of one and five minutes of the first day: more than one transaction drops. */
export const CANDLES = OUTCOMES.length * (1_440 + 288);

const FILL_TRADES = sql(
  'test_fill_step_trades',
  `INSERT INTO trade (token_id, ts, trade_id, price, size, side, ordinal)
   SELECT id, to_timestamp($2::float8 / 1000) + n * $3 * interval '1 second' + interval '7 microseconds', 'trade ' || id || ' ' || $2 || ' ' || n,
     1.0 / (n % 97 + 1), n + 0.1234567890123456789, CASE n % 3 WHEN 0 THEN 1 WHEN 1 THEN -1 END, n % 3
   FROM unnest($1::bigint[]) AS t (id), generate_series(0, 86400 / $3::int - 1) AS n`,
);
const FILL_CANDLES = sql(
  'test_fill_step_candles',
  `INSERT INTO candle (token_id, interval_seconds, bucket, open, high, low, close, volume, notional, trades)
   SELECT token_id, s, floor(extract(epoch FROM ts) / s)::bigint * s, (array_agg(price ORDER BY ts))[1], max(price), min(price),
     (array_agg(price ORDER BY ts DESC))[1], sum(size), sum(price * size), count(*)
   FROM trade CROSS JOIN unnest(ARRAY[60, 300, 900, 3600, 14400, 86400]) AS s GROUP BY 1, 2, 3`,
);
const FILL_HISTORY = [
  sql(
    'test_fill_step_prices',
    `INSERT INTO price_history (token_id, received_at, as_of, price, bid, ask)
     SELECT id, at, at - interval '1.000001 seconds', 1.0 / (extract(minute FROM at) + 1), 0.4, NULL
     FROM unnest($1::bigint[]) AS t (id), generate_series(to_timestamp($2::float8 / 1000), to_timestamp($3::float8 / 1000), '17 minutes') AS at`,
  ),
  sql(
    'test_fill_step_books',
    `INSERT INTO book_history (token_id, received_at, as_of, bids, asks)
     SELECT id, at, at, jsonb_build_array(jsonb_build_array('0.4', extract(hour FROM at)::text)), '[["0.6","1",2]]'
     FROM unnest($1::bigint[]) AS t (id), generate_series(to_timestamp($2::float8 / 1000), to_timestamp($3::float8 / 1000), '29 minutes') AS at`,
  ),
];
const AGE_TOKENS = sql('test_age_tokens', 'UPDATE token SET created_at = to_timestamp($1::float8 / 1000)');
const AGE_MARKETS = sql('test_age_step_markets', 'UPDATE market SET updated_at = to_timestamp($1::float8 / 1000)');
const FORMER_VERSION = sql(
  'test_step_market_version',
  `INSERT INTO market_version (market_id, known_until, known_from, facts)
   SELECT id, updated_at, updated_at - interval '1 hour', '{"title": "Will it snow?", "status": "open", "outcomes": [["m:yes", "Yes"]]}'
   FROM market`,
);
/** A day by its number, from 1. */
export const dayOf = (kind: ArchiveKind, number: number): ArchiveDay => {
  const date = new Date(FIRST_MS + (number - 1) * DAY_MS).toISOString().slice(0, 10);
  return { kind, venue: 'polymarket', date };
};
/** SQL of a new row of a day in the catalog. */
export const rowOf = ({ kind, date }: ArchiveDay) => `NEW.kind = '${kind}' AND NEW.date = '${date}'`;

/** Stores the days. The second one also has versions of the market, a transition and judged hours. Returns the keys of the outcomes. */
export async function storeDays(db: Database): Promise<bigint[]> {
  const market = await aStoredMarket(db, { marketId: 'm', labels: ['Yes', 'No', 'A', 'B'] });
  const tokens = market.outcomes.map(({ tokenId }) => tokenId);
  const days = Array.from({ length: DAYS }, (_, day) => FIRST_MS + day * DAY_MS);
  for (const table of ['trade', 'price_history', 'book_history'] as const) await new Partitions(db).ensure(table, days);
  for (const dayMs of days) await db.query(FILL_TRADES, [tokens, dayMs, dayMs === FIRST_MS ? 60 : 960]);
  await db.query(FILL_CANDLES);
  for (const statement of FILL_HISTORY) await db.query(statement, [tokens, FIRST_MS, SEAM_MS - 1]);
  await db.query(AGE_TOKENS, [FIRST_MS]);
  const secondMs = FIRST_MS + DAY_MS + 7_200_000;
  await db.query(AGE_MARKETS, [secondMs]);
  await db.query(FORMER_VERSION);
  const hours = { venue: 'polymarket', kind: 'prices', start: secondMs / 1000 } as const;
  await storedCoverage(db, hours, [{ class: 'observed' }, { class: 'gap', cause: 'pause' }]);
  await storedTimeline(db, market, [
    { transition: 'proposed', state: 'proposed', round: 1, receivedAt: new Date(secondMs), payouts: ['1', '0'] },
  ]);
  return tokens;
}
