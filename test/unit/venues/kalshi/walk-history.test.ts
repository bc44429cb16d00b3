import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { VenueError } from '../../../../src/venues/errors.ts';
import type { ListAnswer, Parameters as Query } from '../../../../src/venues/kalshi/client.ts';
import { type HistoryStep, readHistoryPage } from '../../../../src/venues/kalshi/walk-history.ts';

type HistoryRoutes = Parameters<typeof readHistoryPage>[4];

const NOW = Date.UTC(2026, 9, 1);
const START = Date.UTC(2026, 5, 1);
const START_SECOND = START / 1000;
const TICKER = 'KXT-1';
const DAY = 86_400;

interface Print {
  id: string;
  ms: number;
  ticker?: string;
}

const printsAt = (...ms: number[]): Print[] => ms.map((each, index) => ({ id: `t${index}`, ms: each }));
const request = (fromMs = START, toMs = NOW) => ({ marketId: TICKER, outcomeIds: [`${TICKER}:yes`], fromMs, toMs });
const refusal = (statusCode: number) =>
  new VenueError('kalshi', 'http_status', `HTTP ${statusCode}`, { retryable: false, statusCode });

/** A venue with these trades; those before the cutoff are on the route of the archive only. */
function venueOf(prints: readonly Print[], options: { cutoff?: number; pageSize?: number } = {}) {
  const asked: { route: string; parameters: Query }[] = [];
  const venue = {
    asked,
    cutoff: options.cutoff,
    begunBefore: true,
    async list(route: 'live' | 'archive', parameters: Query): Promise<ListAnswer> {
      asked.push({ route, parameters });
      const { min_ts = 0, max_ts = Number.MAX_SAFE_INTEGER, cursor, limit = 1 } = parameters;
      const cutoffMs = (venue.cutoff ?? 0) * 1000;
      const rows = prints
        .filter(({ ms }) => (route === 'live') === ms >= cutoffMs)
        .filter(({ ms }) => ms >= Number(min_ts) * 1000 && ms <= Number(max_ts) * 1000)
        .sort((a, b) => b.ms - a.ms || (a.id < b.id ? -1 : 1));
      const from = cursor === undefined ? 0 : Number(String(cursor).slice(1));
      const page = rows.slice(from, from + Number(limit)).map(({ id, ms, ticker = TICKER }) => ({
        trade_id: id,
        ticker,
        created_time: new Date(ms).toISOString(),
        count_fp: '1.00',
        yes_price_dollars: '0.4000',
        no_price_dollars: '0.6000',
        taker_side: 'yes',
      }));
      const end = from + Number(limit);
      return end < rows.length ? { rows: page, nextCursor: `c${end}` } : { rows: page };
    },
    cutoffSecond: async () => venue.cutoff,
    hasBegunBefore: async () => venue.begunBefore,
  };
  return venue;
}

/** Follows a walk to its end through JSON; `between` runs before each page. */
async function walk(
  routes: HistoryRoutes,
  of = request(),
  pageSize = 3,
  between: (page: number) => void = () => undefined,
) {
  const ids: string[] = [];
  const reached: number[] = [];
  let stored: unknown = null;
  for (let page = 0; page < 200; page += 1) {
    between(page);
    const step: HistoryStep = await readHistoryPage(of, stored, NOW, { pageSize }, routes);
    ids.push(...step.rows.flatMap((row) => row.trade?.tradeId ?? []));
    reached.push(step.reachedMs);
    stored = JSON.parse(JSON.stringify(step.position));
    if (!step.more)
      return { ids, unique: [...new Set(ids)].sort(), reached, truncated: step.truncated, pages: page + 1 };
  }
  throw new Error('no end');
}

describe("the walk back over a market's trades", () => {
  it('yields exactly the trades of the range, from the live route and then the archive, at any page size', async () => {
    const moment = fc.integer({ min: 0, max: 40 }).map((half) => START + half * 500);
    const parameters = fc.record({
      moments: fc.array(moment, { maxLength: 40 }),
      cutoff: fc.option(fc.integer({ min: -2, max: 22 }), { nil: undefined }),
      pageSize: fc.integer({ min: 1, max: 7 }),
      from: moment,
      length: fc.integer({ min: 0, max: 25_000 }),
    });
    await fc.assert(
      fc.asyncProperty(parameters, async ({ moments, cutoff, pageSize, from, length }) => {
        const prints = printsAt(...moments);
        const venue = venueOf(prints, cutoff === undefined ? {} : { cutoff: START_SECOND + cutoff });
        const of = request(from, from + length);
        const { unique, reached, truncated } = await walk(venue, of, pageSize);
        const expected = prints.filter(({ ms }) => ms >= of.fromMs && ms < of.toMs).map(({ id }) => id);
        expect(unique).toEqual(expected.sort());
        expect(truncated).toBeUndefined();
        expect(reached.at(-1)).toBe(of.fromMs);
        expect(reached).toEqual([...reached].sort((a, b) => b - a));
        expect(reached[0]).toBeLessThanOrEqual(Math.max(of.fromMs, of.toMs));
      }),
      { numRuns: 150 },
    );
  });

  it('reports at every page how far back everything was read', async () => {
    const prints = printsAt(...Array.from({ length: 9 }, (_, index) => START + index * 1_000));
    const venue = venueOf(prints);
    const { reached } = await walk(venue, request(START, START + 9_000), 4);
    // The last second of a page may continue on the next page.
    expect(reached).toEqual([START + 6_000, START + 2_000, START]);
  });

  it('requests whole seconds around the range, and no archive when the live route has all', async () => {
    const venue = venueOf(printsAt(START + 500), { cutoff: START_SECOND - 8 * DAY });
    await walk(venue, request(START + 250, START + 750));
    expect(venue.asked).toEqual([
      {
        route: 'live',
        parameters: { limit: 3, min_ts: START_SECOND - 1, max_ts: START_SECOND + 1, cursor: undefined },
      },
    ]);
  });

  it('loses nothing when the cutoff moves during the walk', async () => {
    const prints = printsAt(...Array.from({ length: 40 }, (_, index) => START + index * 3_600_000));
    const venue = venueOf(prints, { cutoff: START_SECOND });
    const routes = { ...venue, cutoffSecond: async () => START_SECOND };
    const { unique } = await walk(routes, request(), 5, (page) => {
      if (page === 3) venue.cutoff = START_SECOND + 30 * 3_600;
    });
    expect(unique).toHaveLength(40);
  });

  it('continues by time when a cursor is refused', async () => {
    const prints = printsAt(...Array.from({ length: 9 }, (_, index) => START + index * 1_000));
    const venue = venueOf(prints);
    const { unique } = await walk({
      ...venue,
      list: async (route, parameters) => {
        if (parameters['cursor'] !== undefined) throw refusal(400);
        return venue.list(route, parameters);
      },
    });
    expect(unique).toHaveLength(9);
  });

  it('ends and reports the missing trades when cursors repeat', async () => {
    const venue = venueOf(printsAt(START + 5_000, START + 5_100, START + 5_200));
    let calls = 0;
    const { truncated, reached, pages } = await walk({
      ...venue,
      list: async (route, parameters) => {
        calls += 1;
        const { rows } = await venue.list(route, { ...parameters, cursor: undefined });
        return { rows, nextCursor: `round-${calls % 2}` };
      },
    });
    expect(pages).toBeLessThan(30);
    expect(truncated).toMatch(/pages of the venue repeat/);
    expect(reached.at(-1)).toBe(START + 6_000);
  });

  it('ends when the venue ignores the end of a window or the market of the request', async () => {
    const venue = venueOf(printsAt(START + 500_000, START));
    const deaf = await walk(
      { ...venue, list: (route, parameters) => venue.list(route, { ...parameters, max_ts: undefined }) },
      request(START, START + 1_000),
    );
    expect(deaf.truncated).toMatch(/ignores the end of a window/);
    const crowd = await walk(venueOf([...printsAt(START + 500), { id: 'x', ms: START + 700, ticker: 'KXU-1' }]));
    expect(crowd.truncated).toMatch(/ignores the market/);
    expect(crowd.unique).toEqual(['t0']);
    expect(crowd.reached.at(-1)).toBe(NOW);
  });

  it.each([401, 404])(
    'ends when the archive answers %i, and reports it only for a market older than the cutoff',
    async (status) => {
      const cutoff = START_SECOND + 20 * DAY;
      const venue = venueOf(printsAt(START, START + 30 * DAY * 1000), { cutoff });
      const routes: HistoryRoutes = {
        ...venue,
        list: (route, parameters) => {
          if (route === 'archive') throw refusal(status);
          return venue.list(route, parameters);
        },
      };
      const old = await walk(routes);
      expect(old.truncated).toMatch(/archive of the venue is not available/);
      expect(old.unique).toEqual(['t1']);
      expect(old.reached.at(-1)).toBe(START + 30 * DAY * 1000 + 1_000);
      const young = await walk({ ...routes, hasBegunBefore: async () => false });
      expect([young.truncated, young.reached.at(-1)]).toEqual([undefined, START]);
      const later = await walk(routes, request(cutoff * 1000, NOW));
      expect([later.truncated, later.unique]).toEqual([undefined, ['t1']]);
    },
  );

  it('throws the error of the venue when the venue is down', async () => {
    const venue = venueOf(printsAt(START));
    const routes = {
      ...venue,
      list: async () => {
        throw refusal(503);
      },
    };
    await expect(walk(routes)).rejects.toMatchObject({ statusCode: 503 });
  });

  it('begins anew when the stored position is unreadable', async () => {
    const venue = venueOf(printsAt(START));
    for (const stored of [7, 'text', {}, { v: 2 }, { v: 1, route: 'sea', left: { next: 1, floor: 0 }, idlePages: 0 }]) {
      const step = await readHistoryPage(request(), stored, NOW, { pageSize: 5 }, venue);
      expect(step.rows).toHaveLength(1);
    }
  });
});
