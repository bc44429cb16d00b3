import { describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import type { BroadcastEvent, SubscribableEvent } from '../../../../src/domain/webhooks/event.ts';
import type { EventFilter } from '../../../../src/domain/webhooks/filter.ts';
import type { OrderBy } from '../../../../src/domain/webhooks/order.ts';
import { createAlert } from '../../../../src/store/alerts/alerts.ts';
import { expireDueAlerts } from '../../../../src/store/alerts/expiry.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { closeGaps, openGap } from '../../../../src/store/feeds/gaps.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { evaluateAlertsJob } from '../../../../workers/jobs/evaluate-alerts.ts';
import type { WorkerDeps } from '../../../../workers/process/deps.ts';
import { reconcile } from '../../../../workers/process/reconcile.ts';
import { aTrade } from '../../../factories/trades.ts';
import { deliverAll, expectMarked, expectOrdered } from '../../../support/ordered-receipts.ts';
import { type AlertDesk, alertDesk } from '../../alerts/alert-desk.ts';
import { ALL_LANES, wakeRecorder } from '../worker-harness.ts';
import { deliveryDesk } from './delivery-desk.ts';

const MARKET_PK = sql('test_market_pk', 'SELECT id FROM market WHERE venue_market_id = $1');
const STORED = sql(
  'test_stored_in_order',
  `SELECT e.id, e.type, d.order_key IS NOT NULL AS has_key, e.body::jsonb -> 'data' ->> $2 AS subject
   FROM delivery d JOIN event e ON e.pk = d.event_pk WHERE d.subscription_pk = $1 ORDER BY d.pk`,
);
const END_ALERT = sql('test_end_alert', `UPDATE alert SET expires_at = now() - interval '1 minute' WHERE pk = $1`);

let desk: AlertDesk;
const deliveries = deliveryDesk({ WEBHOOK_RETRY_SCHEDULE: '60,60' }, async () => {
  desk = await alertDesk();
  return desk;
});
const { context: aProcess, newRequests: received, run: deliver } = deliveries;

async function anOwner(events: SubscribableEvent[], more: { filter?: EventFilter; orderBy?: OrderBy } = {}) {
  const { pk } = await deliveries.subscribed({ events, ...more });
  return { accountId: deliveries.accountId, pk };
}

const trade = (outcomeId: string, tradeId: string) =>
  aTrade({ tsMs: Date.now(), tradeId, outcomeId, price: decimal('0.5'), size: decimal('2') });
const store = (...trades: ReturnType<typeof trade>[]) => desk.db.transaction((tx) => writeTrades(tx, trades, 'USD'));

async function pkOf({ marketId }: MarketRecord): Promise<bigint> {
  const [row] = await desk.db.query<{ id: bigint }>(MARKET_PK, [marketId]);
  return row?.id ?? 0n;
}

/** An alerter that is killed after the commit of each claim, before its first wake-up. */
async function evaluateAndDie(): Promise<number> {
  let deaths = 0;
  for (const lane of ALL_LANES) {
    const producer = {
      ...wakeRecorder(),
      wakeDeliveries() {
        throw new Error('killed');
      },
    };
    for (let isDead = true; isDead; ) {
      isDead = await evaluateAlertsJob.run({ lane }, aProcess({ producer })).then(
        () => false,
        (error: Error) => error.message === 'killed' || Promise.reject(error),
      );
      deaths += isDead ? 1 : 0;
    }
  }
  return deaths;
}

/** One round of the timer of a deliverer, which schedules nothing here; returns the wake-ups. */
async function wakeUps(): Promise<readonly string[]> {
  const producer = wakeRecorder();
  const backend = { restore: async () => false } as WorkerDeps['backend'];
  await reconcile('deliverer', { ...aProcess({ producer }), backend }).catch(() => undefined);
  return producer.woken;
}

describe('an alerter that dies between its commit and its wake-up', () => {
  const FACTS: Record<BroadcastEvent, (owned: { market: MarketRecord; mint: string }) => Promise<number>> = {
    new_market: async () => {
      await desk.list(desk.market().market);
      await desk.list(desk.market().market);
      return 2;
    },
    market_status: async ({ market }) => {
      await desk.list({ ...market, status: 'halted' });
      await desk.list(market);
      await desk.list({ ...market, status: 'closed' });
      return 2;
    },
    market_resolution: async ({ market }) => {
      const proposed = { ...market, resolutionSteps: [{ state: 'proposed', round: 1 }] } as const;
      await desk.list(proposed);
      await desk.list(proposed);
      await desk.list({ ...market, resolutionSteps: [...proposed.resolutionSteps, { state: 'disputed', round: 1 }] });
      return 2;
    },
    trade: async ({ mint }) => {
      const made = [trade(mint, newId('req')), trade(mint, newId('req'))];
      await store(...made);
      await store(...made);
      return 2;
    },
    feed_gap: async ({ market }) => {
      const marketPks = [await pkOf(market)];
      const gap = { gap: crypto.randomUUID(), venue: 'polymarket', affected: 'books', reason: 'disconnected' };
      await openGap(desk.db, { ...gap, marketPks, fromMs: Date.now() - 9 });
      await evaluateAndDie();
      await closeGaps(desk.db, { venue: 'polymarket', marketPks, toMs: Date.now() });
      return 2;
    },
    market_rules: async ({ market }) => {
      for (const text of ['one', 'two', ' two ', 'three']) await desk.list({ ...market, resolutionCriteria: text });
      return 2;
    },
  };

  it.each(Object.keys(FACTS) as BroadcastEvent[])('loses no %s and repeats none', async (type) => {
    const owned = desk.market();
    await desk.list(owned.market);
    await desk.evaluate();
    const filter: EventFilter = [{ field: 'data.marketId', equal: owned.market.marketId }];
    const owner = await anOwner([type], type === 'trade' ? { filter } : {});
    const facts = await FACTS[type](owned);
    expect(await evaluateAndDie()).toBeGreaterThan(0);
    expect(received()).toEqual([]);
    expect(await wakeUps()).toContain(`deliver-webhook ${owner.pk}`);
    await deliver(owner.pk);
    // The next alerter finds nothing to repeat, and the next timer nothing to send.
    expect(await evaluateAndDie()).toBe(0);
    expect(await wakeUps()).not.toContain(`deliver-webhook ${owner.pk}`);
    await deliver(owner.pk);
    const ids = received().map(({ headers }) => headers['webhook-id']);
    expect([ids.length, new Set(ids).size]).toEqual([facts, facts]);
    expect(received().every(({ headers }) => headers['x-webhook-attempt'] === '1')).toBe(true);
  });
});

interface StoredEvent {
  id: string;
  type: string;
  hasKey: boolean;
  /** The market or the alert. */
  subject: string | null;
}

describe('an ordered webhook that lists all kinds of events', () => {
  const reject = (ids: ReadonlySet<string>) =>
    deliveries.receiver.replyWith(({ headers }) => ({ status: ids.has(String(headers['webhook-id'])) ? 500 : 200 }));

  /** The ids of the events with a key, by market or alert, in the order of their storage. */
  function byKey(stored: readonly StoredEvent[]): Map<string, string[]> {
    const keys = new Map<string, string[]>();
    for (const { id, hasKey, subject } of stored) {
      if (hasKey) keys.set(String(subject), [...(keys.get(String(subject)) ?? []), id]);
    }
    return keys;
  }

  it('gets those of each market in the order of the facts', async () => {
    const [one, two] = [desk.market(), desk.market()];
    const marketIds = [one.market.marketId, two.market.marketId];
    const { accountId, pk } = await anOwner(['price_alert', 'alert_expired', 'new_market', 'market_status', 'trade'], {
      orderBy: 'market',
      filter: [{ field: 'data.marketId', in: marketIds }],
    });
    for (const { market, mint } of [one, two]) {
      await desk.list(market);
      await desk.evaluate();
      await store(trade(mint, newId('req')));
      await desk.evaluate();
      await desk.list({ ...market, status: 'halted' });
      await desk.evaluate();
      const target = decimal('0.6');
      const condition = 'crosses_above' as const;
      await desk.db.transaction((tx) => createAlert(tx, accountId, { tokenMint: mint, condition, target }));
      await desk.evaluate();
      await desk.see(mint, '0.3', '0.7');
      await desk.evaluate();
      await desk.resolve(market);
      await desk.evaluate();
    }
    const stored = await desk.db.query<StoredEvent>(STORED, [pk, 'marketId']);
    for (const marketId of marketIds) {
      const types = stored.filter(({ subject }) => subject === marketId).map(({ type }) => type);
      expect(types).toEqual(['new_market', 'trade', 'market_status', 'price_alert', 'market_status']);
    }
    expect(stored.every(({ hasKey }) => hasKey)).toBe(true);
    const rejected = new Set(stored.filter(({ type }) => type === 'trade').map(({ id }) => id));
    reject(rejected);
    await deliverAll(desk.db, pk, () => Promise.all([deliver(pk), deliver(pk)]));
    expectOrdered(received(), byKey(stored));
    expectMarked(received(), byKey(stored), rejected);
  });

  it('gets those of each alert in order, and broadcasts beside a blocked alert', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    await desk.evaluate();
    const { accountId, pk } = await anOwner(['price_alert', 'alert_expired', 'market_status', 'feed_gap'], {
      orderBy: 'alert',
    });
    const made = await desk.db.transaction((tx) =>
      createAlert(tx, accountId, {
        tokenMint: mint,
        condition: 'above',
        target: decimal('0.5'),
        cooldownSeconds: 0,
        expiresAt: new Date(Date.now() + 3_600_000),
      }),
    );
    if (made.outcome !== 'created') throw new Error(made.outcome);
    await desk.see(mint, '0.6', '0.7');
    await desk.evaluate();
    await desk.list({ ...market, status: 'halted' });
    await openGap(desk.db, {
      gap: crypto.randomUUID(),
      venue: 'polymarket',
      affected: 'books',
      reason: 'disconnected',
      marketPks: [await pkOf(market)],
      fromMs: Date.now(),
    });
    await desk.evaluate();
    await desk.db.query(END_ALERT, [made.alert.pk]);
    expect((await expireDueAlerts(desk.db)).alerts).toEqual([made.alert.id]);
    const stored = await desk.db.query<StoredEvent>(STORED, [pk, 'alertId']);
    expect(stored.map(({ type, hasKey }) => [type, hasKey])).toEqual([
      ['price_alert', true],
      ['price_alert', true],
      ['market_status', false],
      ['feed_gap', false],
      ['alert_expired', true],
    ]);
    const [first] = stored;
    const rejected = new Set(first ? [first.id] : []);
    reject(rejected);
    await deliver(pk);
    expect(new Set(received().map(({ headers }) => headers['x-webhook-event']))).toEqual(
      new Set(['price_alert', 'market_status', 'feed_gap']),
    );
    await deliverAll(desk.db, pk, () => Promise.all([deliver(pk), deliver(pk)]));
    expectOrdered(received(), byKey(stored));
    expectMarked(received(), byKey(stored), rejected);
  });
});
