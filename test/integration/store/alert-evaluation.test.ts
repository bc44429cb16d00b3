import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/decimal.ts';
import { newId } from '../../../src/domain/ids.ts';
import { type Evaluation, evaluateAlerts } from '../../../src/store/alert-evaluation.ts';
import { writeMarkets } from '../../../src/store/markets.ts';
import { waitingShards } from '../../../src/store/marks.ts';
import { Partitions } from '../../../src/store/partitions.ts';
import { writePrices } from '../../../src/store/prices.ts';
import { workShard } from '../../../src/store/stage.ts';
import { ensureTokens } from '../../../src/store/tokens.ts';
import { writeTrades } from '../../../src/store/trades.ts';
import { sql } from '../../../src/store/tx.ts';
import { anAccount, anAlert, aSubscription } from '../../factories/alerts.ts';
import { aTrade } from '../../factories/trades.ts';
import { createTestDatabase, type TestDatabase } from '../../support/database.ts';

const STAGE = 'evaluate-alerts' as const;
let test: TestDatabase;
let accountId: bigint;
let clockMs = Date.now();
beforeAll(async () => {
  test = await createTestDatabase();
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history', 'trade'] as const) await partitions.ensureAroundNow(table);
  accountId = await anAccount(test.db);
});
afterAll(() => test.drop());

async function evaluate(): Promise<Evaluation[]> {
  const results: Evaluation[] = [];
  for (;;) {
    const shards = await waitingShards(test.db, STAGE);
    if (shards.length === 0) return results;
    for (const shard of shards) {
      const done = await workShard(test.db, STAGE, shard, { limit: 100, order: 'oldest' }, evaluateAlerts);
      expect(done.parked).toEqual([]);
      results.push(...done.results);
    }
  }
}

async function see(mint: string, ...prices: string[]): Promise<void> {
  for (const price of prices) {
    clockMs += 1_000;
    await test.db.transaction(async (tx) => {
      const tokenId = (await ensureTokens(tx, [mint], 'USD')).get(mint) ?? 0n;
      await writePrices(tx, [{ tokenId, asOfMs: clockMs, price: decimal(price) }]);
    });
  }
}

async function print(mint: string, price: string, ageMs = 0): Promise<void> {
  const trade = aTrade({ tsMs: Date.now() - ageMs, tradeId: newId('req'), outcomeId: mint, price: decimal(price) });
  await test.db.transaction((tx) => writeTrades(tx, [trade], 'USD'));
}

function create(mint: string, condition: 'above' | 'below', target: string, webhookPk?: bigint) {
  const fields = { accountId, mint, condition, target };
  return test.db.transaction((tx) => anAlert(tx, webhookPk === undefined ? fields : { ...fields, webhookPk }));
}

interface Told {
  status: string;
  triggered_price: string | null;
  events: number;
  deliveries: number;
  body: string | null;
}

async function told(alert: { pk: bigint }): Promise<Told> {
  const [row] = await test.db.query<Told>(
    sql(
      'test_told',
      `SELECT a.status, a.triggered_price, e.body, (SELECT count(*)::int FROM event WHERE dedupe_key = 'alert:' || a.id) AS events,
         (SELECT count(*)::int FROM delivery d WHERE d.event_pk = e.pk) AS deliveries
       FROM alert a LEFT JOIN event e ON e.id = a.event_id WHERE a.pk = $1`,
    ),
    [alert.pk],
  );
  if (!row) throw new Error('no such alert');
  return row;
}

describe('an alert', () => {
  it.each([
    ['above', '0.60', '0.6', true],
    ['above', '0.60', '0.5999', false],
    ['below', '0.40', '0.4', true],
    ['below', '0.40', '0.4001', false],
  ] as const)('%s %s at price %s fires: %s (touching counts)', async (condition, target, price, fires) => {
    const mint = newId('req');
    await see(mint, '0.5');
    const alert = await create(mint, condition, target);
    await evaluate();
    expect((await told(alert)).status).toBe('active');
    await see(mint, price);
    await evaluate();
    expect((await told(alert)).status).toBe(fires ? 'triggered' : 'active');
  });

  it('fires once, at the observation that met it, with one event and one delivery', async () => {
    const mint = newId('req');
    const webhook = await aSubscription(test.db, { accountId });
    await see(mint, '0.5');
    const alert = await create(mint, 'above', '0.6', webhook);
    await see(mint, '0.55', '0.61', '0.9', '0.3');
    const results = await evaluate();
    expect(results.flatMap((result) => result.fired)).toHaveLength(1);
    expect(results.flatMap((result) => result.subscriptionPks)).toEqual([webhook]);
    await see(mint, '0.7');
    await evaluate();
    const { body, ...row } = await told(alert);
    expect(row).toEqual({ status: 'triggered', triggered_price: '0.61', events: 1, deliveries: 1 });
    expect(JSON.parse(body ?? '')).toMatchObject({
      type: 'price_alert',
      data: { alertId: alert.id, tokenMint: mint, condition: 'above', targetPrice: 0.6, currentPrice: 0.61 },
    });
  });

  it('fires at once when the current price already meets it', async () => {
    const mint = newId('req');
    await see(mint, '0.7');
    await evaluate();
    const alert = await create(mint, 'above', '0.6');
    await evaluate();
    expect(await told(alert)).toMatchObject({ status: 'triggered', triggered_price: '0.7' });
  });

  it('fires on a spike that came and went before it was evaluated', async () => {
    const mint = newId('req');
    await see(mint, '0.5');
    const alert = await create(mint, 'above', '0.8');
    await see(mint, '0.85', '0.5');
    await evaluate();
    expect(await told(alert)).toMatchObject({ status: 'triggered', triggered_price: '0.85' });
  });

  it('does not fire on what was seen before it was made', async () => {
    const mint = newId('req');
    await see(mint, '0.85', '0.5');
    const alert = await create(mint, 'above', '0.8');
    await evaluate();
    expect((await told(alert)).status).toBe('active');
  });

  it('fires on a trade print, not on one that is more than ten minutes late', async () => {
    const mint = newId('req');
    const alert = await create(mint, 'above', '0.8');
    await print(mint, '0.9', 601_000);
    await evaluate();
    expect((await told(alert)).status).toBe('active');
    await print(mint, '0.81', 599_000);
    await evaluate();
    expect(await told(alert)).toMatchObject({ status: 'triggered', triggered_price: '0.81' });
  });

  it('committed while a crossing is being evaluated is not missed', async () => {
    const mint = newId('req');
    await see(mint, '0.5');
    await evaluate();
    const commits: Promise<{ pk: bigint }>[] = [];
    let mayCommit: () => void = () => undefined;
    const allowed = new Promise<void>((resolve) => {
      mayCommit = resolve;
    });
    const inserted = new Promise<void>((resolve) => {
      commits.push(
        test.db.transaction(async (tx) => {
          const alert = await anAlert(tx, { accountId, mint, condition: 'above', target: '0.6' });
          resolve();
          await allowed;
          return alert;
        }),
      );
    });
    await inserted;
    // The crossing is observed, evaluated and gone again while the alert is not visible yet.
    await see(mint, '0.7', '0.5');
    await evaluate();
    mayCommit();
    const [alert] = await Promise.all(commits);
    await evaluate();
    expect(await told(alert ?? { pk: 0n })).toMatchObject({ status: 'triggered', triggered_price: '0.7' });
  });

  it('made after a price was stamped and before it was committed fires on it as the current price', async () => {
    const mint = newId('req');
    await see(mint, '0.5');
    await evaluate();
    let alert: { pk: bigint } = { pk: 0n };
    await test.db.transaction(async (tx) => {
      const tokenId = (await ensureTokens(tx, [mint], 'USD')).get(mint) ?? 0n;
      clockMs += 1_000;
      await writePrices(tx, [{ tokenId, asOfMs: clockMs, price: decimal('0.7') }]);
      alert = await create(mint, 'above', '0.6');
      await evaluate();
      expect((await told(alert)).status).toBe('active');
    });
    await evaluate();
    expect(await told(alert)).toMatchObject({ status: 'triggered', triggered_price: '0.7' });
  });

  it('evaluated by several processes at once fires once', async () => {
    const mint = newId('req');
    await see(mint, '0.5');
    const alerts = await Promise.all(Array.from({ length: 20 }, () => create(mint, 'above', '0.6')));
    await see(mint, '0.7');
    const results = await Promise.all([evaluate(), evaluate(), evaluate()]);
    expect(results.flat(2).flatMap((result) => result.fired)).toHaveLength(20);
    for (const alert of alerts) expect(await told(alert)).toMatchObject({ status: 'triggered', events: 1 });
  });

  it('on a market whose outcome is final expires with no event, unless a price met it before', async () => {
    const [mint, other] = [newId('req'), newId('req')];
    const market = {
      marketId: newId('req'),
      title: 'Will it?',
      description: '',
      tags: [],
      status: 'open' as const,
      outcomes: [
        { outcomeId: mint, label: 'Yes' },
        { outcomeId: other, label: 'No' },
      ],
      hasBook: true,
    };
    await test.db.transaction((tx) => writeMarkets(tx, 'polymarket', 'USD', [market], Date.now()));
    await see(mint, '0.5');
    const expiring = await create(mint, 'above', '0.9');
    const met = await create(mint, 'above', '0.6');
    await see(mint, '0.65');
    const outcomes = [
      { outcomeId: mint, label: 'Yes', payout: decimal('1') },
      { outcomeId: other, label: 'No', payout: decimal('0') },
    ];
    const resolved = { ...market, status: 'resolved' as const, outcomes, winningOutcomeId: mint };
    await test.db.transaction((tx) => writeMarkets(tx, 'polymarket', 'USD', [resolved], Date.now() + 3_600_000));
    await evaluate();
    expect(await told(expiring)).toMatchObject({ status: 'expired', events: 0 });
    expect(await told(met)).toMatchObject({ status: 'triggered', triggered_price: '0.65', events: 1 });
    const late = await create(mint, 'above', '0.9');
    await evaluate();
    expect(await told(late)).toMatchObject({ status: 'expired', events: 0 });
  });

  it('goes to the oldest active subscription that lists price_alert when none is named', async () => {
    const owner = await anAccount(test.db);
    await aSubscription(test.db, { accountId: owner, events: ['transaction'] });
    await aSubscription(test.db, { accountId: owner, status: 'paused' });
    const expected = await aSubscription(test.db, { accountId: owner });
    await aSubscription(test.db, { accountId: owner });
    const mint = newId('req');
    await see(mint, '0.7');
    await test.db.transaction((tx) => anAlert(tx, { accountId: owner, mint, condition: 'above', target: '0.6' }));
    const results = await evaluate();
    expect(results.flatMap((result) => result.subscriptionPks)).toEqual([expected]);
  });

  it('with no subscription keeps its event', async () => {
    const owner = await anAccount(test.db);
    const mint = newId('req');
    await see(mint, '0.7');
    const fields = { accountId: owner, mint, condition: 'above', target: '0.6' } as const;
    const alert = await test.db.transaction((tx) => anAlert(tx, fields));
    await evaluate();
    expect(await told(alert)).toMatchObject({ status: 'triggered', events: 1, deliveries: 0 });
  });
});
