import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { VenueError, type VenueErrorCode } from '../../../../src/venues/errors.ts';
import type { BatchRequest } from '../../../../src/venues/http/http.ts';
import { createMemberBatches, MEMBER_REFUSED, rejectMembers } from '../../../../src/venues/http/member-batches.ts';
import type { EventOf } from '../../../support/venue-events.ts';

const error = (statusCode: number, code: VenueErrorCode = 'http_status') =>
  new VenueError('test', code, `HTTP ${statusCode}`, { retryable: statusCode >= 500, statusCode });
const names = (count: number) => Array.from({ length: count }, (_, at) => `m${at}`);

/** A route whose answers fail when `breaks` says so, and a clock that a test moves. */
function setup(breaks: (members: readonly string[]) => VenueError | undefined, size = 100) {
  const requests: { members: readonly string[]; batch: BatchRequest }[] = [];
  const events: EventOf<'onMembers'>[] = [];
  const host = { isFailing: false, blamed: 0, nowMs: 0, breaks };
  const batches = createMemberBatches({
    venue: 'test',
    route: 'things',
    observer: { onMembers: (event) => events.push(event) },
    isFailing: () => host.isFailing,
    blame: async (failures) => {
      host.blamed += failures.length;
    },
    now: () => host.nowMs,
  });
  /** One call: the members that were answered, and the number of its requests. */
  async function ask(members: readonly string[], isOfRoute?: (error: VenueError) => boolean) {
    const before = requests.length;
    const asked = await batches.ask(
      members,
      async (each, batch) => {
        requests.push({ members: each, batch });
        const failure = host.breaks(each);
        if (failure) throw failure;
        return each;
      },
      { size, ...(isOfRoute && { isOfRoute }) },
    );
    const answered = asked.answers.flatMap(({ answer }) => answer).sort();
    return { ...asked, answered, requests: requests.slice(before) };
  }
  return { ask, requests, events, host };
}

const brokenBy = (bad: readonly string[], statusCode = 500) => {
  const set = new Set(bad);
  return (members: readonly string[]) => (members.some((each) => set.has(each)) ? error(statusCode) : undefined);
};
const without = (members: readonly string[], bad: readonly string[]) =>
  members.filter((each) => !bad.includes(each)).sort();

describe('the batches of a route', () => {
  it.each([400, 403, 404, 500, 503])(
    'answer all members but the bad one when it breaks the batch with %i',
    async (status) => {
      const { ask } = setup(brokenBy(['m37'], status));
      const { answered, refused, unread, fault } = await ask(names(100));
      expect(answered).toEqual(without(names(100), ['m37']));
      expect(refused).toMatchObject([{ member: 'm37', route: 'things', reason: `HTTP ${status}`, failures: 1 }]);
      expect({ unread, fault }).toEqual({ unread: [], fault: undefined });
    },
  );

  it('answer all members but two bad ones', async () => {
    const { ask } = setup(brokenBy(['m3', 'm71']));
    const { answered, refused, requests } = await ask(names(100));
    expect(answered).toEqual(without(names(100), ['m3', 'm71']));
    expect(refused.map(({ member }) => member).sort()).toEqual(['m3', 'm71']);
    expect(requests.length).toBeLessThanOrEqual(1 + 4 * 7);
  });

  it('send one request for the good members while the bad one is in quarantine', async () => {
    const { ask } = setup(brokenBy(['m37']));
    await ask(names(100));
    const { answered, unread, requests } = await ask(names(100));
    expect(answered).toEqual(without(names(100), ['m37']));
    expect({ unread, requests: requests.length }).toEqual({ unread: ['m37'], requests: 1 });
  });

  it('ask again for a bad member at its retry time, alone and last, and wait longer each time, at most an hour', async () => {
    const { ask, host } = setup(brokenBy(['m1']));
    let waitMs = (await ask(names(4))).refused[0]?.retryAfterMs ?? 0;
    const waits = [waitMs];
    for (let round = 0; round < 10; round += 1) {
      host.nowMs += waitMs - 1;
      expect((await ask(names(4))).requests.length).toBe(1);
      host.nowMs += 1;
      const { requests, refused } = await ask(names(4));
      expect(requests.map(({ members }) => members)).toEqual([['m0', 'm2', 'm3'], ['m1']]);
      waitMs = refused[0]?.retryAfterMs ?? 0;
      waits.push(waitMs);
    }
    expect(waits.slice(0, 4)).toEqual([30_000, 60_000, 120_000, 240_000]);
    expect(waits.slice(-3)).toEqual([3_600_000, 3_600_000, 3_600_000]);
  });

  it('report no fault of the host when many members in quarantine fail again beside an answer', async () => {
    const bad = ['m10', 'm30', 'm50', 'm70', 'm90'];
    const { ask, host } = setup(brokenBy(bad));
    const confined = new Set<string>();
    for (let call = 0; confined.size < bad.length && call < bad.length; call += 1) {
      for (const { member } of (await ask(names(100))).refused) confined.add(member);
    }
    host.nowMs += 30_000;
    const { answered, refused, unread, fault } = await ask(names(100));
    expect(answered).toEqual(without(names(100), bad));
    expect(refused.map(({ member, failures }) => [member, failures])).toEqual(bad.map((member) => [member, 2]));
    expect({ unread, fault }).toEqual({ unread: [], fault: undefined });
  });

  it('ask for a member with the others again when it heals, and begin with the shortest wait when it fails later', async () => {
    const { ask, host, events } = setup(brokenBy(['m1']));
    await ask(names(4));
    host.nowMs += 30_000;
    await ask(names(4));
    host.nowMs += 60_000;
    host.breaks = () => undefined;
    const healed = await ask(names(4));
    expect(healed.answered).toEqual(names(4));
    expect((await ask(names(4))).requests.map(({ members }) => members)).toEqual([names(4)]);
    expect(events.at(-1)).toEqual({
      venue: 'test',
      route: 'things',
      refused: [],
      healed: ['m1'],
      quarantined: 0,
    });
    host.breaks = brokenBy(['m1']);
    expect((await ask(names(4))).refused).toMatchObject([{ failures: 1, retryAfterMs: 30_000 }]);
  });

  it('refuse neither of two members that fail only beside each other, and ask for them apart afterwards', async () => {
    const { ask, host } = setup((members) =>
      members.includes('m10') && members.includes('m11') ? error(500) : undefined,
    );
    const first = await ask(names(64));
    expect(first).toMatchObject({ answered: [...names(64)].sort(), refused: [], unread: [] });
    const second = await ask(names(64));
    expect(second).toMatchObject({ answered: [...names(64)].sort(), refused: [] });
    expect(second.requests.length).toBe(2);
    host.nowMs += 600_000;
    expect((await ask(names(64))).answered).toEqual([...names(64)].sort());
  });

  it('retry a batch as a whole only before it was halved', async () => {
    const { ask } = setup(brokenBy(['m5']));
    const { requests } = await ask(names(8));
    expect(requests.map(({ batch }) => batch.isPart)).toEqual([false, ...requests.slice(1).map(() => true)]);
  });

  it('stop after three levels of which both halves failed, and blame the host', async () => {
    const { ask, host, requests } = setup(() => error(500));
    await expect(ask(names(100))).rejects.toThrow('HTTP 500');
    expect({ requests: requests.length, blamed: host.blamed }).toEqual({ requests: 7, blamed: 7 });
  });

  it('do not halve while three routes of the host fail', async () => {
    const { ask, host, requests } = setup(() => error(500));
    host.isFailing = true;
    await expect(ask(names(100))).rejects.toThrow('HTTP 500');
    expect(requests.length).toBe(1);
  });

  it.each(['rate_limited', 'network', 'timeout', 'circuit_open', 'budget_unavailable', 'aborted'] as const)(
    'do not halve after %s',
    async (code) => {
      const { ask, requests } = setup(() => error(0, code));
      await expect(ask(names(100))).rejects.toMatchObject({ code });
      expect(requests.length).toBe(1);
    },
  );

  it('put no member into quarantine while the host fails, and ask once for all of them when it works again', async () => {
    const { ask, host, events } = setup(() => error(500));
    for (let tick = 0; tick < 40; tick += 1) {
      host.nowMs += 1_000;
      await ask(names(16)).catch(() => undefined);
    }
    host.breaks = () => undefined;
    const { answered, unread } = await ask(names(16));
    expect({ answered, unread, events }).toEqual({ answered: [...names(16)].sort(), unread: [], events: [] });
    expect((await ask(names(16))).requests.length).toBe(1);
  });

  it('begin with other members after a call that failed', async () => {
    const { ask, host, requests } = setup(brokenBy(names(8)));
    await expect(ask(names(8))).rejects.toThrow();
    const before = requests.length;
    const { answered } = await ask([...names(8), 'good']);
    expect(requests[before]?.members).toEqual(['good']);
    expect(answered).toEqual(['good']);
    expect(host.blamed).toBe(7);
  });

  it('narrow a batch that one member keeps without an answer, call by call', async () => {
    const hangs = (members: readonly string[]) => (members.includes('m9') ? error(0, 'timeout') : undefined);
    const { ask, host } = setup(hangs);
    const answered = new Set<string>();
    let refused: string[] = [];
    for (let tick = 0; tick < 12 && refused.length === 0; tick += 1) {
      host.nowMs += 1_000;
      const result = await ask(names(64)).catch(() => undefined);
      for (const member of result?.answered ?? []) answered.add(member);
      refused = result?.refused.map(({ member }) => member) ?? [];
    }
    expect(refused).toEqual(['m9']);
    expect([...answered].sort()).toEqual(without(names(64), ['m9']));
    expect((await ask(names(64))).answered).toEqual(without(names(64), ['m9']));
  });

  it('throw an error of the route at once', async () => {
    const { ask, requests } = setup(() => error(404));
    await expect(ask(names(100), ({ statusCode }) => statusCode === 404)).rejects.toThrow('HTTP 404');
    expect(requests.length).toBe(1);
  });

  it('keep the answers and name the unread members when the host fails in the middle', async () => {
    let left = 2;
    const { ask } = setup(() => (left-- > 0 ? undefined : error(0, 'network')), 10);
    const { answered, unread, fault } = await ask(names(40));
    expect(answered).toEqual(names(20).sort());
    expect([...unread].sort()).toEqual(names(40).slice(20).sort());
    expect(fault).toMatchObject({ code: 'network' });
  });

  it('pass on an error that is not of the venue', async () => {
    const { ask } = setup(() => {
      throw new TypeError('a bug');
    });
    await expect(ask(names(4))).rejects.toThrow(TypeError);
  });

  it('name the retry time in the rejected record of a member', () => {
    const refused = [{ member: 'm1', route: 'things', reason: 'HTTP 500', failures: 2, retryAfterMs: 60_000 }];
    expect(rejectMembers('prices', refused, 0)).toEqual([
      {
        kind: 'prices',
        recordId: 'm1',
        reason: MEMBER_REFUSED,
        detail: 'HTTP 500 for this id alone, 2 in a row on the route things; asked again at 1970-01-01T00:01:00.000Z',
        sample: '{"id":"m1","route":"things","failures":2,"retryAt":"1970-01-01T00:01:00.000Z"}',
      },
    ]);
  });

  it('cost O(k log n) requests for k bad of n members, and never the answer of a good one', async () => {
    const cases = fc.integer({ min: 1, max: 300 }).chain((n) =>
      fc.record({
        n: fc.constant(n),
        bad: fc.uniqueArray(fc.integer({ min: 0, max: n - 1 }), { maxLength: n - 1 }),
        size: fc.integer({ min: 1, max: 120 }),
      }),
    );
    await fc.assert(
      fc.asyncProperty(cases, async ({ n, bad, size }) => {
        const members = names(n);
        const broken = bad.map((at) => `m${at}`);
        const { ask, host, requests } = setup(brokenBy(broken), size);
        const good = without(members, broken);
        const answered = new Set<string>();
        let calls = 0;
        while (answered.size < good.length) {
          calls += 1;
          host.nowMs += 100;
          const result = await ask(members).catch(() => undefined);
          for (const member of result?.answered ?? []) answered.add(member);
          for (const { member } of result?.refused ?? []) expect(broken).toContain(member);
          expect(calls).toBeLessThanOrEqual(1 + broken.length);
        }
        const levels = Math.ceil(Math.log2(size)) + 1;
        const batches = Math.ceil(n / size);
        expect(requests.length).toBeLessThanOrEqual(4 * broken.length * levels + calls * batches);
      }),
      {
        numRuns: 200,
        // Two batches of which each fails on three levels: once they undid each other's halving without end.
        examples: [[{ n: 234, bad: [26, 5, 22, 9, 17, 3, 20, 0], size: 17 }]],
      },
    );
  });
});
