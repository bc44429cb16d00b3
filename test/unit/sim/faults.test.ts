import { describe, expect, it } from 'vitest';
import { SimControlError } from '../../../sim/errors.ts';
import { FaultBoard, type FaultRequest, renameField, setField } from '../../../sim/faults.ts';
import type { SimHost } from '../../../sim/server/reply.ts';

const newBoard = (seed = 1, nowSecond = () => 0) => new FaultBoard(seed, nowSecond);

function asked(host: SimHost, target: string) {
  const { pathname, searchParams } = new URL(target, 'http://sim.invalid');
  return { host, path: pathname, query: searchParams };
}

describe('FaultBoard', () => {
  it('affects its host and path, as often as requested', () => {
    const board = newBoard();
    board.add({ host: 'clob', path: '/books', kind: 'status500', count: 2 });
    const hits = ['/books', '/book', '/books', '/books'].map((path) => board.take(asked('clob', path)).length);
    expect(hits).toEqual([1, 0, 1, 0]);
    expect(board.take(asked('gamma', '/books'))).toEqual([]);
    expect(board.list()).toEqual([]);
  });

  it('keeps a fault without a count until cleared, on every host with the star', () => {
    const board = newBoard();
    const fault = board.add({ host: '*', kind: 'reset' });
    for (const host of ['gamma', 'clob', 'data'] as const) expect(board.take(asked(host, '/x'))).toHaveLength(1);
    expect(board.list()).toEqual([{ id: fault.id, host: '*', kind: 'reset', applied: 3 }]);
    expect([board.clear(fault.id), board.clear()]).toEqual([1, 0]);
    expect(board.take(asked('data', '/x'))).toEqual([]);
  });

  it('draws a probability from the seed', () => {
    const hits = (seed: number) => {
      const board = newBoard(seed);
      board.add({ host: '*', kind: 'status429', probability: 0.3 });
      return Array.from({ length: 2000 }, () => board.take(asked('data', '/trades')).length);
    };
    expect(hits(7)).toEqual(hits(7));
    expect(hits(7)).not.toEqual(hits(8));
    const share = hits(7).reduce((sum, hit) => sum + hit, 0) / 2000;
    expect(share).toBeGreaterThan(0.25);
    expect(share).toBeLessThan(0.35);
  });

  it('refuses the requests that name a bad member, in the path, the query or the body', () => {
    const board = newBoard();
    board.add({ host: '*', kind: 'bad_member', members: { ids: ['bad'] } });
    const targets = ['/a/bad/b', '/a?ids=x,bad', '/a?ids=x&ids=bad', '/a?ids=x', '/a/good', '/a?ids=badly'];
    expect(targets.map((target) => board.take(asked('kalshi', target)).length)).toEqual([1, 1, 1, 0, 0, 0]);
    const body = JSON.stringify([{ token_id: 'x' }, { token_id: 'bad' }]);
    expect(board.take({ ...asked('clob', '/books'), body })).toHaveLength(1);
  });

  it('refuses only requests that name all members that fail together', () => {
    const board = newBoard();
    board.add({ host: '*', kind: 'bad_member', members: { ids: ['a', 'b'], together: true } });
    const hits = ['/x?ids=a', '/x?ids=b', '/x?ids=a,b'].map((target) => board.take(asked('kalshi', target)).length);
    expect(hits).toEqual([0, 0, 1]);
  });

  it.each([undefined, { ids: [] }, { ids: [''] }, { ids: ['a'], status: 200 }])('refuses bad members %j', (members) => {
    const add = () => newBoard().add({ host: '*', kind: 'bad_member', members });
    expect(add).toThrow(SimControlError);
  });

  it('ends a fault after its seconds', () => {
    let second = 100;
    const board = newBoard(1, () => second);
    board.add({ host: 'data', kind: 'reset', seconds: 5 });
    const hits = [100, 104, 105].map((at) => {
      second = at;
      return board.take(asked('data', '/x')).length;
    });
    expect(hits).toEqual([1, 1, 0]);
    expect(board.list()).toEqual([]);
  });

  it.each<[string, SimHost, string, live: number, any: number]>([
    ['the feed of Polymarket', 'data', '/v2/trades?limit=10', 1, 1],
    ['one market of Polymarket', 'data', '/v2/trades?condition=0x1', 0, 1],
    ['a wallet of Polymarket', 'data', '/v2/activity?user=0x1', 0, 0],
    ['the tape of Kalshi', 'kalshi', '/trade-api/v2/markets/trades', 1, 1],
    ['one market of Kalshi', 'kalshi', '/trade-api/v2/markets/trades?ticker=A', 0, 1],
    ['the old tape of Kalshi', 'kalshi', '/trade-api/v2/historical/trades', 0, 1],
    ['the markets of Kalshi', 'kalshi', '/trade-api/v2/markets', 0, 0],
    ['the bets of Manifold', 'manifold', '/v0/bets?order=asc', 1, 1],
    ['one contract of Manifold', 'manifold', '/v0/bets?contractId=a', 0, 1],
    ['one market of Limitless', 'limitless', '/markets/a/events', 1, 1],
    ['the listing of Limitless', 'limitless', '/markets/active', 0, 0],
  ])('hits %s with a trade_feed fault as requested', (_name, host, target, live, any) => {
    const hitsOf = (hitsHistory: boolean) => {
      const board = newBoard();
      board.add({ host: '*', kind: 'trade_feed', feed: { how: 'empty', hitsHistory } });
      return board.take(asked(host, target)).length;
    };
    expect([hitsOf(false), hitsOf(true)]).toEqual([live, any]);
  });

  it.each<[string, object]>([
    ['kind', { host: '*', kind: 'fire' }],
    ['host', { host: 'intrade', kind: 'reset' }],
    ['latencyMs', { host: '*', kind: 'latency' }],
    ['field', { host: '*', kind: 'rename_field' }],
    ['drip without a time', { host: '*', kind: 'drip' }],
    ['set', { host: '*', kind: 'set_field', set: { field: 'a' } }],
    ['set.every', { host: '*', kind: 'set_field', set: { field: 'a', value: 1, every: 0 } }],
    ['status', { host: '*', kind: 'status500', status: 404 }],
    ['maxAgeSeconds', { host: '*', kind: 'cdn_cache' }],
    ['maxAgeSeconds of zero', { host: '*', kind: 'cdn_cache', maxAgeSeconds: 0 }],
    ['count', { host: '*', kind: 'reset', count: 0 }],
    ['seconds', { host: '*', kind: 'reset', seconds: 0.5 }],
    ['trade_feed without a feed', { host: 'data', kind: 'trade_feed' }],
    ['feed of another kind', { host: 'data', kind: 'reset', feed: { how: 'empty' } }],
    ['feed.how', { host: 'data', kind: 'trade_feed', feed: { how: 'lost' } }],
    ['feed.share', { host: 'data', kind: 'trade_feed', feed: { how: 'truncated', share: 2 } }],
    ['feed.omits', { host: 'data', kind: 'trade_feed', feed: { how: 'truncated', omits: 'newest' } }],
    ['feed.repeats', { host: 'data', kind: 'trade_feed', feed: { how: 'repeating', repeats: 'all' } }],
    ['feed.maxAgeSeconds', { host: 'data', kind: 'trade_feed', feed: { how: 'cached', maxAgeSeconds: 0 } }],
    ['probability', { host: '*', kind: 'reset', probability: 2 }],
  ])('rejects a fault with a bad %s', (_name, request) => {
    expect(() => newBoard().add(request as FaultRequest)).toThrow(SimControlError);
  });
});

it('renameField renames a key at every depth, in its place', () => {
  expect(renameField('[{"a":1,"b":{"a":[{"a":2}]}}]', 'a', 'z')).toBe('[{"z":1,"b":{"z":[{"z":2}]}}]');
});

it('setField gives a key a value at every depth', () => {
  expect(setField('[{"a":1,"b":{"a":[{"a":2}]}}]', 'a', null)).toBe('[{"a":null,"b":{"a":null}}]');
});

it('setField changes every second occurrence of a key on request', () => {
  expect(setField('[{"a":1},{"a":2},{"a":3},{"a":4}]', 'a', null, 2)).toBe('[{"a":1},{"a":null},{"a":3},{"a":null}]');
});
