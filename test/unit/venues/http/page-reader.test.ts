import { describe, expect, it } from 'vitest';
import { VenueError } from '../../../../src/venues/errors.ts';
import { createPageReader } from '../../../../src/venues/http/page-reader.ts';

const failure = (statusCode: number) =>
  new VenueError('kalshi', 'http_status', `HTTP ${statusCode}`, { retryable: true, statusCode });

/** A listing with places that fail, and the reader's walk over it. */
function listing(rows: number, bad: ReadonlySet<number>) {
  const asked: { at: number; limit: number; isPart: boolean | undefined }[] = [];
  const readPage = createPageReader();
  let probes = 0;
  const page = (at: number, size: number, probe = () => Promise.resolve()) =>
    readPage({
      size,
      isFirst: at === 0,
      read: async (limit, batch) => {
        asked.push({ at, limit, isPart: batch?.isPart });
        const places = Array.from({ length: Math.min(limit, rows - at) }, (_, index) => at + index);
        if (places.some((place) => bad.has(place))) throw failure(500);
        return places;
      },
      probe: () => {
        probes += 1;
        return probe();
      },
    });
  /** The places that were read before the one that fails alone, or all. */
  const walk = async (size: number) => {
    const read: number[] = [];
    while (read.length < rows) {
      const result = await page(read.length, size);
      if ('failure' in result) return { read, stoppedBy: result.failure.statusCode };
      read.push(...result.answer);
    }
    return { read, stoppedBy: undefined };
  };
  return { page, walk, asked, probes: () => probes };
}

describe('a page reader', () => {
  it.each([0, 1, 2, 49, 50, 98, 99, 100, 137, 299])('reads every row above the bad one at place %i', async (place) => {
    const { walk, asked } = listing(300, new Set([place]));
    const { read, stoppedBy } = await walk(100);
    expect({ read: read.length, stoppedBy }).toEqual({ read: place, stoppedBy: 500 });
    // Whole pages above, the page that fails, and one request for each of its halves.
    expect(asked.length).toBeLessThanOrEqual(Math.floor(place / 100) + 2 + Math.ceil(Math.log2(100)));
  });

  it('repeats no size, and asks for smaller pages as parts', async () => {
    const { page, asked } = listing(300, new Set([0]));
    await page(0, 8);
    expect(asked).toEqual([
      { at: 0, limit: 8, isPart: undefined },
      { at: 0, limit: 4, isPart: true },
      { at: 0, limit: 2, isPart: true },
      { at: 0, limit: 1, isPart: true },
    ]);
  });

  it('asks for whole pages again when the row healed, and at the beginning of a listing', async () => {
    const bad = new Set([6]);
    const { page, walk, asked } = listing(40, bad);
    await page(0, 8);
    bad.clear();
    asked.length = 0;
    for (const at of [4, 6, 7, 8]) await page(at, 8);
    expect(asked.map(({ limit }) => limit)).toEqual([2, 1, 1, 8]);
    bad.add(6);
    await page(0, 8);
    bad.clear();
    asked.length = 0;
    expect((await walk(8)).read).toHaveLength(40);
    expect(asked.map(({ limit }) => limit)).toEqual([8, 8, 8, 8, 8]);
  });

  it('throws after three failures when the probe fails, and the next page is whole again', async () => {
    const { page, asked, probes } = listing(300, new Set([0]));
    const fails = () => Promise.reject(failure(502));
    await expect(page(0, 100, fails)).rejects.toMatchObject({ statusCode: 500 });
    await expect(page(0, 100, fails)).rejects.toMatchObject({ statusCode: 500 });
    expect(asked.map(({ limit }) => limit)).toEqual([100, 50, 25, 100, 50, 25]);
    expect(probes()).toBe(2);
  });

  it.each([
    ['a 429', new VenueError('kalshi', 'rate_limited', 'HTTP 429', { retryable: true, statusCode: 429 })],
    ['a timeout', new VenueError('kalshi', 'timeout', 'no answer', { retryable: true })],
    ['a failed connection', new VenueError('kalshi', 'network', 'reset', { retryable: true })],
    ['a refused cursor', failure(400)],
    ['a refused key', failure(401)],
  ])('does not narrow after %s', async (_, error) => {
    let reads = 0;
    const read = () => {
      reads += 1;
      return Promise.reject(error);
    };
    const page = { size: 100, isFirst: true, read, probe: () => Promise.resolve() };
    await expect(createPageReader()(page)).rejects.toBe(error);
    expect(reads).toBe(1);
  });
});
