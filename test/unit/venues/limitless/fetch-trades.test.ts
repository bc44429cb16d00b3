import { describe, expect, it } from 'vitest';
import type { PageQuery } from '../../../../src/venues/limitless/client.ts';
import { readStretch } from '../../../../src/venues/limitless/fetch-trades.ts';
import { identifyTrades, readFeed } from '../../../../src/venues/limitless/parse-trade.ts';
import { event, NOW_MS, pageOf } from './feed.ts';

type Stretch = Parameters<typeof readStretch>[0];

/** Reads a stretch to its end, and returns the ids that it gives, sorted. */
async function readAll(from: Stretch, list: (query: PageQuery) => ReturnType<typeof pageOf>, pagesPerCall = 2) {
  const ids: string[] = [];
  let left: Stretch | undefined = from;
  for (let calls = 0; left !== undefined && calls < 100; calls += 1) {
    const read = await readStretch(left, {
      list: async (query) => list(query),
      nowMs: NOW_MS,
      limit: 10 + calls,
      pagesPerCall,
      isEnd: () => false,
    });
    ids.push(...identifyTrades(read.rows).records.map((trade) => trade.tradeId));
    ({ left } = read);
  }
  return ids.sort();
}

const idsOf = (rows: readonly unknown[]) =>
  identifyTrades(readFeed(rows, NOW_MS))
    .records.map((trade) => trade.tradeId)
    .sort();
const all: Stretch = { floorMs: NOW_MS - 3_600_000 };

describe('readStretch', () => {
  const feed = Array.from({ length: 47 }, (_, index) =>
    event(1_000 + Math.floor(index / 3) * 50, { price: (index % 7) / 10 }),
  );

  it('gives each row of a feed one id, equal rows too', async () => {
    const equal = [...feed, ...Array(25).fill(event(60_000))];
    expect(new Set(idsOf(equal)).size).toBe(equal.length);
    expect(await readAll(all, (query) => pageOf(equal, query))).toEqual(idsOf(equal));
  });

  it('loses and repeats nothing when rows arrive between any two pages', async () => {
    const rows: unknown[] = [...feed];
    const ids = await readAll(all, (query) => {
      const page = pageOf(rows, query);
      rows.unshift(event(900 - rows.length, { price: 0.9 }), event(900 - rows.length, { price: 0.9 }));
      return page;
    });
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(expect.arrayContaining(idsOf(feed)));
  });

  it('starts again from the newest page when a cache answers with an older view', async () => {
    let requests = 0;
    const older = feed.slice(5);
    const ids = await readAll(all, (query) => {
      requests += 1;
      return pageOf(requests === 2 ? older : feed, query);
    });
    expect(ids).toEqual(idsOf(feed));
  });

  it('ends below the floor without reading on', async () => {
    let requests = 0;
    const floorMs = NOW_MS - 1_100;
    const ids = await readAll({ ...all, floorMs }, (query) => {
      requests += 1;
      return pageOf(feed, query);
    });
    expect(requests).toBe(1);
    expect(ids).toEqual(idsOf(feed.slice(0, 9)));
  });

  it('skips rows newer than its range', async () => {
    const range = { ...all, nextMs: NOW_MS - 1_300 };
    expect(await readAll(range, (query) => pageOf(feed, query), 1)).toEqual(idsOf(feed.slice(18)));
  });

  it('throws when no row of many can be read', async () => {
    const rows = Array(20).fill(event(1_000, { price: 'much' }));
    const pager = {
      list: async (query: PageQuery) => pageOf(rows, query),
      nowMs: NOW_MS,
      limit: 40,
      pagesPerCall: 2,
      isEnd: () => false,
    };
    await expect(readStretch(all, pager)).rejects.toMatchObject({ code: 'invalid_payload' });
  });
});

describe('identifyTrades', () => {
  it('reads a print in the words of its token', () => {
    expect(
      identifyTrades(readFeed([event(5, { side: 1, price: '0.956', matchedSize: '104602000' })], NOW_MS)).records,
    ).toEqual([
      { tradeId: expect.any(String), outcomeId: '10', tsMs: NOW_MS - 5, price: '0.956', size: '104.602', side: 'sell' },
    ]);
  });

  it('gives the same id to a print whose numbers and hex digits are written in another way', () => {
    const other = event(5, {
      price: '0.50',
      side: '0',
      matchedSize: 1_000_000,
      txHash: '0xab',
      profile: { account: '0xcd' },
    });
    expect(idsOf([other])).toEqual(idsOf([event(5)]));
  });

  it.each(['tokenId', 'price', 'matchedSize', 'side', 'txHash', 'makerAmount', 'takerAmount'])(
    'gives another id to a print with another %s',
    (field) => {
      const value = { txHash: '0xEF', price: 0.4, side: 1 }[field] ?? '77';
      expect(idsOf([event(5, { [field]: value })])).not.toEqual(idsOf([event(5)]));
    },
  );
});
