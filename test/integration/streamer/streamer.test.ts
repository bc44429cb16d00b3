import { isDeepStrictEqual } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { enabledVenues } from '../../../api/reads/venue-catalog.ts';
import type { Exchange } from '../../../sim/exchange.ts';
import type { Config } from '../../../src/config/config.ts';
import { Database, type Statement, sql } from '../../../src/store/db/tx.ts';
import { createParts } from '../../../src/store/feeds/parts.ts';
import { readFeedStates } from '../../../src/store/feeds/streamers.ts';
import { findPlaces, ledgerTape, storedTapes } from '../../e2e/venue-ledger.ts';
import { eventually } from '../../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { startTestApi } from '../api/api-harness.ts';
import { capturedLog, LosableDatabase } from '../workers/worker-harness.ts';
import {
  type FeedVenue,
  pollTape,
  quotesAgree,
  runStreamer,
  startFeedWorld,
  storeCatalog,
} from './streamer-harness.ts';

const SEEN_BEFORE = sql('test_seen_before', `UPDATE feed_part SET seen_at = clock_timestamp() - interval '1 hour'`);
const MOVED_FOR = sql(
  'test_moved_for',
  `SELECT extract(epoch FROM clock_timestamp() - from_at)::float AS seconds FROM feed_gap WHERE reason = 'moved'`,
);
const OWNERS = sql('test_part_owners', 'SELECT part, owner FROM feed_part WHERE owner IS NOT NULL ORDER BY part');
const GAPS = sql('test_feed_gaps', 'SELECT reason, to_at IS NULL AS is_open FROM feed_gap');
const BOOKS = sql('test_feed_books', 'SELECT count(*)::int AS books FROM book_latest');
const TRADES = sql('test_feed_trades', 'SELECT trade_id, ts FROM trade');
const MISSING = sql(
  'test_announced_markets',
  'SELECT count(*)::int AS markets FROM market_stats WHERE missing_since IS NOT NULL',
);
const EXPIRE = sql(
  'test_expire_all_parts',
  `UPDATE feed_part SET lease_until = clock_timestamp() - interval '1 ms' WHERE owner IS NOT NULL`,
);
const ENDED = sql(
  'test_ended_parts',
  'SELECT count(*)::int AS ended FROM feed_part WHERE owner IS NOT NULL AND lease_until <= clock_timestamp()',
);
const STEAL = sql(
  'test_steal_parts',
  `UPDATE feed_part SET owner = 'thief', lease_until = clock_timestamp() + interval '1 minute'`,
);
const RETURN = sql('test_return_parts', 'UPDATE feed_part SET owner = NULL, lease_until = NULL');
const POLLED = sql(
  'test_newer_poll',
  `UPDATE latest_price SET bid = 0.01, ask = 0.99, as_of = clock_timestamp() WHERE token_id = (
     SELECT t.id FROM token t WHERE t.mint = $1)`,
);

/** Losses that only a wrong or missing message causes. */
const CONTENT_LOSSES = new Set(['sequence_gap', 'negative_size', 'rejected_book']);

let test: TestDatabase;
let exchange: Exchange;
let config: Config;
const running: { stop(): Promise<void> }[] = [];

beforeEach(async () => {
  test = await createTestDatabase();
  ({ exchange, config } = await startFeedWorld(test.url, 5));
});
afterEach(async () => {
  for (const each of running.splice(0)) await each.stop();
  await exchange.close();
  await test.drop();
});

function start(venue: FeedVenue, streamer: string, db = test.db) {
  const started = runStreamer({ db, config, exchange, venue, streamer });
  running.push(started);
  return started;
}
const readTrades = () => test.db.query<{ tradeId: string; ts: Date }>(TRADES);
const gaps = () => test.db.query<{ reason: string; isOpen: boolean }>(GAPS);
const owners = () => test.db.query<{ part: number; owner: string }>(OWNERS);
/** A gap with this reason was recorded, and every gap has ended. */
const haveEnded = (reason: string) => (rows: readonly { reason: string; isOpen: boolean }[]) =>
  rows.some((row) => row.reason === reason) && rows.every(({ isOpen }) => !isOpen);
const stateOf = async (venue: string) => (await readFeedStates(test.db, [venue])).get(venue);

describe.each(['polymarket', 'kalshi', 'limitless'] as const)('a streamer of %s', (venue) => {
  it('stores the quotes and books of the exchange', async () => {
    await storeCatalog(test.db, config, venue);
    start(venue, 'one');
    await quotesAgree(test.db, exchange, venue);
    for (let second = 0; second < 30; second += 1) exchange.step(1);
    await quotesAgree(test.db, exchange, venue);
    await eventually(
      () => stateOf(venue),
      (state) => state?.state === 'live' && state.subscribed > 6,
    );
    await eventually(
      () => test.db.query<{ books: number }>(BOOKS),
      ([row]) => (row?.books ?? 0) > 6,
    );
    // A busy machine can cost a lease or delay a snapshot; it changes no message.
    const reasons = (await gaps()).map(({ reason }) => reason);
    expect(reasons.filter((reason) => CONTENT_LOSSES.has(reason))).toEqual([]);
  });

  it('records a gap when the connection ends, and ends it with new snapshots', async () => {
    await storeCatalog(test.db, config, venue);
    start(venue, 'one');
    await quotesAgree(test.db, exchange, venue);
    exchange.addFault({
      host: venue === 'polymarket' ? 'clob' : venue,
      kind: 'socket',
      socket: { how: 'restart' },
    });
    exchange.step(5);
    await quotesAgree(test.db, exchange, venue);
    await eventually(gaps, haveEnded('disconnected'));
  });
});

describe('a streamer of manifold', () => {
  it('stores trades with the ids of the polls, and marks announced markets for a look-up', async () => {
    await storeCatalog(test.db, config, 'manifold');
    const { producer } = start('manifold', 'one');
    await eventually(
      () => stateOf('manifold'),
      (state) => (state?.subscribed ?? 0) > 6,
    );
    const first = await eventually(
      async () => {
        exchange.step(1);
        return readTrades();
      },
      (trades) => trades.length > 3,
    );
    const firstMs = Math.min(...first.map(({ ts }) => ts.getTime()));
    // The exchange announces each second as a whole.
    const [from, until] = [Math.floor(firstMs / 1_000), exchange.second() + 1];
    const ledger = ledgerTape('manifold', exchange.ledger().trades, await findPlaces(exchange), from, until);
    await eventually(
      async () => (await storedTapes(test.db, from, until)).get('manifold') ?? [],
      (stored) => isDeepStrictEqual(stored, ledger),
    );
    const known = new Set((await readTrades()).map(({ tradeId }) => tradeId));
    await pollTape(test.db, config, 'manifold');
    const polled = await readTrades();
    expect(polled.filter(({ tradeId, ts }) => !known.has(tradeId) && ts.getTime() > firstMs)).toEqual([]);
    const market = exchange.state().markets.find(({ phase }) => phase === 'open');
    exchange.steer({ conditionId: market?.conditionId ?? '', action: 'resolve' });
    await eventually(
      () => test.db.query<{ markets: number }>(MISSING),
      ([row]) => (row?.markets ?? 0) > 0,
    );
    await eventually(
      async () => producer.woken,
      (woken) => woken.includes('poll-markets'),
    );
  });
});

describe('two streamers', () => {
  it('share the parts, and one takes all of them over when the other ends without a word', async () => {
    await storeCatalog(test.db, config, 'polymarket');
    const lost = new LosableDatabase(test.db.dataSource);
    start('polymarket', 'a', lost);
    start('polymarket', 'b');
    const partsOf = async (name: string) => (await owners()).filter(({ owner }) => owner === name).length;
    const byOwner = async () => ({ a: await partsOf('a'), b: await partsOf('b') });
    await eventually(byOwner, ({ a, b }) => a >= 2 && b >= 2);
    await quotesAgree(test.db, exchange, 'polymarket');
    // It runs on, and its statements reach the database no more, as after a stop or a split network.
    lost.loseStatements = ['renew_feed_parts', 'report_feeds', 'claim_feed_parts', 'running_feed_streamers'];
    lost.loseBefore = () => true;
    await eventually(byOwner, ({ b }) => b === 5);
    // Now it reaches the database again, with changes that it read meanwhile.
    exchange.step(3);
    lost.loseBefore = () => false;
    exchange.step(3);
    await quotesAgree(test.db, exchange, 'polymarket');
    // Another gap, such as that of a late snapshot, can end before this one begins.
    await eventually(gaps, haveEnded('moved'));
  });

  it('share the parts when the first one could not give its parts back', async () => {
    await storeCatalog(test.db, config, 'polymarket');
    const lost = new LosableDatabase(test.db.dataSource);
    lost.loseStatements = ['release_feed_parts'];
    const { log, lines } = capturedLog();
    running.push(runStreamer({ db: lost, config, exchange, venue: 'polymarket', streamer: 'a', log }));
    await eventually(owners, (rows) => rows.length === 5);
    start('polymarket', 'b');
    await eventually(
      async () => lines,
      (all) => all.some((line) => line.includes('round of the streamer failed')),
    );
    lost.loseStatements = [];
    await eventually(owners, (rows) => rows.filter(({ owner }) => owner === 'b').length === 2);
    await quotesAgree(test.db, exchange, 'polymarket');
  });

  it('give parts back when they stop', async () => {
    await storeCatalog(test.db, config, 'polymarket');
    const first = start('polymarket', 'a');
    await eventually(owners, (rows) => rows.length === 5);
    await first.stop();
    expect(await owners()).toEqual([]);
    expect(await stateOf('polymarket')).toMatchObject({ state: 'stopped' });
  });
});

describe('a streamer whose claim has no answer', () => {
  it('records the whole time since the former reader, although it renewed the lease before it read the part', async () => {
    await storeCatalog(test.db, config, 'polymarket');
    await createParts(test.db, 'polymarket', 5);
    await test.db.query(SEEN_BEFORE);
    let lost = 0;
    class AnswerLost extends Database {
      override async query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
        const rows = await super.query<Row>(statement, values);
        if (statement.name !== 'claim_feed_parts' || rows.length === 0 || lost > 0) return rows;
        lost += 1;
        throw new Error('the answer was lost');
      }
    }
    start('polymarket', 'a', new AnswerLost(test.db.dataSource));
    const moved = await eventually(
      () => test.db.query<{ seconds: number }>(MOVED_FOR),
      (rows) => rows.length > 0,
    );
    expect(lost).toBe(1);
    for (const { seconds } of moved) expect(seconds).toBeGreaterThan(3_000);
  });
});

describe('a streamer that is late', () => {
  it('keeps its parts, its connections and its silence when nobody else reads them', async () => {
    await storeCatalog(test.db, config, 'limitless');
    const { log, lines } = capturedLog();
    const late = runStreamer({ db: test.db, config, exchange, venue: 'limitless', streamer: 'one', log });
    running.push(late);
    await quotesAgree(test.db, exchange, 'limitless');
    const before = (await gaps()).length;
    for (let round = 0; round < 5; round += 1) {
      await test.db.query(EXPIRE);
      exchange.step(1);
      await eventually(
        () => test.db.query<{ ended: number }>(ENDED),
        ([row]) => row?.ended === 0,
      );
    }
    await quotesAgree(test.db, exchange, 'limitless');
    expect(lines.filter((line) => line.includes('parts of a feed lost'))).toEqual([]);
    expect((await gaps()).slice(before).filter(({ reason }) => reason === 'moved')).toEqual([]);
  });

  it('names the loss of its parts in few lines when another one takes them again and again', async () => {
    await storeCatalog(test.db, config, 'limitless');
    const { log, lines } = capturedLog();
    running.push(runStreamer({ db: test.db, config, exchange, venue: 'limitless', streamer: 'one', log }));
    const times = () =>
      lines
        .map((line) => JSON.parse(line) as { msg: string; level: string; times: number })
        .filter(({ msg }) => msg === 'parts of a feed lost: another streamer took them while this one was late');
    const seen = () => times().at(-1)?.times ?? 0;
    while (seen() < 5) {
      const count = seen();
      await eventually(owners, (rows) => rows.length > 0 && rows.every(({ owner }) => owner === 'one'));
      await test.db.query(STEAL);
      await eventually(
        async () => seen(),
        (now) => now > count,
      );
      await test.db.query(RETURN);
    }
    expect(
      times()
        .filter(({ level }) => level === 'warn')
        .map((line) => line.times),
    ).toEqual([1, 2, 4]);
  });
});

describe('a feed whose markets all freeze at once', () => {
  it('is given up as a whole, says when it tries again, and works as soon as the venue does', async () => {
    await storeCatalog(test.db, config, 'polymarket');
    const api = await startTestApi(
      { venues: enabledVenues(['polymarket'], { markets: 60_000, prices: 5_000, books: 5_000, trades: 2_000 }) },
      { beside: { databaseUrl: test.url } },
    );
    running.push({ stop: () => api.close() });
    const client = await api.client();
    let aheadMs = 0;
    const streamer = runStreamer({
      db: test.db,
      config,
      exchange,
      venue: 'polymarket',
      streamer: 'one',
      now: () => Date.now() + aheadMs,
      // Only the missing snapshots show the fault.
      timing: { quietAfterMs: 3_600_000, probeAfterMs: 3_600_000, silentAfterMs: 3_600_000, maxBackoffMs: 2_000 },
    });
    running.push(streamer);
    await quotesAgree(test.db, exchange, 'polymarket');
    const fault = exchange.addFault({ host: 'clob', kind: 'socket', socket: { how: 'freeze' } });
    exchange.addFault({ host: 'clob', kind: 'socket', socket: { how: 'restart' } });
    const feedOfApi = async () => {
      const { body } = await client.market('/v1/venues');
      return (body.data as { feed: { state: string; reason?: string; next_try_at?: number } }[])[0]?.feed;
    };
    // Snapshots are missing after ten seconds.
    const hurry = setInterval(() => {
      aheadMs += 11_000;
    }, 200);
    running.push({ stop: async () => clearInterval(hurry) });
    const feed = await eventually(feedOfApi, (found) => found?.state === 'given_up' && found.next_try_at !== undefined);
    expect(feed?.reason).toMatch(/^no market stays complete: \d+ of \d+ lose changes after new snapshots$/);
    clearInterval(hurry);
    exchange.clearFaults(fault.id);
    exchange.step(2);
    await quotesAgree(test.db, exchange, 'polymarket');
    await eventually(feedOfApi, (found) => found?.state === 'live' && found.next_try_at === undefined);
  });
});

describe('the comparison with the polls', () => {
  it('requests a new snapshot when a newer stored quote differs from that of the feed', async () => {
    await storeCatalog(test.db, config, 'polymarket');
    start('polymarket', 'a');
    await quotesAgree(test.db, exchange, 'polymarket');
    const market = exchange.state().markets.find(({ phase, outcomes }) => phase === 'open' && outcomes[0].bestBid);
    const pollUntilGap = async () => {
      const found = await gaps();
      // A gap with another reason ends with a snapshot, which is newer than the poll.
      if (!found.some(({ reason }) => reason === 'differs_from_poll'))
        await test.db.query(POLLED, [market?.outcomes[0].tokenId]);
      return found;
    };
    await eventually(pollUntilGap, haveEnded('differs_from_poll'));
  });
});
