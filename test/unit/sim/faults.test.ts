import { describe, expect, it } from 'vitest';
import { SimControlError } from '../../../sim/errors.ts';
import { FaultBoard, type FaultRequest, renameField, setField } from '../../../sim/faults.ts';

describe('FaultBoard', () => {
  it('affects its host and path, as often as requested', () => {
    const board = new FaultBoard(1);
    board.add({ host: 'clob', path: '/books', kind: 'status500', count: 2 });
    const hits = ['/books', '/book', '/books', '/books'].map((path) => board.take('clob', path).length);
    expect(hits).toEqual([1, 0, 1, 0]);
    expect(board.take('gamma', '/books')).toEqual([]);
    expect(board.list()).toEqual([]);
  });

  it('keeps a fault without a count until cleared, on every host with the star', () => {
    const board = new FaultBoard(1);
    const fault = board.add({ host: '*', kind: 'reset' });
    for (const host of ['gamma', 'clob', 'data']) expect(board.take(host, '/x')).toHaveLength(1);
    expect(board.list()).toEqual([{ id: fault.id, host: '*', kind: 'reset', applied: 3 }]);
    expect([board.clear(fault.id), board.clear()]).toEqual([1, 0]);
    expect(board.take('data', '/x')).toEqual([]);
  });

  it('draws a probability from the seed', () => {
    const hits = (seed: number) => {
      const board = new FaultBoard(seed);
      board.add({ host: '*', kind: 'status429', probability: 0.3 });
      return Array.from({ length: 2000 }, () => board.take('data', '/trades').length);
    };
    expect(hits(7)).toEqual(hits(7));
    expect(hits(7)).not.toEqual(hits(8));
    const share = hits(7).reduce((sum, hit) => sum + hit, 0) / 2000;
    expect(share).toBeGreaterThan(0.25);
    expect(share).toBeLessThan(0.35);
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
    ['probability', { host: '*', kind: 'reset', probability: 2 }],
  ])('rejects a fault with a bad %s', (_name, request) => {
    expect(() => new FaultBoard(1).add(request as FaultRequest)).toThrow(SimControlError);
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
