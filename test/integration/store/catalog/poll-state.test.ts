import { beforeEach, describe, expect, it } from 'vitest';
import { newToken } from '../../../../src/domain/values/ids.ts';
import { acquirePollLease, advancePoll, POLL_LEASES } from '../../../../src/store/catalog/poll-state.ts';
import { LeaseLostError } from '../../../../src/store/db/leases.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const READ = sql(
  'test_poll_state',
  `SELECT position, lease_token, extract(epoch FROM lease_until - clock_timestamp())::float AS lease_left, last_attempt_at,
     last_success_at, last_error, consecutive_failures, failing_since, first_error
   FROM poll_state WHERE venue = $1 AND kind = $2`,
);
const EXPIRE = sql('test_expire', `UPDATE poll_state SET lease_until = now() - interval '1 ms' WHERE venue = $1`);
const FORGET_FIRST = sql(
  'test_forget_first',
  'UPDATE poll_state SET failing_since = NULL, first_error = NULL WHERE venue = $1',
);
const NEARLY = sql('test_nearly', `UPDATE poll_state SET lease_until = now() + interval '5 s' WHERE venue = $1`);

const test = useTestDatabase();
let venue = '';
let made = 0;
beforeEach(() => {
  made += 1;
  venue = `v${made}`;
});

async function acquire(kind = 'trades') {
  const lease = await acquirePollLease(test.db, venue, kind, newToken());
  if (!lease) throw new Error('not acquired');
  return lease;
}
const attempt = (kind = 'trades') => acquirePollLease(test.db, venue, kind, newToken());

interface State {
  position: string | null;
  leaseToken: string | null;
  leaseLeft: number | null;
  lastAttemptAt: Date | null;
  lastSuccessAt: Date | null;
  lastError: string | null;
  consecutiveFailures: number;
  failingSince: Date | null;
  firstError: string | null;
}
async function state(kind = 'trades'): Promise<State> {
  const [row] = await test.db.query<State>(READ, [venue, kind]);
  if (!row) throw new Error('no poll state');
  return row;
}

describe('the lease of a poll', () => {
  it('is granted to one of many concurrent requests', async () => {
    const asked = await Promise.all(Array.from({ length: 10 }, () => attempt()));
    expect(asked.filter((lease) => lease !== null)).toHaveLength(1);
    expect(await attempt()).toBeNull();
  });

  it('is separate for each venue and kind', async () => {
    await acquire('trades');
    await acquire('prices');
    expect(await acquirePollLease(test.db, `${venue}-other`, 'trades', newToken())).not.toBeNull();
  });

  it('starts without a position, and returns the stored position unchanged', async () => {
    const lease = await acquire();
    expect(lease.position).toBeNull();
    const position = { cursor: 'x\u0000\ud800"', at: 1.5, seen: [null, true, 'ż'] };
    await advancePoll(test.db, lease, position);
    await POLL_LEASES.release(test.db, lease, null);
    expect((await acquire()).position).toEqual(position);
  });

  it('restarts the walk when the position is null', async () => {
    const lease = await acquire();
    await advancePoll(test.db, lease, { page: 2 });
    await advancePoll(test.db, lease, null);
    await POLL_LEASES.release(test.db, lease, null);
    expect(await acquire()).toMatchObject({ position: null });
  });

  it('passes to the next process with its position when it expires', async () => {
    const frozen = await acquire();
    expect((await state()).leaseLeft).toBeLessThanOrEqual(POLL_LEASES.seconds);
    await advancePoll(test.db, frozen, 'p1');
    await test.db.query(EXPIRE, [venue]);
    const next = await acquire();
    expect(next.position).toBe('p1');
    expect(next.token).not.toBe(frozen.token);
  });

  it('cannot be advanced, renewed, released or abandoned by a stalled poll after a takeover', async () => {
    const frozen = await acquire();
    await test.db.query(EXPIRE, [venue]);
    const next = await acquire();
    await advancePoll(test.db, next, 'theirs');
    await test.db.query(NEARLY, [venue]);
    const before = { ...(await state()), leaseLeft: 0 };
    await expect(advancePoll(test.db, frozen, 'mine')).rejects.toThrow(LeaseLostError);
    await POLL_LEASES.renew(test.db, frozen);
    expect(await POLL_LEASES.release(test.db, frozen, 'late')).toBe(0);
    expect(await POLL_LEASES.release(test.db, frozen, null)).toBe(0);
    await POLL_LEASES.abandon(test.db, frozen);
    expect((await state()).leaseLeft).toBeLessThan(5.1);
    expect({ ...(await state()), leaseLeft: 0 }).toEqual(before);
    await advancePoll(test.db, next, 'still theirs');
  });

  it('is renewed by its poll after it has expired, while nobody took it', async () => {
    const lease = await acquire();
    for (const renew of [() => POLL_LEASES.renew(test.db, lease), () => advancePoll(test.db, lease, 'late')]) {
      await test.db.query(EXPIRE, [venue]);
      await renew();
      expect((await state()).leaseLeft).toBeGreaterThan(POLL_LEASES.seconds - 5);
      expect(await acquirePollLease(test.db, venue, 'trades', 'other')).toBeNull();
    }
    expect((await state()).position).toBe('"late"');
  });

  it('is renewed by a page and by the heartbeat', async () => {
    const lease = await acquire();
    for (const renew of [() => POLL_LEASES.renew(test.db, lease), () => advancePoll(test.db, lease, 'p')]) {
      await test.db.query(NEARLY, [venue]);
      await renew();
      expect((await state()).leaseLeft).toBeGreaterThan(POLL_LEASES.seconds - 5);
    }
  });

  it('keeps its position when an advance rolls back', async () => {
    const lease = await acquire();
    await advancePoll(test.db, lease, 'committed');
    const failing = test.db.transaction(async (tx) => {
      await advancePoll(tx, lease, 'lost');
      throw new Error('write failed');
    });
    await expect(failing).rejects.toThrow('write failed');
    expect((await state()).position).toBe('"committed"');
  });

  it('stays with its holder when a takeover waits for a page that renews it', async () => {
    const lease = await acquire();
    let taken: ReturnType<typeof attempt> | undefined;
    await test.db.transaction(async (tx) => {
      await advancePoll(tx, lease, 'page');
      taken = attempt();
    });
    expect(await taken).toBeNull();
  });
});

describe('the poll state', () => {
  it('records the time of a success and clears the last error', async () => {
    await POLL_LEASES.release(test.db, await acquire(), 'venue down');
    await POLL_LEASES.release(test.db, await acquire(), null);
    expect(await state()).toMatchObject({
      leaseToken: null,
      leaseLeft: null,
      lastSuccessAt: expect.any(Date),
      lastError: null,
      consecutiveFailures: 0,
    });
  });

  it('failures are counted, the last one is kept, and the last success is not forgotten', async () => {
    await POLL_LEASES.release(test.db, await acquire(), null);
    const { lastSuccessAt } = await state();
    expect(await POLL_LEASES.release(test.db, await acquire(), 'first')).toBe(1);
    expect(await POLL_LEASES.release(test.db, await acquire(), 'bad \u0000 text \ud800')).toBe(2);
    expect(await state()).toMatchObject({
      lastSuccessAt,
      lastError: 'bad \uFFFD text \uFFFD',
      consecutiveFailures: 2,
    });
  });

  it('keeps the first failure of a run of failures, until a success', async () => {
    expect(await state().catch(() => undefined)).toBeUndefined();
    await POLL_LEASES.release(test.db, await acquire(), 'HTTP 503 on GET /trades');
    const { failingSince } = await state();
    expect(failingSince).toEqual(expect.any(Date));
    for (const error of ['circuit open', 'timeout']) {
      await POLL_LEASES.release(test.db, await acquire(), error);
      await POLL_LEASES.abandon(test.db, await acquire(), 'this process was late');
    }
    expect(await state()).toMatchObject({
      failingSince,
      firstError: 'HTTP 503 on GET /trades',
      consecutiveFailures: 3,
    });
    await POLL_LEASES.release(test.db, await acquire(), null);
    expect(await state()).toMatchObject({ failingSince: null, firstError: null, consecutiveFailures: 0 });
    await POLL_LEASES.release(test.db, await acquire(), 'again');
    expect(await state()).toMatchObject({ firstError: 'again' });
    expect((await state()).failingSince?.getTime()).toBeGreaterThan(failingSince?.getTime() ?? 0);
  });

  it('knows no first failure of a run that began before it was stored', async () => {
    await POLL_LEASES.release(test.db, await acquire(), 'old');
    await test.db.query(FORGET_FIRST, [venue]);
    await POLL_LEASES.release(test.db, await acquire(), 'new');
    expect(await state()).toMatchObject({
      failingSince: null,
      firstError: null,
      lastError: 'new',
      consecutiveFailures: 2,
    });
  });

  it('records neither success nor failure of an abandoned poll', async () => {
    await POLL_LEASES.release(test.db, await acquire(), 'first');
    const before = await state();
    await POLL_LEASES.abandon(test.db, await acquire());
    const { lastError, consecutiveFailures, lastSuccessAt, leaseToken } = await state();
    expect({ lastError, consecutiveFailures, lastSuccessAt, leaseToken }).toEqual({
      lastError: 'first',
      consecutiveFailures: 1,
      lastSuccessAt: before.lastSuccessAt,
      leaseToken: null,
    });
    expect(await attempt()).not.toBeNull();
  });

  it('keeps the reason of an abandoned poll as its last error, and counts nothing', async () => {
    await POLL_LEASES.release(test.db, await acquire(), 'first');
    await POLL_LEASES.abandon(test.db, await acquire(), 'late \u0000');
    expect(await state()).toMatchObject({ lastError: 'late \uFFFD', consecutiveFailures: 1, leaseToken: null });
  });
});
