import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { waitForTurn } from '../../../../src/store/db/look-turns.ts';

/** All processes together look this often. */
const LOOK_EVERY_MS = 400;
const START_MS = 1_797_000_000_000;

/** The moments at which each of `present` processes looks within 20 s, when each begins at a moment of its own and wakes up late. */
function looksOf(present: number, begins: readonly number[], late: readonly number[]): number[][] {
  return Array.from({ length: present }, (_, place) => {
    const looks: number[] = [];
    let atMs = START_MS + (begins[place % begins.length] ?? 0);
    for (let look = 0; atMs < START_MS + 20_000; look += 1) {
      looks.push(atMs);
      atMs += waitForTurn({ present, place, atMs }) + (late[(look + place) % late.length] ?? 0);
    }
    return looks;
  });
}

const widest = (looks: readonly number[]) =>
  Math.max(...looks.slice(1).map((at, i) => at - (looks[i] ?? Number.NEGATIVE_INFINITY)));

describe('waitForTurn', () => {
  const worlds = fc.tuple(
    fc.integer({ min: 1, max: 12 }),
    fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 12 }),
    fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 7 }),
  );

  it('lets some process look in each interval, and each process within two seconds, when they wake up a little late', () => {
    fc.assert(
      fc.property(worlds, ([present, begins, late]) => {
        const looks = looksOf(present, begins, late);
        for (const own of looks) expect(widest(own)).toBeLessThanOrEqual(2_000 + LOOK_EVERY_MS / 2 + 60);
        const settled = looks.flat().filter((at) => at > START_MS + 8_000);
        expect(widest(settled.toSorted((a, b) => a - b))).toBeLessThanOrEqual(LOOK_EVERY_MS + 60);
      }),
    );
  });

  it('lets each process look once in a cycle of all, or of five turns', () => {
    fc.assert(
      fc.property(worlds, ([present, begins, late]) => {
        const cycleMs = Math.min(present, 5) * LOOK_EVERY_MS;
        for (const looks of looksOf(present, begins, late)) {
          const settled = looks.filter((at) => at > START_MS + 8_000);
          expect(settled.length).toBeLessThanOrEqual(12_000 / cycleMs + 1);
        }
      }),
    );
  });

  it('works with the clock of any moment, also set back', () => {
    const waits = [-3_000, 0, 1, 399.5, 400].map((atMs) => waitForTurn({ present: 3, place: 1, atMs }));
    for (const wait of waits) {
      expect(wait).toBeGreaterThanOrEqual(LOOK_EVERY_MS / 2);
      expect(wait).toBeLessThanOrEqual(3.5 * LOOK_EVERY_MS);
    }
  });
});
