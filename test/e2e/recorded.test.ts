import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { createAdapters } from '../../src/venues/registry.ts';
import { eventually } from '../support/eventually.ts';
import { useTestDatabase } from '../support/postgres/database.ts';
import { type System, startSystem } from '../support/processes/system.ts';
import { venueDataFolder } from '../support/venue-data.ts';

const folder = venueDataFolder('polymarket');

interface PollRow {
  kind: string;
  lastError: string | null;
  hasSucceeded: boolean;
}
const POLLS = sql(
  'test_polls',
  `SELECT kind, last_error, last_success_at IS NOT NULL AS has_succeeded FROM poll_state WHERE kind <> 'witness' ORDER BY kind`,
);
const MARKETS = sql('test_markets', 'SELECT venue_market_id AS id, status FROM market ORDER BY venue_market_id');
const WRONG = sql(
  'test_wrong_rows',
  `SELECT 'price' AS what, token_id FROM latest_price WHERE price NOT BETWEEN 0 AND 1 OR bid NOT BETWEEN 0 AND 1
     OR ask NOT BETWEEN 0 AND 1 OR bid > ask
   UNION ALL SELECT 'market without outcomes', m.id FROM market m WHERE NOT EXISTS (SELECT FROM outcome o WHERE o.market_id = m.id)`,
);

/** The catalog as the adapter in this process reads it: status by market id. */
async function walkCatalog({ exchange }: System): Promise<Map<string, string>> {
  const urls = {
    polymarket: { gamma: exchange.gammaUrl, clob: exchange.clobUrl, data: exchange.dataUrl },
    kalshi: '',
    manifold: '',
    limitless: { api: '' },
    solana: { jupiter: '' },
  };
  const adapter = createAdapters({ venues: ['polymarket'], urls }).get('polymarket');
  if (!adapter) throw new Error('no adapter');
  const statuses = new Map<string, string>();
  const call = { signal: new AbortController().signal, now: Date.now };
  for (let position: unknown = null, more = true; more; ) {
    const page = await adapter.pollMarkets(position, call);
    for (const market of page.records) statuses.set(market.marketId, market.status);
    ({ position, more } = page);
  }
  await adapter.close();
  return statuses;
}

/** Poller processes read recorded payloads, which the exchange serves verbatim. */
describe.skipIf(folder === undefined)('the pollers over recorded payloads', () => {
  const database = useTestDatabase();
  let system: System;
  let db: Database;
  beforeAll(async () => {
    db = database.db;
    system = await startSystem({ databaseUrl: database.url, exchange: { recorded: folder } });
  });
  afterAll(() => system.stop());

  it('complete a catalog walk and succeed at every kind of poll', async () => {
    const isDone = (polls: PollRow[]) => polls.length === 4 && polls.every((poll) => poll.hasSucceeded);
    const polls = await eventually(() => db.query<PollRow>(POLLS), isDone);
    expect(polls.filter((poll) => poll.lastError !== null)).toEqual([]);
    const expected = await walkCatalog(system);
    const stored = await eventually(
      () => db.query<{ id: string; status: string }>(MARKETS),
      (rows) => rows.length >= expected.size,
    );
    expect(new Map(stored.map((row) => [row.id, row.status]))).toEqual(expected);
    expect([...expected.values()]).toEqual(expect.arrayContaining(['open', 'resolved']));
  });

  it('store no impossible rows', async () => {
    expect(await db.query(WRONG)).toEqual([]);
  });

  it('store a recorded market that the API serves with its ids, title and book', async () => {
    const [book] = JSON.parse(readFileSync(join(folder ?? '', '2026-05_fed_event/clob-books.json'), 'utf8')) as {
      market: string;
      asset_id: string;
      bids: { price: string; size: string }[];
    }[];
    const best = book?.bids.at(-1);
    const read = () =>
      system.read<{ outcome_id: string; bids: { price: number; size: number }[] }>(
        `/v1/polymarket/markets/${book?.market}/orderbook?outcome_id=${book?.asset_id}`,
      );
    const served = await eventually(
      () => read().catch(() => null),
      (answer) => answer !== null,
    );
    expect(served?.bids[0]).toMatchObject({ price: Number(best?.price), size: Number(best?.size) });
  });
});
