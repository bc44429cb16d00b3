import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { MAX_STALE_MS } from '../../../../api/reads/journal-view.ts';
import { readJournalHead } from '../../../../src/store/journal/read-journal.ts';
import { gate } from '../../../support/gate.ts';
import { contentOf, type LiveApi, MemoryWorld } from './memory-world.ts';

const MARKETS = ['m-a', 'm-b', 'm-c', 'm-d'];
const STEPS = 40;
const READERS = 4;
/** A load can last this long, or as long as the slowest read on a busy machine; an answer that is never dropped exceeds both. */
const SLOW_LOAD_MS = 2_000;

/** A content of a path, from before its write began until after the next one was committed. */
interface Version {
  content: string;
  fromMs: number;
  untilMs: number;
}

interface Seen {
  path: string;
  content: string;
  beganMs: number;
  endedMs: number;
}

let world: MemoryWorld;
let live: LiveApi | undefined;
afterEach(async () => {
  await live?.close();
  live = undefined;
  await world.close();
});

function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** What the database answered over time. */
class Ledger {
  readonly #versions = new Map<string, Version[]>();

  async record(paths: readonly string[], fromMs: number): Promise<void> {
    const contents = await Promise.all(paths.map((path) => world.truth(path)));
    for (const [index, path] of paths.entries()) {
      const content = contents[index] ?? '';
      const versions = this.#versions.get(path) ?? [];
      const last = versions.at(-1);
      if (last) last.untilMs = performance.now();
      versions.push({ content, fromMs, untilMs: Number.POSITIVE_INFINITY });
      this.#versions.set(path, versions);
    }
  }

  /** Answers that the database never gave, or gave longer ago than an answer may be late. */
  wrong(seen: readonly Seen[]): Seen[] {
    const slowestMs = Math.max(SLOW_LOAD_MS, ...seen.map(({ beganMs, endedMs }) => endedMs - beganMs));
    return seen.filter(({ path, content, beganMs, endedMs }) => {
      const versions = this.#versions.get(path) ?? [];
      const oldestMs = beganMs - MAX_STALE_MS - slowestMs;
      return !versions.some((one) => one.content === content && one.fromMs <= endedMs && one.untilMs >= oldestMs);
    });
  }
}

/** Waits until each answer is the present one of the database. */
async function becomeTrue(client: LiveApi['client'], paths: readonly string[]): Promise<void> {
  await Promise.all(
    paths.map(async (path) => {
      const truth = await world.truth(path);
      await expect.poll(() => contentOf(client, path)).toBe(truth);
    }),
  );
}

describe.each([
  { name: 'ample memory', seed: 11, maxBytes: 50_000_000 },
  { name: 'memory for a few answers, which evicts all the time', seed: 12, maxBytes: 30_000 },
])('reads with $name', ({ seed, maxBytes }) => {
  it('are late by a second at most and never wrong, with writes, stalls, lost connections and restarts', async () => {
    const random = seeded(seed);
    world = await MemoryWorld.start(random, MARKETS);
    const paths = MARKETS.flatMap((id) => world.pathsOf(id));
    const ledger = new Ledger();
    await ledger.record([...new Set(paths)], Number.NEGATIVE_INFINITY);
    world.publish();
    live = await world.live(maxBytes);

    const seen: Seen[] = [];
    let isWriting = true;
    let readers = Promise.resolve<unknown>(undefined);
    const startReaders = (client: LiveApi['client']) => {
      const own = { isOn: true };
      readers = Promise.all(
        Array.from({ length: READERS }, async () => {
          while (isWriting && own.isOn) {
            const path = paths[Math.floor(Math.random() * paths.length)] ?? '';
            const beganMs = performance.now();
            const content = await contentOf(client, path);
            seen.push({ path, content, beganMs, endedMs: performance.now() });
          }
        }),
      );
      return own;
    };
    let current = startReaders(live.client);

    for (let step = 0; step < STEPS; step++) {
      const marketId = MARKETS[Math.floor(random() * MARKETS.length)] ?? '';
      const write = world.writes[Math.floor(random() * world.writes.length)];
      const fromMs = performance.now();
      await write?.(marketId);
      await ledger.record(world.pathsOf(marketId), fromMs);
      if (step % 20 === 7) await world.stall();
      if (step % 20 === 12) world.publish();
      if (step % 20 === 15) await world.cutTail();
      if (step === STEPS / 2) {
        current.isOn = false;
        await readers;
        await live.close();
        live = await world.live(maxBytes);
        current = startReaders(live.client);
      }
      await delay(Math.floor(random() * 40));
    }
    isWriting = false;
    await readers;

    expect(seen.length).toBeGreaterThan(STEPS);
    const lookups = await live.metrics.cacheLookups.get();
    const counts = Object.fromEntries(lookups.values.map(({ labels, value }) => [labels.result, value]));
    expect(counts).toEqual({
      memory: expect.any(Number),
      hit: expect.any(Number),
      shared: expect.any(Number),
      miss: expect.any(Number),
    });
    expect(ledger.wrong(seen)).toEqual([]);
    // A quiet database: every answer becomes the present one.
    world.publish();
    await becomeTrue(live.client, [...new Set(paths)]);
  });
});

it('a read that began before a change, and ended after it was named, does not stay', async () => {
  world = await MemoryWorld.start(seeded(13), ['m-a']);
  world.publish();
  live = await world.live(50_000_000);
  const { client, tail } = live;
  const paths = world.pathsOf('m-a');
  const everyPathIsTrue = () => becomeTrue(client, paths);
  const delivered = async () => {
    const { db } = world.reference;
    await expect.poll(async () => (await readJournalHead(db)).checkedAt > writtenAt).toBe(true);
    const { seq } = await readJournalHead(db);
    await expect.poll(() => tail.position).toBeGreaterThanOrEqual(seq);
  };
  let writtenAt = new Date(0);
  await everyPathIsTrue();
  for (const write of new Set(world.writes)) {
    const hold = gate();
    world.held.until = hold.opened;
    world.held.count = 0;
    // Drops the answers, so that the next reads use the database.
    for (const each of new Set(world.writes)) await each('m-a');
    writtenAt = new Date();
    await delivered();
    const reads = Promise.all(paths.map((path) => contentOf(client, path)));
    await expect.poll(() => world.held.count).toBeGreaterThan(3);
    await write('m-a');
    writtenAt = new Date();
    await delivered();
    world.held.until = undefined;
    hold.open();
    await reads;
    await everyPathIsTrue();
  }
});
