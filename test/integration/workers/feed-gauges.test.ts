import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { closeGaps, countOpenGaps, openGap } from '../../../src/store/feeds/gaps.ts';
import { type FeedReport, reportFeeds } from '../../../src/store/feeds/streamers.ts';
import { gaugesOf } from '../../../workers/process/role-gauges.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { jobContext, testConfig } from './worker-harness.ts';

const test = useTestDatabase();

/** The samples of the feeds by name and venue. */
async function samples(): Promise<Record<string, number>> {
  const config = testConfig(test.url, { VENUES: 'polymarket,kalshi,manifold,solana', FEEDS: 'polymarket,kalshi' });
  const deps = jobContext({ db: test.db, config });
  deps.metrics.collectors.add(...gaugesOf('aggregator', deps).filter(({ name }) => name === 'feeds'));
  const text = await deps.metrics.text();
  const lines = text.matchAll(/^(feed_\w+)\{venue="(\w+)".*\} (\S+)$/gm);
  return Object.fromEntries([...lines].map(([, name, venue, value]) => [`${name} ${venue}`, Number(value)]));
}

it('the gauges of feeds show each feed that is on, over all streamers, and the gaps that last', async () => {
  const before = await samples();
  expect(before).toMatchObject({ 'feed_up polymarket': 0, 'feed_up kalshi': 0 });
  expect(before).not.toHaveProperty('feed_up manifold');
  const report: FeedReport = {
    venue: 'polymarket',
    state: 'live',
    reason: null,
    subscribed: 40,
    messagesPerSecond: 20,
    lagMs: 50,
  };
  await reportFeeds(test.db, 'one', [report, { ...report, venue: 'kalshi', state: 'off', reason: 'no_key' }]);
  await reportFeeds(test.db, 'two', [{ ...report, messagesPerSecond: 60, lagMs: null }]);
  const markets = [await aStoredMarket(test.db), await aStoredMarket(test.db)];
  const gap = { venue: 'polymarket', marketPks: markets.map(({ pk }) => pk), affected: 'books', fromMs: 1_000 };
  await openGap(test.db, { ...gap, gap: randomUUID(), reason: 'silent' });
  expect(await samples()).toEqual({
    'feed_up polymarket': 1,
    'feed_subscribed_outcomes polymarket': 80,
    'feed_messages_per_second polymarket': 80,
    'feed_lag_seconds polymarket': 0.05,
    'feed_gaps_open polymarket': 1,
  });
  await closeGaps(test.db, { ...gap, marketPks: gap.marketPks.slice(1), toMs: 2_000 });
  expect(await countOpenGaps(test.db)).toEqual(new Map([['polymarket', 1]]));
  await closeGaps(test.db, { ...gap, toMs: 2_000 });
  expect(await samples()).toMatchObject({ 'feed_gaps_open polymarket': 0 });
  // A feed without a market to subscribe to has no samples; one that was given up has them.
  const idle: FeedReport = { ...report, state: 'connecting', reason: 'no_markets' };
  await reportFeeds(test.db, 'one', [{ ...report, state: 'given_up', reason: 'no market', nextTryAt: new Date() }]);
  await reportFeeds(test.db, 'two', [idle]);
  expect(await samples()).toMatchObject({ 'feed_up polymarket': 0 });
  await reportFeeds(test.db, 'one', [idle]);
  expect(await samples()).not.toHaveProperty('feed_up polymarket');
});
