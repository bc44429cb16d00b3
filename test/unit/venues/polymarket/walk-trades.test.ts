import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type FeedRow, identifyTrades } from '../../../../src/venues/polymarket/parse-trade.ts';
import { readTradePage, type TradeWalkSettings } from '../../../../src/venues/polymarket/walk-trades.ts';
import type { TapeStep } from '../../../../src/venues/tape-walk.ts';
import { Feed, PAGE_SIZE, type Row, START } from './trade-feed.ts';

const SETTINGS: TradeWalkSettings = {
  pageSize: PAGE_SIZE,
  pagesPerCall: 2,
  overlapSeconds: 30,
  overlapReads: 8,
  initialLookbackSeconds: 600,
  longGapSeconds: 50,
  headEveryMs: 1_000,
};

class Poller {
  readonly ids = new Set<string>();
  readonly truncated: string[] = [];
  position: unknown = null;

  readonly settings: TradeWalkSettings;

  constructor(settings = SETTINGS) {
    this.settings = settings;
  }

  /** Whether this process stored the last page, so that the overlap is read only when it is due. */
  isContinued = false;

  async page(feed: Feed, isStored = true): Promise<TapeStep<FeedRow>> {
    const { position, settings, isContinued } = this;
    const page = await readTradePage(position, feed.second * 1000, settings, feed.list, { isContinued });
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
  it('yields exactly the feed under moves, crashes and lags', async () => {
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
        fc.constantFrom(3, 6),
        fc.constantFrom(0, 300),
        fc.array(fc.nat(5), { maxLength: 25 }),
        async (actions, pageCap, cdnSeconds, arrivals) => {
          const feed = new Feed();
          Object.assign(feed, { pageCap, cdnSeconds });
          const poller = new Poller();
          const waiting = [...arrivals];
          // A trade arrives between two requests of the walk.
          feed.beforeAnswer = () => {
            const kind = waiting.pop();
            if (kind !== undefined) feed.trade(kind);
          };
          for (const step of actions) {
            if (step.do === 'trade') for (let each = 0; each < step.count; each += 1) feed.trade(step.kind + each);
            if (step.do === 'pass') feed.second += step.seconds;
            if (step.do === 'late') feed.trade(step.kind, feed.second - step.age);
            if (step.do === 'poll') await poller.page(feed, step.isStored);
            if (step.do === 'walk') await poller.walk(feed);
          }
          waiting.length = 0;
          for (let walks = 0; walks < 2; walks += 1) {
            feed.second += 5;
            await poller.walk(feed);
          }
          expect(poller.sorted()).toEqual(feed.truth());
          expect(poller.truncated).toEqual([]);
        },
      ),
      { numRuns: 400 },
    );
  });

  it('continues after two pages when each call ends after its first requests', async () => {
    const feed = new Feed();
    for (let each = 0; each < 200; each += 1) feed.trade(each, START - 300 + each);
    const fast = new Poller({ ...SETTINGS, pagesPerCall: 100 });
    const slow = new Poller({ ...SETTINGS, pagesPerCall: 100, callMs: 0 });
    const [few, many] = [await fast.walk(feed), await slow.walk(feed)];
    expect(many).toBeGreaterThan(few);
    expect(slow.sorted()).toEqual(feed.truth());
    expect(slow.truncated).toEqual([]);
  });

  it('starts its look-back before now and goes no further', async () => {
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

  it('gives up a second that does not end, reports it, and continues below', async () => {
    const feed = new Feed();
    feed.trade(0, START - 400);
    for (let each = 0; each < 400; each += 1) feed.trade(each, START - 10);
    feed.trade(0, START - 5);
    const poller = new Poller();
    await poller.walk(feed);
    expect(poller.truncated).toEqual([expect.stringContaining(`second ${START - 10}: more than 360 rows`)]);
    const truth = new Set(feed.truth());
    expect([...poller.ids].filter((id) => !truth.has(id))).toEqual([]);
    expect([...poller.ids]).toEqual(expect.arrayContaining(feed.truth((row) => row.timestamp !== START - 10)));
  });

  it('reads the newest trades every second while it fills a long gap', async () => {
    const feed = new Feed();
    for (let age = 550; age > 0; age -= 1) feed.trade(age, START - age);
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
    expect(poller.sorted()).toEqual(feed.truth());
  });

  it('fills a gap although each walk over the newest trades lasts longer than their interval', async () => {
    const feed = new Feed();
    for (let age = 550; age > 0; age -= 10) feed.trade(age, START - age);
    const poller = new Poller();
    for (let calls = 0; calls < 80; calls += 1) {
      await poller.page(feed);
      feed.second += 2;
      feed.trade(1, feed.second - 1);
    }
    expect(poller.position).toMatchObject({ gaps: [] });
    feed.second += 5;
    await poller.walk(feed);
    expect(poller.sorted()).toEqual(feed.truth());
  });

  it('keeps its place when a whole page is unreadable', async () => {
    const feed = new Feed();
    feed.trade(0, START - 10);
    const poller = new Poller();
    await poller.walk(feed);
    const before = poller.position;
    const renamed = async () => ({
      rows: Array.from({ length: 20 }, (_, each) => ({ ...feed.rows[0], timestamp: START + each, price: undefined })),
      ageMs: 0,
    });
    await expect(readTradePage(before, (START + 60) * 1000, SETTINGS, renamed)).rejects.toMatchObject({
      code: 'invalid_payload',
      message: expect.stringContaining('missing_field'),
    });
  });

  it('reports a bad row once when its second is read again', async () => {
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

  it('keeps its place when a row is from the future', async () => {
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

  it('begins anew when the stored position is unreadable', async () => {
    const feed = new Feed();
    feed.trade(0, START - 5);
    const poller = new Poller();
    poller.position = { cursor: 'of another adapter' };
    await poller.walk(feed);
    expect(poller.ids.size).toBe(1);
  });

  it('continues from the newest page when the venue no longer knows a stored cursor', async () => {
    const feed = new Feed();
    for (let age = 40; age > 0; age -= 1) feed.trade(age, START - age);
    const poller = new Poller();
    await poller.page(feed);
    expect(poller.position).toMatchObject({ gaps: [{ cursor: expect.any(String) }] });
    feed.forgetsCursors = true;
    await poller.page(feed);
    feed.forgetsCursors = false;
    feed.second += 5;
    await poller.walk(feed);
    expect(poller.sorted()).toEqual(feed.truth());
  });

  it('counts a skipped row once when its second is read again', async () => {
    const feed = new Feed();
    feed.trade(0, START - 20);
    feed.rows.push({
      ...(feed.rows[0] as Row),
      condition_id: `0x03${'a'.repeat(60)}`,
      slug: '',
      timestamp: START - 10,
    });
    const poller = new Poller();
    let skipped = 0;
    for (let walks = 0; walks < 3; walks += 1) {
      const page = await poller.page(feed);
      skipped += identifyTrades(page.rows).skipped.length;
      feed.second += 1;
    }
    expect([skipped, poller.ids.size]).toEqual([1, 1]);
  });

  it('throws when a cursor leads to its own page', async () => {
    const feed = new Feed();
    for (let age = 40; age > 0; age -= 1) feed.trade(age, START - age);
    const first = await feed.list({ limit: 6 });
    const stuck = async () => ({ ...first, nextCursor: 'same' });
    await expect(readTradePage(null, START * 1000, SETTINGS, stuck)).rejects.toMatchObject({ code: 'invalid_payload' });
  });
});

describe('readTradePage behind a CDN of 300 s', () => {
  it('stores every trade when it is polled every two seconds, and requests no first page twice', async () => {
    const feed = new Feed();
    Object.assign(feed, { cdnSeconds: 300, pageCap: 1_000 });
    const poller = new Poller();
    for (let polls = 0; polls < 400; polls += 1) {
      for (let each = 0; each < 3; each += 1) feed.trade(polls + each);
      feed.second += 2;
      await poller.walk(feed);
    }
    feed.second += 5;
    await poller.walk(feed);
    expect(poller.sorted()).toEqual(feed.truth());
    expect(feed.ages.filter((age) => age > 0)).toEqual([]);
  });

  it('requests no first page again after a restart that lost the position', async () => {
    const feed = new Feed();
    Object.assign(feed, { cdnSeconds: 300 });
    const sizes: number[] = [];
    for (let starts = 0; starts < 150; starts += 1) {
      feed.second += 2;
      await new Poller().page(feed);
      sizes.push(feed.requests.find(({ cursor }) => cursor === undefined)?.limit ?? 0);
      feed.requests.length = 0;
    }
    expect(new Set(sizes).size).toBe(150);
    expect(Math.min(...sizes)).toBeGreaterThan(600);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(PAGE_SIZE);
  });

  it('sends no request when the head of this second was already read', async () => {
    const feed = new Feed();
    feed.trade(0, START - 10);
    const poller = new Poller();
    await poller.walk(feed);
    const before = feed.requests.length;
    expect(await poller.page(feed)).toMatchObject({ rows: [], more: false });
    expect(feed.requests).toHaveLength(before);
  });

  it.each([20_000, Number.POSITIVE_INFINITY])(
    'holds back the newest second of a page of age %d, although it is old by the clock',
    async (ageMs) => {
      const feed = new Feed();
      feed.trade(1, START - 30);
      feed.trade(1, START - 20);
      const stale = { ...(await feed.list({ limit: 6 })), ageMs };
      // It arrived after the page was made, in the page's newest second.
      feed.trade(0, START - 20);
      const poller = new Poller();
      const page = await readTradePage(null, START * 1000, SETTINGS, async () => stale);
      expect(page.rows.map((row) => row.second)).toEqual([START - 30]);
      expect(page.position).toMatchObject({ watermark: START - 21 });
      poller.position = page.position;
      feed.second += 1;
      await poller.walk(feed);
      expect(poller.ids.size).toBe(3);
    },
  );

  it('keeps its watermark when a page is older than the watermark', async () => {
    const feed = new Feed();
    feed.trade(1, START - 20);
    const old = { ...(await feed.list({ limit: 6 })), ageMs: 0 };
    feed.trade(1, START - 5);
    const poller = new Poller();
    await poller.walk(feed);
    const page = await readTradePage(poller.position, (START + 1) * 1000, SETTINGS, async () => old);
    expect(page.position).toMatchObject({ watermark: START - 5 });
    poller.position = page.position;
    feed.trade(1, START - 1);
    feed.second = START + 5;
    await poller.walk(feed);
    expect(poller.sorted()).toEqual(feed.truth());
  });
});

describe('readTradePage from a position of version 1 of the API', () => {
  /** The seconds that are read from a position, oldest first, each once. */
  async function secondsFrom(position: object): Promise<number[]> {
    const feed = new Feed();
    for (let age = 40; age > 0; age -= 1) feed.trade(1, START - age);
    const poller = new Poller();
    poller.position = position;
    const seconds: number[] = [];
    for (let more = true; more; ) {
      const page = await poller.page(feed);
      seconds.push(...page.rows.map((row) => START - (row.second ?? 0)));
      ({ more } = page);
    }
    feed.second += 5;
    seconds.push(...(await poller.page(feed)).rows.map((row) => START - (row.second ?? 0)).filter((age) => age >= 20));
    return seconds.sort((a, b) => b - a);
  }
  const down = (from: number, to: number) => Array.from({ length: from - to + 1 }, (_, index) => from - index);

  it('reads each second above the watermark, and no second twice', async () => {
    const position = { v: 1, watermark: START - 21, headAtMs: 0, gaps: [] };
    const seconds = await secondsFrom(position);
    expect(seconds.filter((age) => age > 20)).toEqual([]);
    expect(new Set(seconds)).toEqual(new Set(down(20, 2)));
  });

  it('continues a walk and gaps by their seconds', async () => {
    const position = {
      v: 1,
      watermark: START - 26,
      headAtMs: 0,
      walk: { top: START - 20, next: START - 23, floor: START - 60 },
      gaps: [{ next: START - 31, floor: START - 33 }],
    };
    const seconds = await secondsFrom(position);
    expect(seconds.filter((age) => age >= 20)).toEqual([33, 32, 31, 25, 24, 23]);
  });

  it('leaves a position from which an older process can continue', async () => {
    const feed = new Feed();
    for (let age = 40; age > 0; age -= 1) feed.trade(1, START - age);
    const poller = new Poller();
    await poller.page(feed);
    const { v, watermark, headAtMs, gaps } = poller.position as Record<string, unknown>;
    const [gap] = gaps as Record<string, unknown>[];
    expect(v).toBe(1);
    for (const each of [watermark, headAtMs, gap?.['next'], gap?.['floor']]) expect(each).toEqual(expect.any(Number));
  });
});

describe('the walk of a process that goes on', () => {
  it('reads seconds once, and the overlap every 15 s with all late rows', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ seconds: fc.integer({ min: 1, max: 4 }), trades: fc.nat(8), late: fc.nat(30) }), {
          maxLength: 40,
        }),
        fc.constantFrom(6, 40),
        async (steps, pageCap) => {
          const feed = new Feed();
          feed.pageCap = pageCap;
          const poller = new Poller();
          for (const { seconds, trades, late } of steps) {
            feed.second += seconds;
            for (let each = 0; each < trades; each += 1) feed.trade(each);
            if (late > 0) feed.trade(1, feed.second - late);
            await poller.walk(feed);
            poller.isContinued = true;
          }
          for (let ticks = 0; ticks < 40; ticks += 1) {
            feed.second += 2;
            await poller.walk(feed);
          }
          expect(poller.sorted()).toEqual(feed.truth());
        },
      ),
      { numRuns: 100 },
    );
  });

  it('hands on no row of a known second', async () => {
    const feed = new Feed();
    feed.pageCap = 100;
    for (let age = 40; age > 3; age -= 1) feed.trade(age, START - age);
    const poller = new Poller();
    await poller.walk(feed);
    poller.isContinued = true;
    feed.trade(1);
    feed.second += 4;
    expect((await poller.page(feed)).rows.map(({ second }) => second)).toEqual([START]);
    feed.second += 2;
    expect((await poller.page(feed)).rows).toEqual([]);
    feed.second += 10;
    expect((await poller.page(feed)).rows.length).toBeGreaterThan(20);
  });
});
