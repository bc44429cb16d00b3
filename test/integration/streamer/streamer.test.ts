import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Exchange } from '../../../sim/exchange.ts';
import type { Config } from '../../../src/config/config.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { readFeedStates } from '../../../src/store/feeds/feed-streamers.ts';
import { eventually } from '../../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { LosableDatabase } from '../workers/worker-harness.ts';
import { type FeedVenue, quotesAgree, runStreamer, startFeedWorld, storeCatalog } from './streamer-harness.ts';

const OWNERS = sql('test_part_owners', 'SELECT part, owner FROM feed_part WHERE owner IS NOT NULL ORDER BY part');
const GAPS = sql('test_feed_gaps', 'SELECT reason, to_at IS NULL AS is_open FROM feed_gap');
const BOOKS = sql('test_feed_books', 'SELECT count(*)::int AS books FROM book_latest');

let test: TestDatabase;
let exchange: Exchange;
let config: Config;
const running: { stop(): Promise<void> }[] = [];

beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.drop());
beforeEach(async () => {
  ({ exchange, config } = await startFeedWorld(test.url, 5));
});
afterEach(async () => {
  for (const each of running.splice(0)) await each.stop();
  await exchange.close();
});

function start(venue: FeedVenue, streamer: string, db = test.db) {
  const started = runStreamer({ db, config, exchange, venue, streamer });
  running.push(started);
  return started;
}
const gaps = () => test.db.query<{ reason: string; isOpen: boolean }>(GAPS);
const owners = () => test.db.query<{ part: number; owner: string }>(OWNERS);

describe.each(['polymarket', 'kalshi', 'limitless'] as const)('a streamer of %s', (venue) => {
  it('stores the quotes and books of the exchange', async () => {
    await storeCatalog(test.db, config, venue);
    start(venue, `one-${venue}`);
    await quotesAgree(test.db, exchange, venue);
    for (let second = 0; second < 30; second += 1) exchange.step(1);
    await quotesAgree(test.db, exchange, venue);
    await eventually(
      async () => (await readFeedStates(test.db, [venue])).get(venue),
      (state) => state?.state === 'live' && state.subscribed > 6,
    );
    await eventually(
      () => test.db.query<{ books: number }>(BOOKS),
      ([row]) => (row?.books ?? 0) > 6,
    );
  });
});
