import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { identifyTrades } from '../../../../src/venues/polymarket/parse-trade.ts';
import { readTradePage, type TradePage } from '../../../../src/venues/polymarket/trade-walk.ts';
import { Feed, type Row, START } from './trade-feed.ts';

const SETTINGS = {
  pageSize: 6,
  overlapSeconds: 30,
  initialLookbackSeconds: 600,
  longGapSeconds: 50,
  headEveryMs: 1_000,
};

class Poller {
  readonly ids = new Set<string>();
  readonly truncated: string[] = [];
  position: unknown = null;

  async page(feed: Feed, isStored = true): Promise<TradePage> {
    const page = await readTradePage(this.position, feed.second * 1000, SETTINGS, feed.list);
    for (const trade of identifyTrades(page.rows).records) this.ids.add(trade.tradeId);
    if (page.truncated !== undefined) this.truncated.push(page.truncated);
    if (isStored) this.position = JSON.parse(JSON.stringify(page.position));
    return page;
  }

  async walk(feed: Feed): Promise<number> {
    for (let pages = 1; pages < 1_000; pages += 1) {
      const { more } = await this.page(feed);
      if (!more) return pages;
    }
    throw new Error('the walk does not end');
  }

  sorted(): string[] {
    return [...this.ids].sort();
  }
}

describe('readTradePage', () => {
  it('yields exactly the feed, however it moves, crashes and lags', async () => {
    const action = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          do: fc.constant('trade' as const),
          kind: fc.nat(5),
          count: fc.integer({ min: 1, max: 9 }),
        }),
      },
      {
        weight: 5,
        arbitrary: fc.record({ do: fc.constant('pass' as const), seconds: fc.integer({ min: 1, max: 4 }) }),
      },
      {
        weight: 2,
        arbitrary: fc.record({
          do: fc.constant('late' as const),
          kind: fc.nat(5),
          age: fc.integer({ min: 1, max: 15 }),
        }),
      },
      { weight: 5, arbitrary: fc.record({ do: fc.constant('poll' as const), isStored: fc.boolean() }) },
      { weight: 2, arbitrary: fc.record({ do: fc.constant('walk' as const) }) },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 60 }),
        fc.constantFrom('inclusive' as const, 'exclusive' as const),
        fc.constantFrom(3, 6),
        fc.array(fc.nat(5), { maxLength: 25 }),
        async (actions, endBehaviour, pageCap, arrivals) => {
          const feed = new Feed();
          feed.endBehaviour = endBehaviour;
          feed.pageCap = pageCap;
          const poller = new Poller();
          const waiting = [...arrivals];
          // A trade arrives while the walk is between two requests.
          feed.beforeAnswer = () => {
            const kind = waiting.pop();
            if (kind !== undefined) feed.trade(kind);
          };
          for (const step of actions) {
            if (step.do === 'trade') for (let each = 0; each < step.count; each += 1) feed.trade(step.kind + each);
            if (step.do === 'pass') feed.second += step.seconds;
            if (step.do === 'late') feed.trade(step.kind, feed.second - step.age);
            if (step.do === 'poll') await ignoreMoved(poller.page(feed, step.isStored));
            if (step.do === 'walk') await ignoreMoved(poller.walk(feed));
          }
          waiting.length = 0;
          feed.second += 5;
          await poller.walk(feed);
          await poller.walk(feed);
          expect(poller.sorted()).toEqual(feed.truth());
          expect(poller.truncated).toEqual([]);
        },
      ),
      { numRuns: 400 },
    );
  });

  it('starts its look-back behind now and goes no further', async () => {
    const feed = new Feed();
    feed.trade(0, START - 601);
    feed.trade(1, START - 600);
    feed.trade(2, START - 10);
    const poller = new Poller();
    await poller.walk(feed);
    expect(poller.ids.size).toBe(2);
  });

  it('holds back the newest second until it is complete', async () => {
    const feed = new Feed();
    feed.trade(0, START - 1);
    feed.trade(1, START);
    const poller = new Poller();
    await poller.walk(feed);
    expect(poller.ids.size).toBe(1);
    feed.trade(1, START);
    feed.second = START + 3;
    await poller.walk(feed);
    expect(poller.sorted()).toEqual(feed.truth());
  });

  it('reads a second that fills whole pages', async () => {
    const feed = new Feed();
    feed.trade(0, START - 20);
    for (let each = 0; each < 40; each += 1) feed.trade(each, START - 10);
    feed.trade(0, START - 5);
    const poller = new Poller();
    await poller.walk(feed);
    expect(poller.sorted()).toEqual(feed.truth());
    expect(poller.ids.size).toBe(42);
  });

  it('invents nothing when the feed moves while such a second is paged', async () => {
    const feed = new Feed();
    for (let each = 0; each < 20; each += 1) feed.trade(each, START - 10);
    feed.trade(0, START - 5);
    const poller = new Poller();
    await poller.page(feed);
    let isLate = false;
    feed.beforeAnswer = () => {
      if (isLate || feed.requests.at(-1)?.offset === 0) return;
      isLate = true;
      feed.trade(1, START - 10);
    };
    await expect(poller.walk(feed)).rejects.toMatchObject({ code: 'invalid_payload', retryable: true });
    await poller.walk(feed);
    expect(poller.sorted()).toEqual(feed.truth());
  });

  it.each(['repeat', 'refuse'] as const)(
    'says so when such a second goes on where the venue would %s',
    async (beyond) => {
      const feed = new Feed();
      feed.offsetCap = { after: 12, beyond };
      feed.trade(0, START - 400);
      for (let each = 0; each < 40; each += 1) feed.trade(each, START - 10);
      feed.trade(0, START - 5);
      const poller = new Poller();
      await poller.walk(feed);
      expect(poller.truncated.length).toBeGreaterThan(0);
      // What lies below such a second is not given up with it.
      const truth = new Set(feed.truth());
      expect(truth.size).toBe(42);
      expect([...poller.ids].filter((id) => !truth.has(id))).toEqual([]);
      expect(poller.ids.size).toBe(20);
    },
  );

  it.each(['ignored', 'refused'] as const)(
    'makes do with the newest page when the end of a window is %s, and says so',
    async (endBehaviour) => {
      const feed = new Feed();
      feed.endBehaviour = endBehaviour;
      for (let age = 30; age > 0; age -= 1) feed.trade(age, START - age);
      const poller = new Poller();
      await poller.walk(feed);
      expect(poller.truncated).toHaveLength(1);
      // The newest page without its newest second, which is not over, and its oldest, which may be cut.
      expect(poller.ids.size).toBe(4);
      feed.second += 2;
      feed.trade(0, feed.second - 1);
      await poller.walk(feed);
      expect(poller.ids.size).toBe(5);
      expect(poller.truncated).toHaveLength(1);
    },
  );

  it('reads the newest trades every second while it fills a long gap', async () => {
    const feed = new Feed();
    for (let age = 500; age > 0; age -= 2) feed.trade(age, START - age);
    const poller = new Poller();
    const seen: number[] = [];
    for (let pages = 0; pages < 80; pages += 1) {
      // Ten pages a second, and a trade a second.
      if (pages % 10 === 0) {
        feed.second += 1;
        feed.trade(1, feed.second - 1);
      }
      const { rows, more } = await poller.page(feed);
      expect(more).toBe(true);
      seen.push(Math.max(...rows.map((row) => row.second ?? 0)));
    }
    expect(Math.max(...seen)).toBeGreaterThanOrEqual(feed.second - 3);
    expect(Math.min(...seen)).toBeLessThan(START - 50);
    feed.second += 5;
    await poller.walk(feed);
    await poller.walk(feed);
    expect(poller.sorted()).toEqual(feed.truth());
  });

  it('keeps its place when a whole page is unreadable', async () => {
    const feed = new Feed();
    feed.trade(0, START - 10);
    const poller = new Poller();
    await poller.walk(feed);
    const before = poller.position;
    const renamed = async () =>
      Array.from({ length: 20 }, (_, each) => ({ ...feed.rows[0], timestamp: START + each, price: undefined }));
    await expect(readTradePage(before, (START + 60) * 1000, SETTINGS, renamed)).rejects.toMatchObject({
      code: 'invalid_payload',
      message: expect.stringContaining('missing_field'),
    });
  });

  it('reports a bad row once, not at every re-reading of its second', async () => {
    const feed = new Feed();
    feed.trade(0, START - 20);
    feed.rows.push({ ...(feed.rows[0] as Row), price: 7, timestamp: START - 10 });
    feed.trade(0, START - 5);
    const poller = new Poller();
    const first = await poller.page(feed);
    expect(first.rows.filter((row) => row.rejected)).toHaveLength(1);
    while ((await poller.page(feed)).more);
    feed.second += 1;
    const again = await poller.page(feed);
    expect(again.rows.filter((row) => row.rejected)).toHaveLength(0);
  });

  it('does not let a row from the future move its place', async () => {
    const feed = new Feed();
    feed.trade(0, START - 5);
    feed.trade(0, START + 100_000);
    const poller = new Poller();
    await poller.walk(feed);
    feed.rows.pop();
    feed.second += 20;
    feed.trade(1, START + 10);
    await poller.walk(feed);
    expect(poller.sorted()).toEqual(feed.truth());
  });

  it('begins anew when the stored position is not its own', async () => {
    const feed = new Feed();
    feed.trade(0, START - 5);
    const poller = new Poller();
    poller.position = { cursor: 'of another adapter' };
    await poller.walk(feed);
    expect(poller.ids.size).toBe(1);
  });
});

/** A page that moved under the walk is read again at the next poll. */
async function ignoreMoved(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_payload', retryable: true });
  }
}
