import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { OpenOutcome } from '../../../src/store/catalog/watched-outcomes.ts';
import { catalogMemoryOf } from '../../../workers/ingest/catalog-memory.ts';
import { gate } from '../../support/gate.ts';

beforeEach(() => vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => vi.useRealTimers());

const outcome = (id: number): OpenOutcome => ({
  ...{ marketPk: 1n, tokenId: BigInt(id), outcomeId: `o${id}` },
  ...{ isFirst: true, mirror: null },
});
const outcomes = (count: number) => Array.from({ length: count }, (_, index) => outcome(index + 1));

it('a catalog memory reads a page once until this process stores a change', async () => {
  const process = {};
  const memory = catalogMemoryOf(process, 'v');
  const read = vi.fn(async () => outcomes(2));
  await memory.page('0:0', read);
  expect(await memory.page('0:0', read)).toEqual(outcomes(2));
  expect(read).toHaveBeenCalledTimes(1);
  await memory.page('1:2', read);
  expect(read).toHaveBeenCalledTimes(2);
  catalogMemoryOf(process, 'other').forget();
  await memory.page('0:0', read);
  expect(read).toHaveBeenCalledTimes(2);
  catalogMemoryOf(process, 'v').forget();
  await memory.page('0:0', read);
  expect(read).toHaveBeenCalledTimes(3);
});

it('a catalog memory keeps nothing of a read that began before a change', async () => {
  const memory = catalogMemoryOf({}, 'v');
  const answered = gate();
  const before = memory.page('0:0', async () => {
    await answered.opened;
    return outcomes(1);
  });
  const idsBefore = memory.tokenIds(['o1'], async () => {
    await answered.opened;
    return [];
  });
  memory.forget();
  answered.open();
  expect(await before).toEqual(outcomes(1));
  expect(await idsBefore).toEqual(new Map());
  expect(await memory.page('0:0', async () => outcomes(3))).toEqual(outcomes(3));
  expect(await memory.tokenIds(['o1'], async () => [outcome(1)])).toEqual(new Map([['o1', 1n]]));
});

it('a catalog memory asks for the ids that it does not know, and knows which ones are not tradable', async () => {
  const memory = catalogMemoryOf({}, 'v');
  const read = vi.fn(async (ids: readonly string[]) => (ids.includes('o1') ? [outcome(1)] : []));
  expect(await memory.tokenIds(['o1', 'shut'], read)).toEqual(new Map([['o1', 1n]]));
  expect(await memory.tokenIds(['shut', 'o1', 'new'], read)).toEqual(new Map([['o1', 1n]]));
  expect(read.mock.calls).toEqual([[['o1', 'shut']], [['new']]]);
});

it('a catalog memory sees a change of another process after a minute', async () => {
  const memory = catalogMemoryOf({}, 'v');
  await memory.page('0:0', async () => outcomes(1));
  vi.advanceTimersByTime(59_999);
  expect(await memory.page('0:0', async () => outcomes(2))).toHaveLength(1);
  vi.advanceTimersByTime(1);
  expect(await memory.page('0:0', async () => outcomes(2))).toHaveLength(2);
});

it('a catalog memory reads outcomes above its bound each time', async () => {
  const memory = catalogMemoryOf({}, 'v');
  const large = outcomes(50_000);
  await memory.page('0:0', async () => large);
  const read = vi.fn(async () => outcomes(1));
  await memory.page('1:1', read);
  await memory.page('1:1', read);
  expect(read).toHaveBeenCalledTimes(2);
  expect(await memory.page('0:0', read)).toBe(large);
});
