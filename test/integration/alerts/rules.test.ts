import { describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../src/domain/markets/market.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { createAlert, type NewAlert } from '../../../src/store/alerts/alerts.ts';
import { changeAlert, lockAlert } from '../../../src/store/alerts/changes.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { expireDueAlerts } from '../../../src/store/alerts/expiry.ts';
import { sql } from '../../../src/store/db/tx.ts';
import type { Mark } from '../../../src/store/marks/marks.ts';
import { aSubscription } from '../../factories/alerts.ts';
import { untilBlocked } from '../../support/postgres/postgres-lock.ts';
import { useAlertDesk } from './alert-desk.ts';
import { storeMarketAt } from './rule-world.ts';

const BODIES = sql(
  'test_alert_bodies',
  `SELECT e.body FROM alert_firing f JOIN event e ON e.id = f.event_id WHERE f.alert_pk = $1 ORDER BY f.at, f.n`,
);
const DELIVERED_PRICES = sql(
  'test_delivered_prices',
  `SELECT (e.body::jsonb -> 'data' ->> 'currentPrice')::float8 AS price FROM delivery d JOIN event e ON e.pk = d.event_pk
   WHERE d.subscription_pk = $1 ORDER BY d.pk`,
);
const AGE_OBSERVATIONS = sql(
  'test_age_observations',
  `UPDATE observation SET received_at = received_at - interval '1 hour' WHERE token_id = (SELECT id FROM token WHERE mint = $1)`,
);
const SHIFT_ALERT = sql(
  'test_shift_alert',
  `UPDATE alert SET created_at = created_at - interval '1 hour', expires_at = now() - interval '20 seconds' WHERE pk = $1`,
);
const HOLD_ALERT = sql('test_hold_alert', 'SELECT FROM alert WHERE pk = $1 FOR UPDATE');
/** Claims the marks of observations or of alerts; marks of a market have no part in these tests. */
const claimOf = (detail: '> 0' | '< 0') =>
  sql(
    `test_claim_${detail === '> 0' ? 'observations' : 'alerts'}`,
    `DELETE FROM mark WHERE stage = 'evaluate-alerts' AND detail ${detail} RETURNING id, key, detail`,
  );
const STATUS = sql('test_rule_status', 'SELECT status, event_id FROM alert WHERE pk = $1');

const desk = useAlertDesk();

async function create(request: NewAlert): Promise<{ id: string; pk: bigint }> {
  const made = await desk.db.transaction((tx) => createAlert(tx, desk.accountId, request));
  if (made.outcome !== 'created') throw new Error(made.outcome);
  return made.alert;
}

async function eventsOf({ pk }: { pk: bigint }): Promise<Record<string, unknown>[]> {
  await desk.evaluate();
  const rows = await desk.db.query<{ body: string }>(BODIES, [pk]);
  return rows.map(({ body }) => (JSON.parse(body) as { data: Record<string, unknown> }).data);
}

const statusOf = async ({ pk }: { pk: bigint }) =>
  (await desk.db.query<{ status: string; eventId: string | null }>(STATUS, [pk]))[0];

describe('an alert on a token', () => {
  it('fires crosses_above at the observation that crosses, with the price before it', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    await desk.see(mint, '0.4');
    const alert = await create({ tokenMint: mint, condition: 'crosses_above', target: decimal('0.5'), name: 'half' });
    expect(await eventsOf(alert)).toEqual([]);
    await desk.see(mint, '0.45', '0.55', '0.4', '0.6');
    expect(await eventsOf(alert)).toEqual([
      {
        alertId: alert.id,
        tokenMint: mint,
        tokenSymbol: 'Yes',
        condition: 'crosses_above',
        targetPrice: 0.5,
        currentPrice: 0.55,
        fromPrice: 0.45,
        observedAt: expect.stringMatching(/Z$/),
        name: 'half',
        venue: 'polymarket',
        marketId: market.marketId,
        title: 'Will it?',
      },
    ]);
    expect(await statusOf(alert)).toMatchObject({ status: 'triggered', eventId: expect.stringMatching(/^evt_/) });
  });

  it('fires when its target is greater than any double', async () => {
    const mint = newId('req');
    const target = decimal('1e399');
    const below = await create({ tokenMint: mint, condition: 'below', target, cooldownSeconds: 60 });
    expect(await eventsOf(below)).toEqual([]);
    await desk.see(mint, '0.9');
    expect(await eventsOf(below)).toMatchObject([{ currentPrice: 0.9 }]);
  });

  it('has its event after the ones of earlier observations when one evaluation fires several alerts', async () => {
    const mint = newId('req');
    const webhookId = newId('wh');
    const webhook = await aSubscription(desk.db, { id: webhookId, accountId: desk.accountId, orderBy: 'market' });
    const fields = { tokenMint: mint, webhookId, cooldownSeconds: 60 } as const;
    for (const [condition, target] of [
      ['above', '0.65'],
      ['above', '0.55'],
      ['below', '0.1'],
    ] as const) {
      await create({ ...fields, condition, target: decimal(target) });
    }
    for (const target of ['0.63', '0.5']) await desk.create(mint, 'above', target, { webhookPk: webhook });
    await desk.evaluate();
    await desk.see(mint, '0.05', '0.52', '0.6', '0.64', '0.7');
    await desk.evaluate();
    const prices = (await desk.db.query<{ price: number }>(DELIVERED_PRICES, [webhook])).map(({ price }) => price);
    expect(prices).toEqual([0.05, 0.52, 0.6, 0.64, 0.7]);
  });

  it('stays active and fires again when it repeats', async () => {
    const mint = newId('req');
    const alert = await create({ tokenMint: mint, condition: 'trade', target: decimal('1'), cooldownSeconds: 3_600 });
    const eager = await create({ tokenMint: mint, condition: 'above', target: decimal('0.5'), cooldownSeconds: 1 });
    await desk.print(mint, '0.9');
    await desk.print(mint, '0.8');
    expect(await eventsOf(alert)).toHaveLength(1);
    expect(await eventsOf(eager)).toMatchObject([{ condition: 'above', targetPrice: 0.5, currentPrice: 0.9 }]);
    expect(await statusOf(alert)).toMatchObject({ status: 'active' });
  });

  it('fires on the quote in effect at its creation when it is a state', async () => {
    const mint = newId('req');
    await desk.see(mint, '0.7');
    const repeating = await create({
      tokenMint: mint,
      condition: 'above',
      target: decimal('0.6'),
      cooldownSeconds: 60,
    });
    const event = await create({ tokenMint: mint, condition: 'crosses_above', target: decimal('0.6') });
    expect(await eventsOf(repeating)).toMatchObject([{ currentPrice: 0.7 }]);
    expect(await eventsOf(event)).toEqual([]);
  });

  it('ignores observations from its end on', async () => {
    const mint = newId('req');
    const alert = await create({
      tokenMint: mint,
      condition: 'above',
      target: decimal('0.5'),
      expiresAt: new Date(Date.now() - 1),
    });
    await desk.see(mint, '0.9');
    expect(await eventsOf(alert)).toEqual([]);
  });

  it('fires when the observations of several evaluations meet it together', async () => {
    const mint = newId('req');
    const moved = await create({
      tokenMint: mint,
      condition: 'change',
      target: decimal('0.1'),
      unit: 'absolute',
      windowSeconds: 600,
    });
    const traded = await create({ tokenMint: mint, condition: 'volume', target: decimal('16'), windowSeconds: 600 });
    for (const price of ['0.5', '0.55', '0.58']) {
      await desk.print(mint, price);
      expect(await eventsOf(moved)).toEqual([]);
    }
    expect(await eventsOf(traded)).toMatchObject([{ value: 16.3 }]);
    await desk.print(mint, '0.61');
    expect(await eventsOf(moved)).toMatchObject([{ fromPrice: 0.5, currentPrice: 0.61 }]);
  });

  it('compares a price with the one in effect when the window began, however old', async () => {
    const mint = newId('req');
    const moves = { tokenMint: mint, condition: 'change', target: decimal('0.1'), unit: 'absolute' } as const;
    const moved = await create({ ...moves, windowSeconds: 1 });
    await desk.see(mint, '0.5');
    expect(await eventsOf(moved)).toEqual([]);
    await desk.db.query(AGE_OBSERVATIONS, [mint]);
    await desk.see(mint, '0.61');
    expect(await eventsOf(moved)).toMatchObject([{ fromPrice: 0.5, currentPrice: 0.61 }]);
  });

  it('expires without an event when its market gets a final outcome, whose payout does not count', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    await desk.see(mint, '0.5');
    const alert = await create({ tokenMint: mint, condition: 'crosses_above', target: decimal('0.9') });
    await desk.evaluate();
    await desk.resolve(market);
    expect(await eventsOf(alert)).toEqual([]);
    expect(await statusOf(alert)).toEqual({ status: 'expired', eventId: null });
  });

  it('reports the halt, the close and the result of its market once each when it repeats', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    const once = await create({ tokenMint: mint, condition: 'status' });
    const each = await create({ tokenMint: mint, condition: 'status', cooldownSeconds: 1 });
    await desk.evaluate();
    await desk.db.query(sql('test_second', 'SELECT pg_sleep(0.01)'));
    await desk.list({ ...market, status: 'halted' });
    await desk.evaluate();
    await desk.db.query(sql('test_cooldown', 'SELECT pg_sleep(1.05)'));
    await desk.resolve(market);
    const winner = market.outcomes[0]?.outcomeId;
    expect(await eventsOf(once)).toMatchObject([{ status: 'halted', previousStatus: 'open', tokenMint: mint }]);
    expect(await eventsOf(each)).toMatchObject([
      { status: 'halted' },
      { status: 'resolved', previousStatus: 'halted', winningOutcomeId: winner, marketId: market.marketId },
    ]);
    expect(await statusOf(once)).toMatchObject({ status: 'triggered' });
  });
});

describe('an alert with a scope', () => {
  const named = (market: MarketRecord, over: Partial<MarketRecord>) => ({ ...market, ...over });

  it('fires once for each outcome of its market', async () => {
    const { market, mint, other } = desk.market();
    await desk.list(market);
    const scope = { market_id: market.marketId };
    const alert = await create({ scope, condition: 'above', target: decimal('0.5') });
    await desk.see(mint, '0.6', '0.4', '0.7');
    await desk.see(other, '0.8');
    expect((await eventsOf(alert)).map(({ tokenMint, currentPrice }) => [tokenMint, currentPrice])).toEqual([
      [mint, 0.6],
      [other, 0.8],
    ]);
    expect(await statusOf(alert)).toMatchObject({ status: 'active' });
  });

  it('reports a new market of its search once', async () => {
    const word = `w${newId('req').slice(-12)}`;
    const alert = await create({ scope: { q: `${word} rain`, venue: 'polymarket' }, condition: 'new_market' });
    await desk.evaluate();
    const { market } = desk.market();
    const fits = named(market, { title: `Will there be RAIN in ${word}?` });
    await desk.list(fits);
    await desk.list(named(desk.market().market, { title: `Will there be snow in ${word}?` }));
    await desk.evaluate();
    await desk.list(named(fits, { description: 'a change' }));
    expect(await eventsOf(alert)).toMatchObject([
      { condition: 'new_market', marketId: market.marketId, title: fits.title, status: 'open' },
    ]);
  });

  it('misses no observation that was evaluated before its creation was visible', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    let alert: { pk: bigint } | undefined;
    await desk.db.transaction(async (tx) => {
      const made = await createAlert(tx, desk.accountId, {
        scope: { market_id: market.marketId },
        condition: 'above',
        target: decimal('0.5'),
      });
      if (made.outcome === 'created') alert = made.alert;
      await desk.see(mint, '0.9', '0.1');
      await desk.evaluate();
    });
    expect(await eventsOf(alert ?? { pk: 0n })).toMatchObject([{ currentPrice: 0.9 }]);
  });

  it('is refused when it is wide and the account has fifty of these', async () => {
    const request = { scope: { venue: 'nowhere' }, condition: 'new_market' } as const;
    const outcomes: string[] = [];
    for (let n = 0; n < 52; n++) {
      outcomes.push((await desk.db.transaction((tx) => createAlert(tx, desk.accountId, request))).outcome);
    }
    expect(outcomes.at(-1)).toBe('too_many_scopes');
    expect(outcomes.filter((outcome) => outcome === 'created').length).toBeGreaterThan(40);
  });
});

describe('an alert on the state of markets, past its end', () => {
  it.each(['status', 'new_market'] as const)(
    'of %s stays active until the changes before its end were evaluated',
    async (condition) => {
      const { market } = desk.market();
      const event = { ...market, eventId: newId('req') };
      if (condition === 'status') await storeMarketAt(desk.db, event, Date.now() - 3_000_000);
      const expiresAt = new Date(Date.now() + 60_000);
      const alert = await create({ scope: { event_id: event.eventId }, condition, expiresAt });
      await desk.evaluate();
      await desk.db.query(SHIFT_ALERT, [alert.pk]);
      await storeMarketAt(desk.db, { ...event, status: 'halted' }, Date.now() - 40_000);
      expect((await expireDueAlerts(desk.db)).alerts).not.toContain(alert.id);
      expect(await eventsOf(alert)).toMatchObject([{ condition, status: 'halted' }]);
      expect((await expireDueAlerts(desk.db)).alerts).toContain(alert.id);
    },
  );
});

describe('a change of an alert during the evaluation of its creation', () => {
  it('fires at the first observation after the change, although a later one is evaluated first', async () => {
    const evaluateMarks = (detail: '> 0' | '< 0') =>
      desk.db.transaction(async (tx) => evaluateAlerts(tx, await tx.query<Mark>(claimOf(detail))));
    await desk.evaluate();
    const { market, mint } = desk.market();
    await desk.list(market);
    const alert = await create({ scope: { market_id: market.marketId }, condition: 'above', target: decimal('0.9') });
    const held = await create({ tokenMint: newId('req'), condition: 'trade', target: decimal('1') });
    let ofCreation: Promise<unknown> = Promise.resolve();
    await desk.db.transaction(async (holding) => {
      await holding.query(HOLD_ALERT, [held.pk]);
      ofCreation = evaluateMarks('< 0');
      await untilBlocked(desk.db);
      await desk.db.transaction(async (changing) => {
        const locked = await lockAlert(changing, desk.accountId, alert.id);
        if (!locked) throw new Error('the alert is missing');
        await changeAlert(changing, desk.accountId, locked, { target: decimal('0.5') });
        await desk.see(mint, '0.6');
        await evaluateMarks('> 0');
      });
    });
    await ofCreation;
    await desk.see(mint, '0.7');
    await evaluateMarks('> 0');
    expect(await eventsOf(alert)).toMatchObject([{ currentPrice: 0.6 }]);
  });
});
