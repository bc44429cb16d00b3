import { afterEach, expect, it } from 'vitest';
import { contentOf, type LiveApi, MemoryWorld } from './memory-world.ts';

const MARKETS = Array.from({ length: 40 }, (_, n) => `m-${n}`);
/** For about a third of the markets. */
const MAX_BYTES = 60_000;
const ROUNDS = 4;

let world: MemoryWorld | undefined;
let live: LiveApi | undefined;
afterEach(async () => {
  await live?.close();
  await world?.close();
});

async function readsFromMemory({ metrics }: LiveApi): Promise<number> {
  const { values } = await metrics.cacheLookups.get();
  return values.find(({ labels }) => labels.result === 'memory')?.value ?? 0;
}

it('memory keeps most of its markets when clients read more markets in turn than it takes', async () => {
  world = await MemoryWorld.start(() => 0.5, MARKETS);
  world.publish();
  live = await world.live(MAX_BYTES);
  const { client, reads } = live;
  await expect.poll(() => reads.memory.isLoaded).toBe(true);
  const { entries } = reads.memory.size;
  expect(entries).toBeGreaterThan(5);
  expect(entries).toBeLessThan(MARKETS.length / 2);
  for (let round = 0; round < ROUNDS; round++) {
    for (const id of MARKETS) {
      const path = `/v1/polymarket/markets/${id}`;
      expect(await contentOf(client, path)).toBe(await world.truth(path));
    }
  }
  expect(await readsFromMemory(live)).toBeGreaterThan((ROUNDS * entries) / 2);
});
