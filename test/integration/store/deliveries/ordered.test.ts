import { beforeEach, describe, expect, it } from 'vitest';
import { RandomStream } from '../../../../sim/random.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { Database, sql } from '../../../../src/store/db/tx.ts';
import { type ClaimedDelivery, claimTogether } from '../../../../src/store/deliveries/claims.ts';
import { hasDue } from '../../../../src/store/deliveries/due.ts';
import { insertDeliveries, insertEvents } from '../../../../src/store/deliveries/events.ts';
import { startStalledKeys } from '../../../../src/store/deliveries/order.ts';
import { finishAttempt } from '../../../../src/store/deliveries/outcomes.ts';
import { findDelivery } from '../../../../src/store/deliveries/reads.ts';
import { recoverDeliveries, retryDeliveries, retryDelivery } from '../../../../src/store/deliveries/recovery.ts';
import { updateSubscription } from '../../../../src/store/deliveries/subscriptions.ts';
import { anAccount, aSubscription } from '../../../factories/alerts.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';
import { END_LEASE } from './delivery-desk.ts';

const ORDER = sql('test_order_by', 'UPDATE webhook_subscription SET order_by = $2 WHERE pk = $1');
const ROWS = sql(
  'test_ordered_rows',
  `SELECT pk, status, order_key, next_attempt_at < 'infinity' AS has_time, coalesce(locked_until > clock_timestamp(), false) AS is_held
   FROM delivery WHERE subscription_pk = $1 ORDER BY pk`,
);
const ANALYZE = sql('test_analyze_webhooks', 'ANALYZE webhook_subscription');
const IDS = sql(
  'test_ids_of_deliveries',
  'SELECT d.pk, e.id FROM delivery d JOIN event e ON e.pk = d.event_pk WHERE d.subscription_pk = $1 ORDER BY d.pk',
);

interface Row {
  pk: bigint;
  status: string;
  orderKey: string | null;
  hasTime: boolean;
  isHeld: boolean;
}

const test = useTestDatabase({ poolSize: 20 });
let accountId: bigint;
let id: string;
let pk: bigint;
beforeEach(async () => {
  accountId = await anAccount(test.db);
  id = newId('wh');
  pk = await aSubscription(test.db, { accountId, id, sealedSecret: 'sealed' });
  await test.db.query(ORDER, [pk, 'market']);
});

/** Stores events of these markets, in this order; null: an event without a market. Returns their ids. */
async function emit(...markets: readonly (string | null)[]): Promise<string[]> {
  const events = markets.map((marketId) => {
    const eventId = newId('evt');
    const data = marketId === null ? { tokenMint: 'other' } : { venue: 'sample', marketId };
    const body = JSON.stringify({ id: eventId, type: 'price_alert', data });
    return { id: eventId, accountId, type: 'price_alert' as const, body, dedupeKey: eventId };
  });
  await test.db.transaction(async (tx) => {
    const pks = await insertEvents(tx, events);
    await insertDeliveries(
      tx,
      events.map((event) => ({ eventPk: pks.get(event.id) ?? 0n, subscriptionPk: pk })),
    );
  });
  return events.map((event) => event.id);
}

/** Claims like a process of its own. */
const claim = async (limit = 8) =>
  (await claimTogether(new Database(test.db.dataSource), { subscriptionPk: pk, limit }))?.deliveries ?? [];
const rows = () => test.db.query<Row>(ROWS, [pk]);
const attempt = { startedAt: new Date(), durationMs: 1 };
function finish(delivery: ClaimedDelivery, state: 'delivered' | 'failed' | 'retry') {
  const made = {
    subscriptionPk: pk,
    delivery,
    attempt: { ...attempt, outcome: state === 'delivered' ? ('delivered' as const) : ('failed' as const) },
  };
  return finishAttempt(test.db, made, state === 'retry' ? { state, delaySeconds: 0 } : { state, isCharged: false });
}
const only = <T>(items: readonly T[]): T => {
  expect(items).toHaveLength(1);
  return items[0] as T;
};

describe('an ordered webhook', () => {
  it('has one delivery of each key in flight, and all deliveries without a key', async () => {
    const [a1, a2, b1, , none1, none2] = await emit('a', 'a', 'b', 'b', null, null);
    const first = await claim();
    expect(first.map(({ eventId }) => eventId).sort()).toEqual([a1, b1, none1, none2].sort());
    expect(await claim()).toEqual([]);
    const ofA = first.find(({ eventId }) => eventId === a1) as ClaimedDelivery;
    await finish(ofA, 'delivered');
    expect(only(await claim()).eventId).toBe(a2);
  });

  it('stores the deliveries of one transaction in the order of their events when the database has many webhooks', async () => {
    await Promise.all(Array.from({ length: 100 }, () => aSubscription(test.db, { accountId })));
    await test.db.query(ANALYZE);
    const ids = await emit('a', 'a', 'b', 'a');
    expect((await test.db.query<{ id: string }>(IDS, [pk])).map((row) => row.id)).toEqual(ids);
  });

  it('sends the next event of a key only after the schedule of a failing one, with a marker', async () => {
    const [failing, next, last] = await emit('a', 'a', 'a');
    await finish(only(await claim()), 'retry');
    const again = only(await claim());
    expect(again).toMatchObject({ eventId: failing, attemptCount: 1 });
    await finish(again, 'failed');
    const marked = only(await claim());
    expect(marked).toMatchObject({ eventId: next, skipped: [failing] });
    // An undelivered marker is repeated.
    await finish(marked, 'failed');
    const second = only(await claim());
    expect(second).toMatchObject({ eventId: last, skipped: [failing, next] });
    await finish(second, 'delivered');
    await emit('a');
    expect(only(await claim()).skipped).toBeUndefined();
    expect(await findDelivery(test.db, pk, again.id)).toMatchObject({ status: 'failed', isSkipped: true });
  });

  it('shows waiting deliveries as pending without a time, and as not due', async () => {
    await emit('a', 'a');
    const held = only(await claim());
    expect(await hasDue(test.db, pk)).toBe(false);
    const [, waiting] = await rows();
    expect(waiting).toMatchObject({ status: 'pending', hasTime: false });
    await finish(held, 'delivered');
    expect(await hasDue(test.db, pk)).toBe(true);
  });

  it('waits for a cancelled attempt in flight when it was paused and resumed', async () => {
    await emit('a');
    const held = only(await claim());
    await updateSubscription(test.db, accountId, id, { status: 'paused' });
    await updateSubscription(test.db, accountId, id, { status: 'active' });
    const [later] = await emit('a');
    expect(await claim()).toEqual([]);
    await test.db.query(END_LEASE, [held.pk]);
    expect(await startStalledKeys(test.db)).toEqual([pk]);
    expect(only(await claim()).eventId).toBe(later);
  });

  it('keeps the order of the key in a recovery', async () => {
    const cancelled = await emit('a', 'a');
    await updateSubscription(test.db, accountId, id, { status: 'paused' });
    await updateSubscription(test.db, accountId, id, { status: 'active' });
    const since = new Date(Date.now() - 3_600_000);
    const recovery = await recoverDeliveries({
      db: test.db,
      accountId,
      subscriptionId: id,
      since,
      onCommit: () => undefined,
    });
    expect(recovery).toEqual({ outcome: 'recovered', recovered: 2 });
    for (const eventId of cancelled) {
      const next = only(await claim());
      expect(next.eventId).toBe(eventId);
      await finish(next, 'delivered');
    }
  });
});

describe('a retry of many deliveries of an ordered webhook', () => {
  const retryAll = async () => {
    const ended = (await rows()).filter(({ status }) => status === 'failed');
    return test.db.transaction((tx) => retryDeliveries(tx, pk, ended.map((row) => row.pk).toReversed()));
  };

  it('keeps one delivery of each key in flight, the order and no marker when one is in flight', async () => {
    const [a1, a2, a3, a4] = await emit('a', 'a', 'a', 'a');
    for (const _ of [a1, a2, a3]) await finish(only(await claim()), 'failed');
    const held = only(await claim());
    expect(held).toMatchObject({ eventId: a4, skipped: [a1, a2, a3] });
    expect(await retryAll()).toBe(3);
    expect(await claim()).toEqual([]);
    await finish(held, 'retry');
    for (const eventId of [a4, a1, a2, a3]) {
      const next = only(await claim());
      expect(next.eventId).toBe(eventId);
      expect(next.skipped).toBeUndefined();
      await finish(next, 'delivered');
    }
  });

  it('makes the first delivery of each key due when none is in flight', async () => {
    const [a1, b1, , , none] = await emit('a', 'b', 'a', 'b', null);
    for (let left = await claim(); left.length > 0; left = await claim()) {
      for (const delivery of left) await finish(delivery, 'failed');
    }
    expect(await retryAll()).toBe(5);
    expect((await claim()).map(({ eventId }) => eventId).sort()).toEqual([a1, b1, none].sort());
  });
});

const SEEDS = Array.from({ length: 8 }, (_, index) => index + 1);
const STEPS = 160;

it.each(SEEDS)('an ordered webhook follows the model over random steps, seed %i', async (seed) => {
  const random = new RandomStream(seed, 25);
  const inFlight: ClaimedDelivery[] = [];
  /** Deliveries that were pending again after their end, so that later ones of their key may have begun. */
  const reopened = new Set<bigint>();
  /** Skipped events that no delivered request named, by delivery. */
  const unreported = new Map<bigint, string>();
  const keyOf = new Map<bigint, string | null>();
  const drop = (delivery: ClaimedDelivery) => inFlight.splice(inFlight.indexOf(delivery), 1);

  async function check() {
    const all = await rows();
    for (const row of all) keyOf.set(row.pk, row.orderKey);
    const keys = new Set(all.flatMap(({ orderKey }) => orderKey ?? []));
    for (const key of keys) {
      const ofKey = all.filter(({ orderKey }) => orderKey === key);
      const pending = ofKey.filter(({ status }) => status === 'pending');
      const timed = pending.filter(({ hasTime }) => hasTime);
      const held = ofKey.filter(({ isHeld }) => isHeld);
      expect(held.length, 'attempts of a key in flight').toBeLessThanOrEqual(1);
      const waits = held.some(({ status, hasTime }) => status === 'cancelled' || !hasTime);
      expect(timed.length, 'deliveries of a key with a time').toBe(pending.length > 0 && !waits ? 1 : 0);
      const [due] = timed;
      const earlier = pending.filter((row) => due !== undefined && row.pk < due.pk && !reopened.has(row.pk));
      expect(earlier, 'pending deliveries before the one with a time').toEqual([]);
    }
    return all;
  }

  const steps: Record<string, () => Promise<unknown>> = {
    emit: () => emit(...Array.from({ length: random.between(1, 4) }, () => random.pick(['a', 'b', 'c', null]))),
    async claim() {
      for (const claimed of await claim(random.between(1, 8))) {
        const key = claimed.orderKey ?? null;
        const expected = [...unreported]
          .filter(([other]) => keyOf.get(other) === key)
          .sort(([a], [b]) => Number(a - b));
        expect(claimed.skipped ?? []).toEqual(key === null ? [] : expected.map(([, eventId]) => eventId).slice(0, 20));
        inFlight.push(claimed);
      }
    },
    async finish() {
      if (inFlight.length === 0) return;
      const delivery = random.pick(inFlight);
      const state = random.pick(['delivered', 'delivered', 'retry', 'failed'] as const);
      const before = (await rows()).find((row) => row.pk === delivery.pk);
      drop(delivery);
      expect((await finish(delivery, state)).isRecorded).toBe(true);
      if (state === 'failed' && delivery.orderKey !== undefined && before?.status === 'pending') {
        unreported.set(delivery.pk, delivery.eventId);
      }
      if (state !== 'delivered') return;
      for (const [other, eventId] of unreported) if (delivery.skipped?.includes(eventId)) unreported.delete(other);
    },
    async loseClaim() {
      if (inFlight.length === 0) return;
      const lost = random.pick(inFlight);
      drop(lost);
      await test.db.query(END_LEASE, [lost.pk]);
      await startStalledKeys(test.db);
    },
    async retry() {
      const ended = (await rows()).filter(({ status }) => status === 'failed' || status === 'cancelled');
      if (ended.length === 0) return;
      const chosen = random.pick(ended);
      const found = await test.db.query<{ id: string }>(
        sql('test_delivery_id', 'SELECT id FROM delivery WHERE pk = $1'),
        [chosen.pk],
      );
      reopened.add(chosen.pk);
      unreported.delete(chosen.pk);
      await test.db.transaction((tx) => retryDelivery(tx, accountId, id, found[0]?.id ?? ''));
    },
    async retryAll() {
      const ended = (await rows()).filter(({ status }) => status === 'failed' || status === 'cancelled');
      for (const row of ended) {
        reopened.add(row.pk);
        unreported.delete(row.pk);
      }
      const pks = ended.map((row) => row.pk);
      expect(await test.db.transaction((tx) => retryDeliveries(tx, pk, pks))).toBe(ended.length);
    },
    async recover() {
      for (const row of await rows()) if (row.status !== 'pending') reopened.add(row.pk);
      const since = new Date(Date.now() - 3_600_000);
      await recoverDeliveries({ db: test.db, accountId, subscriptionId: id, since, onCommit: () => undefined });
      for (const row of await rows()) if (row.status === 'pending') unreported.delete(row.pk);
    },
    async pauseAndResume() {
      await updateSubscription(test.db, accountId, id, { status: 'paused' });
      await updateSubscription(test.db, accountId, id, { status: 'active' });
    },
  };
  const usual = ['emit', 'claim', 'claim', 'finish', 'finish', 'finish'] as const;
  const rare = ['loseClaim', 'retry', 'retryAll', 'recover', 'pauseAndResume'] as const;
  for (let step = 0; step < STEPS; step += 1) {
    const name = random.between(1, 10) === 1 ? random.pick([...rare]) : random.pick([...usual]);
    await steps[name]?.();
    await check();
  }
  for (const delivery of [...inFlight]) {
    drop(delivery);
    await finish(delivery, 'delivered');
  }
  for (let left = await claim(); left.length > 0; left = await claim()) {
    for (const delivery of left) await finish(delivery, 'delivered');
  }
  expect((await rows()).filter(({ status }) => status === 'pending')).toEqual([]);
});

it('deliveries of a key begin in their order when many transactions emit and finish at once', async () => {
  const begun: bigint[] = [];
  const busy = new Set<string>();
  let emitting = 4;
  const emitter = async (name: number) => {
    for (let count = 0; count < 25; count += 1) await emit(...(name % 2 === 0 ? ['a', 'b'] : ['b', 'a', 'c']));
    emitting -= 1;
  };
  const sender = async () => {
    for (;;) {
      const isLast = emitting === 0;
      const claimed = await claim(3);
      for (const { pk: delivery, orderKey = '' } of claimed) {
        expect(busy.has(orderKey)).toBe(false);
        busy.add(orderKey);
        begun.push(delivery);
      }
      await Promise.all(
        claimed.map(async (delivery) => {
          busy.delete(delivery.orderKey ?? '');
          await finish(delivery, 'delivered');
        }),
      );
      if (isLast && claimed.length === 0 && (await rows()).every(({ status }) => status === 'delivered')) return;
    }
  };
  await Promise.all([...[0, 1, 2, 3].map(emitter), sender(), sender(), sender(), sender()]);
  const stored = await rows();
  expect(begun).toHaveLength(250);
  for (const key of new Set(stored.map(({ orderKey }) => orderKey))) {
    const ofKey = stored.filter(({ orderKey }) => orderKey === key).map((row) => row.pk);
    expect(begun.filter((delivery) => ofKey.includes(delivery))).toEqual(ofKey);
  }
  expect(await test.db.query(IDS, [pk])).toHaveLength(250);
});
