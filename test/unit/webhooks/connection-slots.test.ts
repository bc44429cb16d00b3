import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { createConnectionSlots, type ReleaseSlot } from '../../../src/webhooks/connection-slots.ts';

const ORIGIN = 'https://hooks.example.com';
const MAX_WAIT_MS = 3_000;

/** Accounts that ask for slots of one origin, and the order of the granted requests. */
function desk(perOrigin: number) {
  const slots = createConnectionSlots(perOrigin);
  const granted: string[] = [];
  const ask = (name: string, options: { origin?: string; signal?: AbortSignal } = {}) => {
    const { origin = ORIGIN, signal } = options;
    const account = BigInt(name.charCodeAt(0));
    const asking = slots.acquire({ origin, account, maxWaitMs: MAX_WAIT_MS, ...(signal && { signal }) });
    return asking.then((release) => {
      if (release !== null) granted.push(name);
      return release;
    });
  };
  const settled = () => new Promise<void>((resolve) => setImmediate(resolve));
  return { slots, granted, ask, settled };
}

afterEach(() => {
  vi.useRealTimers();
});

describe('createConnectionSlots', () => {
  it('grants a slot while the account holds fewer than are free, per origin', async () => {
    const { ask, granted, settled } = desk(6);
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) void ask(name);
    void ask('a5', { origin: 'https://hooks.example.com:8443' });
    await settled();
    expect(granted).toEqual(['a1', 'a2', 'a3', 'b1', 'b2', 'c1', 'a5']);
  });

  it('grants a returned slot to the waiting account with the fewest slots, then to the one that was served longest ago', async () => {
    const { ask, granted, settled } = desk(4);
    const [first, second] = [await ask('a1'), await ask('a2')];
    const other = await ask('b1');
    for (const name of ['a3', 'a4', 'b2', 'c1', 'd1']) void ask(name);
    await settled();
    expect(granted).toEqual(['a1', 'a2', 'b1', 'c1']);
    first?.();
    await settled();
    expect(granted.slice(4)).toEqual(['d1']);
    second?.();
    other?.();
    await settled();
    expect(granted.slice(5)).toEqual(['a3', 'b2']);
  });

  it('returns a slot once when it is released twice', async () => {
    const { ask, granted, settled } = desk(2);
    const release = await ask('a1');
    void ask('a2');
    void ask('a3');
    release?.();
    release?.();
    await settled();
    expect(granted).toEqual(['a1', 'a2']);
  });

  it('answers null after the longest wait, and grants the slot to another request', async () => {
    vi.useFakeTimers();
    const { slots } = desk(1);
    const request = { origin: ORIGIN, account: 1n, maxWaitMs: MAX_WAIT_MS };
    const release = await slots.acquire(request);
    const late = slots.acquire(request);
    await vi.advanceTimersByTimeAsync(MAX_WAIT_MS);
    expect(await late).toBeNull();
    const patient = slots.acquire({ ...request, account: 2n });
    release?.();
    expect(await patient).toBeTypeOf('function');
    expect(vi.getTimerCount()).toBe(0);
  });

  it('answers null at an abort, also before the wait', async () => {
    const { ask, settled, granted } = desk(1);
    const release = await ask('a1');
    const stopping = new AbortController();
    const waiting = ask('b1', { signal: stopping.signal });
    stopping.abort();
    expect(await waiting).toBeNull();
    expect(await ask('c1', { signal: stopping.signal })).toBeNull();
    release?.();
    await settled();
    expect(granted).toEqual(['a1']);
    expect(await ask('d1')).toBeTypeOf('function');
  });

  it('never exceeds its slots, and grants every request in the end', async () => {
    const steps = fc.array(fc.record({ account: fc.bigInt({ min: 1n, max: 6n }), releases: fc.nat(3) }), {
      maxLength: 60,
    });
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 8 }), steps, async (perOrigin, requests) => {
        const slots = createConnectionSlots(perOrigin);
        const held: ReleaseSlot[] = [];
        let granted = 0;
        const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
        for (const { account, releases } of requests) {
          void slots.acquire({ origin: ORIGIN, account, maxWaitMs: 60_000 }).then((release) => {
            granted += 1;
            if (release) held.push(release);
          });
          await turn();
          expect(held.length).toBeLessThanOrEqual(perOrigin);
          for (let count = 0; count < releases; count += 1) held.shift()?.();
          await turn();
          expect(held.length).toBeLessThanOrEqual(perOrigin);
        }
        while (held.length > 0) {
          held.shift()?.();
          await turn();
        }
        expect(granted).toBe(requests.length);
      }),
      { numRuns: 60 },
    );
  });
});
