import { describe, expect, it } from 'vitest';
import type { ListAnswer } from '../../../../src/venues/kalshi/client.ts';
import {
  advance,
  afterFailure,
  afterRefusal,
  type MarketPosition,
  nextQuery,
  openWalk,
} from '../../../../src/venues/kalshi/walk-markets.ts';

const SETTINGS = {
  eventsPerPage: 10,
  marketsPerPage: 20,
  fullWalkEveryMs: 600_000,
  firstSettledSeconds: 3_600,
  maxRecentPages: 3,
};
const START = Date.UTC(2026, 0, 1);
const SECOND = START / 1000;
const LAST: ListAnswer = { rows: [] };

/** Follows a walk with the same answer to every request; returns the requests. */
function walk(at: MarketPosition, answer: (page: number) => ListAnswer = () => LAST) {
  const asked: { listing: string; [parameter: string]: unknown }[] = [];
  const cuts: string[] = [];
  const sweeps: string[] = [];
  let position = at;
  for (let page = 0; position.phases.length > 0 && page < 100; page += 1) {
    const { listing, parameters } = nextQuery(position, SETTINGS);
    asked.push({ listing, ...JSON.parse(JSON.stringify(parameters)) });
    const next = advance(position, answer(page), SETTINGS);
    if (next.cutShort !== undefined) cuts.push(next.cutShort);
    const { startedAtMs, ended } = next.sweep ?? {};
    sweeps.push(`${asked.at(-1)?.['status'] ?? 'changed'} ${startedAtMs} ${ended}`);
    position = JSON.parse(JSON.stringify(next.position));
  }
  return { position, asked, cuts, sweeps };
}

describe('the walk over the Kalshi catalog', () => {
  it('first lists the events of every state and the markets that settled lately', () => {
    const { asked, position } = walk(openWalk(null, START, SETTINGS));
    expect(asked).toEqual([
      { listing: 'events', limit: 10, status: 'open' },
      { listing: 'events', limit: 10, status: 'unopened' },
      { listing: 'events', limit: 10, status: 'closed' },
      { listing: 'markets', limit: 20, status: 'settled', min_settled_ts: SECOND - 3_660 },
    ]);
    expect(position).toEqual({ v: 1, phases: [], fullWalkAtMs: START, since: SECOND });
  });

  it('then lists the markets that changed, closed and settled since the start of the previous walk', () => {
    const { position } = walk(openWalk(null, START, SETTINGS));
    const { asked } = walk(openWalk(position, START + 30_500, SETTINGS));
    const since = SECOND - 60;
    expect(asked).toEqual([
      { listing: 'markets', limit: 20, min_updated_ts: since },
      { listing: 'markets', limit: 20, status: 'closed', min_close_ts: since, max_close_ts: SECOND + 30 },
      { listing: 'markets', limit: 20, status: 'settled', min_settled_ts: since },
    ]);
  });

  it('runs in full after its interval, and lists settled markets since the last walk', () => {
    const { position } = walk(openWalk(null, START, SETTINGS));
    const { asked } = walk(openWalk(position, START + 600_000, SETTINGS));
    expect(asked[0]).toMatchObject({ listing: 'events', status: 'open' });
    expect(asked.at(-1)).toMatchObject({ status: 'settled', min_settled_ts: SECOND - 60 });
  });

  it('follows cursors without a bound in a full walk', () => {
    const { asked, cuts } = walk(openWalk(null, START, SETTINGS), (page) =>
      page < 9 ? { rows: [{}], nextCursor: `c${page}` } : LAST,
    );
    expect(asked.filter((query) => query['status'] === 'open').map((query) => query['cursor'])).toEqual([
      undefined,
      ...Array.from({ length: 9 }, (_, page) => `c${page}`),
    ]);
    expect(cuts).toEqual([]);
  });

  it('cuts an endless listing short between full walks, and begins at the same second the next time', () => {
    const { position } = walk(openWalk(null, START, SETTINGS));
    const endless = walk(openWalk(position, START + 30_000, SETTINGS), (page) => ({
      rows: [],
      nextCursor: `c${page}`,
    }));
    expect(endless.cuts).toHaveLength(3);
    expect(endless.position.since).toBe(SECOND);
  });

  it('stops when the venue repeats a cursor', () => {
    const { cuts } = walk(openWalk(null, START, SETTINGS), () => ({ rows: [], nextCursor: 'again' }));
    expect(cuts).toHaveLength(4);
    expect(cuts[0]).toMatch(/repeats a cursor/);
  });

  it('restarts a phase a few times when its cursor is refused, then drops it', () => {
    let at = openWalk(null, START, SETTINGS);
    for (let tries = 0; tries < 2; tries += 1) {
      at = advance(at, { rows: [], nextCursor: 'old' }, SETTINGS).position;
      const again = afterRefusal(at);
      expect(again?.phases[0]).toEqual({ name: 'open', page: 0, restarts: tries + 1 });
      at = again ?? at;
    }
    at = advance(at, { rows: [], nextCursor: 'old' }, SETTINGS).position;
    expect(afterRefusal(at)?.phases[0]?.name).toBe('unopened');
  });

  it('drops a filter that is refused, except that of the open events', () => {
    const at = openWalk(null, START, SETTINGS);
    expect(afterRefusal(at)).toBeUndefined();
    const unopened = advance(at, LAST, SETTINGS).position;
    expect(afterRefusal(unopened)?.phases[0]?.name).toBe('closed');
  });

  it('goes on with the next phase when a row fails, and ends no sweep', () => {
    const begun = openWalk(null, START, SETTINGS);
    const second = advance(begun, { rows: [], nextCursor: 'a' }, SETTINGS).position;
    const after = afterFailure(second);
    expect(after.phases.map(({ name }) => name)).toEqual(['unopened', 'closed', 'settled']);
    const { position, sweeps } = walk(after);
    expect(sweeps.filter((each) => each.endsWith('true'))).toEqual([]);
    expect(position).toEqual({ v: 1, phases: [], fullWalkAtMs: START, since: SECOND });
    const recent = openWalk(position, START + 30_000, SETTINGS);
    // The next walk between full ones begins at the same second again.
    expect(walk(afterFailure(recent)).position).toEqual(position);
  });

  describe('sweeps', () => {
    const some: ListAnswer = { rows: [{}] };
    const pages = (page: number) => (page % 2 === 0 ? { rows: [{}], nextCursor: `c${page}` } : some);

    it('are the pages of a full walk with the markets that are not over, and end with the last page', () => {
      const full = walk(openWalk(null, START, SETTINGS), pages);
      expect(full.sweeps).toEqual([
        `open ${START} false`,
        `open ${START} false`,
        `unopened ${START} false`,
        `unopened ${START} false`,
        `closed ${START} false`,
        `closed ${START} true`,
        'settled undefined undefined',
        'settled undefined undefined',
      ]);
      const recent = walk(openWalk(full.position, START + 30_000, SETTINGS), () => some);
      expect(recent.sweeps.filter((sweep) => !sweep.endsWith('undefined'))).toEqual([]);
    });

    it.each(['open', 'unopened', 'closed'])('never end when the %s events were cut short', (name) => {
      const { sweeps, cuts } = walk(openWalk(null, START, SETTINGS), (page) => {
        const repeated = { rows: [{}], nextCursor: 'again' };
        const index = ['open', 'unopened', 'closed'].indexOf(name);
        return page === index || page === index + 1 ? repeated : some;
      });
      expect(cuts).toEqual([`${name} markets: the venue repeats a cursor`]);
      expect(sweeps.filter((sweep) => sweep.endsWith('true'))).toEqual([]);
    });

    it('never end when a listing was refused, and end in the next walk', () => {
      const opened = advance(openWalk(null, START, SETTINGS), some, SETTINGS).position;
      const refused = walk(afterRefusal(opened) ?? opened, () => some);
      expect(refused.sweeps).toEqual([`closed ${START} false`, 'settled undefined undefined']);
      const next = walk(openWalk(refused.position, START + 600_000, SETTINGS), () => some);
      expect(next.sweeps).toContain(`closed ${START + 600_000} true`);
    });

    it('end when a cursor was refused and the phase began again', () => {
      const half = advance(openWalk(null, START, SETTINGS), { rows: [{}], nextCursor: 'old' }, SETTINGS).position;
      const { sweeps } = walk(afterRefusal(half) ?? half, () => some);
      expect(sweeps).toContain(`closed ${START} true`);
    });

    it('never end when the venue has no open event', () => {
      const { sweeps } = walk(openWalk(null, START, SETTINGS), () => LAST);
      expect(sweeps.filter((sweep) => sweep.endsWith('true'))).toEqual([]);
    });
  });

  it('begins anew when the stored position is unreadable', () => {
    for (const stored of [null, 7, 'text', {}, { v: 2, phases: [] }, { v: 1, phases: [{ name: 'dreams' }] }]) {
      expect(openWalk(stored, START, SETTINGS)).toEqual(openWalk(null, START, SETTINGS));
    }
  });
});
