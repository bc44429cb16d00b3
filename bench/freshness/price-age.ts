import { type Database, type Statement, sql } from '../../src/store/db/tx.ts';

/** Ages of the prices of all open markets, in seconds; a market is as fresh as its newest outcome. */
export interface PriceAge {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** Open markets that never had a price; they have no age. */
  readonly unpriced: number;
}

const VIEW = sql('bench_price_view', `SELECT to_regclass('current_price') IS NOT NULL AS exists`);

function ageStatement(prices: 'current_price' | 'latest_price'): Statement {
  return sql(
    `bench_price_age_${prices}`,
    `WITH newest AS (
       SELECT m.id, max(p.as_of) AS as_of FROM market m JOIN outcome o ON o.market_id = m.id
       LEFT JOIN ${prices} p ON p.token_id = o.token_id
       WHERE m.venue = $1 AND m.status = 'open' AND m.gone_at IS NULL GROUP BY m.id),
     ages AS (SELECT extract(epoch FROM clock_timestamp() - as_of)::float AS age FROM newest)
     SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY age) AS p50, percentile_disc(0.99) WITHIN GROUP (ORDER BY age) AS p99,
       max(age) AS max, (count(*) - count(age))::int AS unpriced FROM ages`,
  );
}

const CURRENT = ageStatement('current_price');
const LATEST = ageStatement('latest_price');

/** Reads the ages of a venue. A view of prices with the time of their last confirmation is used if it exists. */
export async function priceAgeReader(db: Database, venue: string): Promise<() => Promise<PriceAge>> {
  const [view] = await db.query<{ exists: boolean }>(VIEW);
  const statement = view?.exists ? CURRENT : LATEST;
  return async () => {
    const [age] = await db.query<PriceAge>(statement, [venue]);
    if (age === undefined) throw new Error('no ages');
    return age;
  };
}

/** The usual state of several samples: the middle p50, and the highest p99 and maximum. */
export function summaryOf(samples: readonly PriceAge[]): PriceAge {
  const sorted = samples.map(({ p50 }) => p50).sort((a, b) => a - b);
  return {
    p50: sorted[Math.floor(sorted.length / 2)] ?? Number.NaN,
    p99: Math.max(...samples.map(({ p99 }) => p99)),
    max: Math.max(...samples.map(({ max }) => max)),
    unpriced: Math.max(...samples.map(({ unpriced }) => unpriced)),
  };
}
