import { writeMarkets } from '../../src/store/catalog/markets.ts';
import { Partitions } from '../../src/store/db/partitions.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { createKalshiAdapter } from '../../src/venues/kalshi/adapter.ts';
import { createPolymarketAdapter } from '../../src/venues/polymarket/adapter.ts';
import type { VenueAdapter } from '../../src/venues/port.ts';

export type SweptVenue = 'kalshi' | 'polymarket';

/** Without limits: the catalog is not measured here. */
const HTTP = { requestsPerSecond: 10_000 };

function adapterOf(venue: SweptVenue, url: string): VenueAdapter {
  if (venue === 'kalshi') return createKalshiAdapter({ url: `${url}/kalshi/trade-api/v2`, http: HTTP });
  const urls = { gamma: `${url}/gamma`, clob: `${url}/clob`, data: `${url}/data` };
  return createPolymarketAdapter({ urls, http: HTTP });
}

const OPEN_MARKETS = sql(
  'bench_open_markets',
  `SELECT count(*)::int AS markets FROM market WHERE venue = $1 AND status = 'open' AND gone_at IS NULL`,
);

/** Stores the pages of a whole walk over the catalog of a venue. Returns the number of its open markets. */
export async function storeCatalog(db: Database, venue: SweptVenue, simulatorUrl: string): Promise<number> {
  await new Partitions(db).ensureAroundNow('price_history');
  const adapter = adapterOf(venue, simulatorUrl);
  const call = { signal: new AbortController().signal, now: Date.now };
  let position: unknown = null;
  for (let more = true; more; ) {
    const page = await adapter.pollMarkets(position, call);
    const { records, sweep } = page;
    await db.transaction((tx) => writeMarkets(tx, venue, adapter.currency, records, Date.now(), sweep?.startedAtMs));
    ({ position, more } = page);
  }
  await adapter.close();
  const [open] = await db.query<{ markets: number }>(OPEN_MARKETS, [venue]);
  return open?.markets ?? 0;
}
