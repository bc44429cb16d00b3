import { describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import { createAlert, findAlert } from '../../../src/store/alerts/alerts.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { ensureTokens } from '../../../src/store/catalog/tokens.ts';
import { type Statement, sql, type Tx } from '../../../src/store/db/tx.ts';
import { decodeCause } from '../../../src/store/marks/detail.ts';
import { insertMarks, type Mark, putBackMarks, waitingShards } from '../../../src/store/marks/marks.ts';
import { workShards } from '../../../src/store/marks/stage.ts';
import { writePrices } from '../../../src/store/prices/prices.ts';
import { anAccount } from '../../factories/alerts.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { claimAll } from '../../support/drain.ts';
import { useAlertDesk } from './alert-desk.ts';

const desk = useAlertDesk();

const FIRED = (price: string) => ({ status: 'triggered', triggeredPrice: price, expiredAt: null, events: 1 });
const ACTIVE = { status: 'active', triggeredPrice: null, events: 0 };
const EXPIRED = { status: 'expired', triggeredPrice: null, expiredAt: expect.any(Date), events: 0 };

describe('an alert evaluation with a price in effect at the creation of the alert', () => {
  it('fires on that price when the price changed before the evaluation', async () => {
    const mint = newId('req');
    await desk.see(mint, '0.5', '0.7');
    const alert = await desk.create(mint, 'above', '0.6');
    await desk.see(mint, '0.5');
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject(FIRED('0.7'));
  });

  it('ignores prices before the one in effect', async () => {
    const mint = newId('req');
    await desk.see(mint, '0.7', '0.5');
    const alert = await desk.create(mint, 'above', '0.6');
    await desk.see(mint, '0.4');
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject(ACTIVE);
  });

  it('fires on a price that was written before the alert, committed after it, and changed before the evaluation', async () => {
    const mint = newId('req');
    await desk.see(mint, '0.5');
    await desk.evaluate();
    let alert = { pk: 0n };
    await desk.db.transaction(async (tx) => {
      await desk.seeIn(tx, mint, '0.7');
      alert = await desk.create(mint, 'above', '0.6');
      await desk.evaluate();
    });
    await desk.see(mint, '0.5');
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject(FIRED('0.7'));
  });

  it('fires on such a price when the alert has an end, and so a probe', async () => {
    const mint = newId('req');
    await desk.see(mint, '0.5');
    await desk.evaluate();
    const expiresAt = new Date(Date.now() + 3_600_000);
    const request = { tokenMint: mint, condition: 'above', target: decimal('0.6'), expiresAt } as const;
    const alert = await desk.db.transaction(async (tx) => {
      await desk.seeIn(tx, mint, '0.7');
      await tx.query(sql('test_after_the_price', 'SELECT pg_sleep(0.002)'));
      const made = await desk.db.transaction((other) => createAlert(other, desk.accountId, request));
      await desk.evaluate();
      return made.outcome === 'created' ? made.alert : { pk: 0n };
    });
    await desk.see(mint, '0.5');
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject({ status: 'triggered', triggeredPrice: '0.7' });
  });

  it('ignores a trade print from before the creation', async () => {
    const mint = newId('req');
    await desk.see(mint, '0.5');
    await desk.print(mint, '0.7');
    const alert = await desk.create(mint, 'above', '0.6');
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject(ACTIVE);
  });

  it('uses the latest price when its history is past retention', async () => {
    const mint = newId('req');
    await desk.see(mint, '0.7');
    const forget = sql(
      'test_forget_history',
      'DELETE FROM price_history WHERE token_id = (SELECT id FROM token WHERE mint = $1)',
    );
    await desk.db.query(forget, [mint]);
    const alert = await desk.create(mint, 'above', '0.6');
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject(FIRED('0.7'));
  });
});

describe('an alert on a token without a price', () => {
  it('stays active and untracked, and fires at the first price that meets it', async () => {
    const mint = newId('req');
    const { id, pk } = await desk.create(mint, 'below', '0.4');
    await desk.evaluate();
    expect(await findAlert(desk.db, desk.accountId, id)).toMatchObject({ status: 'active', isTracked: false });
    await desk.see(mint, '0.39');
    await desk.evaluate();
    expect(await findAlert(desk.db, desk.accountId, id)).toMatchObject({ status: 'triggered', isTracked: true });
    expect(await desk.stateOf({ pk })).toMatchObject(FIRED('0.39'));
  });

  it('becomes tracked when a market lists the token, in the currency of its venue', async () => {
    const { market, mint } = desk.market();
    const { id } = await desk.create(mint, 'above', '0.6');
    expect(await findAlert(desk.db, desk.accountId, id)).toMatchObject({ isTracked: false, currency: 'USD' });
    await desk.list(market, 'MANA');
    expect(await findAlert(desk.db, desk.accountId, id)).toMatchObject({ isTracked: true, currency: 'MANA' });
    await desk.see(mint, '0.6');
    await desk.evaluate();
    expect(await findAlert(desk.db, desk.accountId, id)).toMatchObject({ status: 'triggered', currency: 'MANA' });
  });

  it('expires when the market of the token is already resolved', async () => {
    const { market, mint } = desk.market();
    const alert = await desk.create(mint, 'above', '0.6');
    await desk.resolve(market);
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject(EXPIRED);
  });
});

describe('an alert evaluation of a market with a final outcome', () => {
  it('expires alerts on both outcomes regardless of their payouts', async () => {
    const { market, mint, other } = desk.market();
    await desk.list(market);
    await desk.see(mint, '0.5');
    const alerts = [
      await desk.create(mint, 'above', '1'),
      await desk.create(other, 'below', '0'),
      await desk.create(other, 'above', '0.1'),
    ];
    await desk.resolve(market);
    await desk.evaluate();
    for (const alert of alerts) expect(await desk.stateOf(alert)).toMatchObject(EXPIRED);
  });

  it('expires an alert created after the final outcome, despite later prices and prints', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    await desk.see(mint, '0.9');
    await desk.resolve(market);
    const alert = await desk.create(mint, 'above', '0.6');
    await desk.see(mint, '0.95');
    await desk.print(mint, '0.95');
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject(EXPIRED);
  });

  it('expires an alert on a market that was stored as settled from the start', async () => {
    const { outcomes } = await aStoredMarket(desk.db, { status: 'settled' });
    const mint = outcomes[0]?.outcomeId ?? '';
    await desk.see(mint, '0.9');
    const alert = await desk.create(mint, 'above', '0.6');
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject(EXPIRED);
  });

  it('keeps alerts of other markets active', async () => {
    const [over, open] = [desk.market(), desk.market()];
    await desk.list(over.market);
    await desk.list(open.market);
    const alert = await desk.create(open.mint, 'above', '0.6');
    await desk.resolve(over.market);
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject(ACTIVE);
  });

  it('fires an alert that an earlier price met, even when the mark of the final outcome is claimed first', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    const alert = await desk.create(mint, 'above', '0.6');
    await desk.evaluate();
    await desk.see(mint, '0.7');
    await desk.resolve(market);
    await desk.db.transaction(async (tx) => {
      const marks = await claimAll(tx, 'evaluate-alerts');
      const isObserved = ({ detail }: Mark) => decodeCause(detail).kind === 'observed';
      await putBackMarks(
        tx,
        'evaluate-alerts',
        marks.filter((mark) => !isObserved(mark)),
      );
      await insertMarks(tx, 'evaluate-alerts', marks.filter(isObserved));
    });
    const [first] = await desk.evaluate(undefined, 1);
    expect(first).toMatchObject({ fired: [{ alertId: alert.id }], expired: [] });
    expect(await desk.stateOf(alert)).toMatchObject(FIRED('0.7'));
  });

  it('does not expire a met alert when the final outcome commits during the evaluation', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    const alert = await desk.create(mint, 'above', '0.6');
    const [shard = 0] = await waitingShards(desk.db, 'evaluate-alerts');
    await workShards(desk.db, 'evaluate-alerts', [shard], { limit: 100, order: 'oldest' }, (tx, marks) => {
      const interrupted: Tx = {
        em: tx.em,
        async query<Row>(statement: Statement, values?: readonly unknown[]) {
          const rows = await tx.query<Row>(statement, values);
          if (statement.name === 'alert_candidates') {
            await desk.see(mint, '0.7');
            await desk.resolve(market);
          }
          return rows;
        },
      };
      return evaluateAlerts(interrupted, marks);
    });
    expect(await desk.stateOf(alert)).toMatchObject(ACTIVE);
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject(FIRED('0.7'));
  });
});

describe('an alert evaluation with exact decimals', () => {
  it.each([
    ['above', '0', '0', true],
    ['below', '0', '0', true],
    ['below', '0', '0.0000000000000000000000001', false],
    ['above', '0.30000000000000000000001', '0.3', false],
    ['above', '0.30000000000000000000001', '0.30000000000000000000001', true],
    ['below', '0.30000000000000000000001', '0.30000000000000000000002', false],
    ['above', `1${'0'.repeat(308)}`, `1${'0'.repeat(308)}`, true],
    ['above', `1${'0'.repeat(308)}`, `9${'9'.repeat(307)}`, false],
    ['below', `0.${'0'.repeat(323)}5`, `0.${'0'.repeat(323)}5`, true],
    ['below', `0.${'0'.repeat(323)}5`, `0.${'0'.repeat(322)}5`, false],
  ] as const)('evaluates %s %s at price %s as fired: %s', async (condition, target, price, fires) => {
    const mint = newId('req');
    const alert = await desk.create(mint, condition, target);
    await desk.see(mint, price);
    await desk.evaluate();
    expect(await desk.stateOf(alert)).toMatchObject(fires ? FIRED(price) : ACTIVE);
    if (fires) {
      const { body } = await desk.stateOf(alert);
      expect(body).toContain(`"targetPrice":${target},"currentPrice":${price}`);
    }
  });
});

it('an alert fires on a spike within one page that also holds another token', async () => {
  const [mint, other] = [newId('req'), newId('req')];
  await desk.see(mint, '0.5');
  const alert = await desk.create(mint, 'above', '0.8');
  await desk.evaluate();
  await desk.db.transaction(async (tx) => {
    await desk.seeIn(tx, mint, '0.85');
    await desk.seeIn(tx, other, '0.1');
    await desk.seeIn(tx, mint, '0.5');
  });
  await desk.evaluate();
  expect(await desk.stateOf(alert)).toMatchObject(FIRED('0.85'));
});

it('an alert ignores a price with an older venue time than the latest price', async () => {
  const mint = newId('req');
  await desk.see(mint, '0.5');
  const alert = await desk.create(mint, 'above', '0.8');
  await desk.db.transaction(async (tx) => {
    const tokenId = (await ensureTokens(tx, [mint], 'USD')).get(mint) ?? 0n;
    await writePrices(tx, [{ tokenId, asOfMs: Date.now() - 86_400_000, price: decimal('0.9') }]);
  });
  await desk.evaluate();
  expect(await desk.stateOf(alert)).toMatchObject(ACTIVE);
});

it('alerts of several accounts on one token emit events to their own accounts', async () => {
  const mint = newId('req');
  const accounts = [await anAccount(desk.db), await anAccount(desk.db)];
  const alerts = await Promise.all(accounts.map((accountId) => desk.create(mint, 'above', '0.6', { accountId })));
  await desk.see(mint, '0.6');
  await desk.evaluate();
  const owners = sql(
    'test_event_owners',
    `SELECT e.account_id, a.id FROM alert a JOIN event e ON e.id = a.event_id WHERE a.pk = ANY ($1::bigint[]) ORDER BY a.pk`,
  );
  const ownersOfEvents = await desk.db.query(owners, [alerts.map(({ pk }) => pk)]);
  expect(ownersOfEvents).toEqual(
    alerts
      .map(({ id, pk }, index) => ({ pk, row: { accountId: accounts[index], id } }))
      .sort((a, b) => (a.pk < b.pk ? -1 : 1))
      .map(({ row }) => row),
  );
});

it('an alert that was deleted before the evaluation emits no event', async () => {
  const mint = newId('req');
  const { id, pk } = await desk.create(mint, 'above', '0.6');
  await desk.see(mint, '0.7');
  await desk.db.query(sql('test_delete_an_alert', 'DELETE FROM alert WHERE pk = $1'), [pk]);
  expect((await desk.evaluate()).flatMap(({ fired }) => fired)).toEqual([]);
  const events = sql('test_events_of', `SELECT count(*)::int AS events FROM event WHERE dedupe_key = 'alert:' || $1`);
  expect(await desk.db.query(events, [id])).toEqual([{ events: 0 }]);
});
