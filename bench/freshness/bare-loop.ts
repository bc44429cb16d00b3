import { Pool } from 'undici';
import { type Database, sql } from '../../src/store/db/tx.ts';
import type { SweptVenue } from './catalog.ts';

const KALSHI_PAGE = 1_000;
const BOOKS_PER_REQUEST = 500;

export interface BareLoop {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

const TOKENS = sql(
  'bench_first_tokens',
  `SELECT t.mint FROM market m JOIN outcome o ON o.market_id = m.id JOIN token t ON t.id = o.token_id
   WHERE m.venue = $1 AND m.status = 'open' AND m.gone_at IS NULL AND o.ordinal = 0 ORDER BY o.token_id`,
);

/** The pages of a sweep, one after the other, parsed and dropped: no overlap, no budget, no database. */
export async function bareLoop(db: Database, venue: SweptVenue, simulatorUrl: string): Promise<BareLoop> {
  const tokens = venue === 'polymarket' ? await db.query<{ mint: string }>(TOKENS, [venue]) : [];
  const pool = new Pool(simulatorUrl, { connections: 1 });
  const begunMs = performance.now();
  const before = process.cpuUsage();
  if (venue === 'kalshi') await readMarkets(pool);
  else await readBooks(pool, tokens);
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - begunMs) / 1_000;
  await pool.close();
  return { seconds, cpuSeconds: (user + system) / 1_000_000 };
}

async function readMarkets(pool: Pool): Promise<void> {
  let cursor: string | undefined;
  do {
    const after = cursor === undefined ? '' : `&cursor=${cursor}`;
    const path = `/kalshi/trade-api/v2/markets?status=open&mve_filter=exclude&limit=${KALSHI_PAGE}${after}`;
    const { body } = await pool.request({ method: 'GET', path });
    ({ cursor } = (await body.json()) as { cursor: string });
  } while (cursor);
}

async function readBooks(pool: Pool, tokens: readonly { mint: string }[]): Promise<void> {
  for (let from = 0; from < tokens.length; from += BOOKS_PER_REQUEST) {
    const asked = tokens.slice(from, from + BOOKS_PER_REQUEST).map(({ mint }) => ({ token_id: mint }));
    const request = { method: 'POST', path: '/clob/books', body: JSON.stringify(asked) } as const;
    const { body } = await pool.request({ ...request, headers: { 'content-type': 'application/json' } });
    await body.json();
  }
}
