import { describe, expect, it } from 'vitest';
import type { MarketRecord, MarketStatus } from '../../../src/domain/markets/market.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { newId } from '../../../src/domain/values/ids.ts';
import type { EventFilter } from '../../../src/domain/webhooks/filter.ts';
import { createAlert, deleteAlert, type NewAlert } from '../../../src/store/alerts/alerts.ts';
import { type BacktestFiring, backtest } from '../../../src/store/alerts/backtest/backtest.ts';
import { ANSWER_LIMITS } from '../../../src/store/alerts/backtest/request.ts';
import { changeAlert, lockAlert } from '../../../src/store/alerts/changes.ts';
import { expireDueAlerts } from '../../../src/store/alerts/expiry.ts';
import { pruneFirings } from '../../../src/store/alerts/retention.ts';
import { scopeKeyOf } from '../../../src/store/alerts/scopes.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { anAccount, aSubscription } from '../../factories/alerts.ts';
import { useAlertDesk } from './alert-desk.ts';
import { storeMarketAt } from './rule-world.ts';

const EVENTS = sql(
  'test_events_of_alert',
  `SELECT body, (SELECT count(*)::int FROM delivery d WHERE d.event_pk = e.pk) AS deliveries FROM event e
   WHERE body::jsonb -> 'data' ->> 'alertId' = $1 AND type = 'price_alert' ORDER BY pk`,
);
const STATUS_EVENTS = sql(
  'test_market_status_events',
  `SELECT body, (SELECT count(*)::int FROM delivery d WHERE d.event_pk = e.pk) AS deliveries FROM event e
   WHERE account_id = $1 AND type = 'market_status' ORDER BY pk`,
);
const STATE = sql(
  'test_alert_after_correction',
  `SELECT status, event_id, triggered_at, (SELECT count(*)::int FROM alert_firing f WHERE f.alert_pk = a.pk) AS firings FROM alert a WHERE pk = $1`,
);
const START_AT = sql('test_start_alert', 'UPDATE alert SET created_at = to_timestamp($2 / 1000.0) WHERE pk = $1');
const END_ALERT = sql(
  'test_end_alert',
  `UPDATE alert SET expires_at = now() - interval '1 minute', created_at = now() - interval '2 minutes' WHERE pk = $1`,
);
const FORGET_PAYOUTS = sql(
  'test_forget_payouts',
  `UPDATE market_version SET facts = facts - 'payouts' WHERE market_id = (SELECT id FROM market WHERE venue_market_id = $1)`,
);
const VERSIONS = sql(
  'test_payouts_of_versions',
  `SELECT v.facts -> 'payouts' AS payouts FROM market_version v JOIN market m ON m.id = v.market_id
   WHERE m.venue_market_id = $1 ORDER BY v.known_from`,
);

const DAY_MS = 86_400_000;

const desk = useAlertDesk();

async function create(request: NewAlert, accountId = desk.accountId): Promise<{ id: string; pk: bigint }> {
  const made = await desk.db.transaction((tx) => createAlert(tx, accountId, request));
  if (made.outcome !== 'created') throw new Error(made.outcome);
  return made.alert;
}

interface Row {
  body: string;
  deliveries: number;
}
type Data = Record<string, unknown>;
const dataOf = ({ body }: Row) => (JSON.parse(body) as { data: Data }).data;

async function eventsOf({ id }: { id: string }): Promise<Data[]> {
  await desk.evaluate();
  return (await desk.db.query<Row>(EVENTS, [id])).map(dataOf);
}

/** A state of a market with two outcomes: the payout of each, or none. The one that pays 1 won. */
function stated(market: MarketRecord, status: MarketStatus, payouts?: readonly [string, string]): MarketRecord {
  const outcomes = market.outcomes.map(({ outcomeId, label }, index) => ({
    outcomeId,
    label,
    ...(payouts && { payout: decimal(payouts[index] ?? '0') }),
  }));
  const winner = payouts && outcomes[payouts.indexOf('1')];
  const resolution = payouts && (winner ? ('outcome' as const) : ('void' as const));
  return {
    ...market,
    status,
    outcomes,
    ...(winner && { winningOutcomeId: winner.outcomeId }),
    ...(resolution && { resolution }),
  };
}

const YES = ['1', '0'] as const;
const NO = ['0', '1'] as const;
const HALVES = ['0.5', '0.5'] as const;

/** The part of an event that states a result. */
const told = ({ status, previousStatus, winningOutcomeId, correction, previousWinningOutcomeId, payouts }: Data) => ({
  status,
  previousStatus,
  winningOutcomeId,
  ...(correction !== undefined && { correction, previousWinningOutcomeId, payouts }),
});

describe('a status alert whose market changes its result', () => {
  it('sends one correction with the winner before when Kalshi determines yes, amends to no and finalizes no', async () => {
    const { market, mint, other } = desk.market();
    await aSubscription(desk.db, { accountId: desk.accountId });
    await desk.list(market);
    const once = await create({ tokenMint: mint, condition: 'status', name: 'pay' });
    const again = await create({ scope: { market_id: market.marketId }, condition: 'status', cooldownSeconds: 3_600 });
    await desk.list(stated(market, 'resolved', YES));
    await desk.evaluate();
    const [before] = await desk.db.query(STATE, [once.pk]);
    await desk.list(stated(market, 'resolved', NO));
    await desk.list(stated(market, 'settled', NO));
    for (const alert of [once, again]) {
      expect((await eventsOf(alert)).map(told)).toEqual([
        { status: 'resolved', previousStatus: 'open', winningOutcomeId: mint },
        {
          status: 'resolved',
          previousStatus: 'resolved',
          winningOutcomeId: other,
          correction: true,
          previousWinningOutcomeId: mint,
          payouts: [
            { outcomeId: mint, payout: 0 },
            { outcomeId: other, payout: 1 },
          ],
        },
      ]);
    }
    expect(await desk.db.query(STATE, [once.pk])).toEqual([before]);
    const rows = await desk.db.query<Row>(EVENTS, [once.id]);
    expect(rows.map(({ deliveries }) => deliveries)).toEqual([1, 1]);
    expect(rows.map(dataOf).map(({ name }) => name)).toEqual(['pay', 'pay']);
  });

  it('reports the result of each state when all of them wait for one evaluation', async () => {
    const { market, mint, other } = desk.market();
    await desk.list(market);
    const alert = await create({ tokenMint: mint, condition: 'status' });
    await desk.list(stated(market, 'resolved', YES));
    await desk.list(stated(market, 'resolved', NO));
    await desk.list(stated(market, 'resolved', YES));
    expect((await eventsOf(alert)).map((data) => [data['winningOutcomeId'], data['previousWinningOutcomeId']])).toEqual(
      [
        [mint, undefined],
        [other, mint],
        [mint, other],
      ],
    );
  });

  it('sends corrections in pieces when there are more than the limit, each once', async () => {
    const { market } = desk.market();
    await desk.list(market);
    const alerts = [];
    for (let n = 0; n < 5; n++)
      alerts.push(await create({ scope: { market_id: market.marketId }, condition: 'status' }));
    await desk.list(stated(market, 'resolved', YES));
    await desk.evaluate();
    await desk.list(stated(market, 'resolved', NO));
    const claims = await desk.evaluate({ fired: 2, firedPerToken: 2, expired: 100 });
    expect(claims.flatMap(({ corrections }) => corrections)).toHaveLength(5);
    for (const alert of alerts) expect(await eventsOf(alert)).toHaveLength(2);
  });

  it('sends a correction when a market resolves without a winner and then with one', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    const alert = await create({ tokenMint: mint, condition: 'status' });
    await desk.list(stated(market, 'resolved'));
    await desk.list(stated(market, 'resolved', YES));
    expect((await eventsOf(alert)).map(told)).toMatchObject([
      { status: 'resolved', winningOutcomeId: undefined },
      { status: 'resolved', winningOutcomeId: mint, correction: true, previousWinningOutcomeId: null },
    ]);
  });

  it('sends a correction for the undoing and one for the next result when a result is undone', async () => {
    const { market, mint, other } = desk.market();
    await desk.list(market);
    const alert = await create({ tokenMint: mint, condition: 'status' });
    await desk.list(stated(market, 'resolved', YES));
    await desk.list(stated(market, 'open'));
    await desk.list(stated(market, 'resolved', NO));
    expect((await eventsOf(alert)).map(told)).toMatchObject([
      { winningOutcomeId: mint },
      { status: 'open', winningOutcomeId: undefined, correction: true, previousWinningOutcomeId: mint, payouts: [] },
      { status: 'resolved', winningOutcomeId: other, correction: true, previousWinningOutcomeId: null },
    ]);
  });

  it('makes the firing the correction when an alert that repeats fires at the change of a result', async () => {
    const { market, mint, other } = desk.market();
    const [t1, t2, t3] = [4, 3, 2].map((hours) => Date.now() - hours * 3_600_000) as [number, number, number];
    await storeMarketAt(desk.db, market, t1 - 3_600_000);
    const alert = await create({ tokenMint: mint, condition: 'status', cooldownSeconds: 1 });
    await desk.db.query(START_AT, [alert.pk, t1]);
    await storeMarketAt(desk.db, stated(market, 'resolved', YES), t1);
    await storeMarketAt(desk.db, stated(market, 'closed'), t2);
    await storeMarketAt(desk.db, stated(market, 'resolved', NO), t3);
    expect((await eventsOf(alert)).map(told)).toMatchObject([
      { status: 'resolved', winningOutcomeId: mint },
      { status: 'closed', previousStatus: 'resolved', correction: true, previousWinningOutcomeId: mint },
      { status: 'resolved', winningOutcomeId: other, correction: true, previousWinningOutcomeId: null },
    ]);
    expect(await desk.db.query(STATE, [alert.pk])).toMatchObject([{ firings: 3 }]);
  });

  it('sends a correction when a market pays 50/50 after a winner, and when only the payouts change', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    const alert = await create({ tokenMint: mint, condition: 'status' });
    await desk.list(stated(market, 'resolved', YES));
    await desk.list(stated(market, 'resolved', HALVES));
    await desk.list(stated(market, 'resolved', ['0.6', '0.4']));
    expect(
      (await eventsOf(alert)).map(({ winningOutcomeId, previousWinningOutcomeId, payouts }) => [
        winningOutcomeId,
        previousWinningOutcomeId,
        (payouts as { payout: number }[] | undefined)?.map(({ payout }) => payout),
      ]),
    ).toEqual([
      [mint, undefined, undefined],
      [undefined, mint, [0.5, 0.5]],
      [undefined, null, [0.6, 0.4]],
    ]);
  });

  it('sends none when another fact changes, or when the payouts that a winner implies become known', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    const alert = await create({ tokenMint: mint, condition: 'status' });
    const known = stated(market, 'resolved', YES);
    await desk.list({ ...known, outcomes: stated(market, 'resolved').outcomes });
    await desk.list(known);
    await desk.list({ ...known, title: 'Did it?' });
    await desk.list(stated(market, 'settled', YES));
    expect(await eventsOf(alert)).toHaveLength(1);
  });

  it('sends none to an alert that has reported no result', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    await desk.list(stated(market, 'resolved', YES));
    const late = await create({ tokenMint: mint, condition: 'status' });
    const halted = desk.market();
    await desk.list(halted.market);
    const once = await create({ tokenMint: halted.mint, condition: 'status' });
    await desk.list({ ...halted.market, status: 'halted' });
    await desk.list(stated(halted.market, 'resolved', YES));
    await desk.list(stated(halted.market, 'resolved', NO));
    await desk.list(stated(market, 'resolved', NO));
    expect(await eventsOf(late)).toEqual([]);
    expect((await eventsOf(once)).map(({ status }) => status)).toEqual(['halted']);
  });

  it.each([
    ['at the 29th day', 29, 1],
    ['at the 31st day', 31, 0],
  ])('ends 30 days after the settlement: %s', async (_name, days, corrections) => {
    const { market, mint } = desk.market();
    const nowMs = Date.now();
    const settledMs = nowMs - 1_000 - days * DAY_MS;
    await storeMarketAt(desk.db, market, settledMs - 3 * DAY_MS);
    const alert = await create({ tokenMint: mint, condition: 'status' });
    await desk.db.query(START_AT, [alert.pk, settledMs - 2 * DAY_MS]);
    await storeMarketAt(desk.db, stated(market, 'resolved', YES), settledMs - DAY_MS);
    await storeMarketAt(desk.db, stated(market, 'settled', YES), settledMs);
    await storeMarketAt(desk.db, stated(market, 'settled', NO), nowMs);
    expect((await eventsOf(alert)).filter(({ correction }) => correction)).toHaveLength(corrections);
  });

  it('has no end while the venue does not settle the market', async () => {
    const { market, mint } = desk.market();
    const nowMs = Date.now();
    await storeMarketAt(desk.db, market, nowMs - 401 * DAY_MS);
    const alert = await create({ tokenMint: mint, condition: 'status' });
    await desk.db.query(START_AT, [alert.pk, nowMs - 401 * DAY_MS]);
    await storeMarketAt(desk.db, stated(market, 'resolved', YES), nowMs - 400 * DAY_MS);
    await storeMarketAt(desk.db, stated(market, 'resolved', NO), nowMs);
    expect((await eventsOf(alert)).filter(({ correction }) => correction)).toHaveLength(1);
  });

  it('continues after a pause, an end and the retention of firings, and ends with the deletion', async () => {
    const { market } = desk.market();
    await desk.list(market);
    const fields = { scope: { market_id: market.marketId }, condition: 'status' } as const;
    const [paused, ended, deleted] = [
      await create(fields),
      await create({ ...fields, expiresAt: new Date(Date.now() + 60_000) }),
      await create(fields),
    ];
    await desk.list(stated(market, 'resolved', YES));
    await desk.evaluate();
    await desk.db.transaction(async (tx) => {
      const locked = await lockAlert(tx, desk.accountId, paused.id);
      if (locked) await changeAlert(tx, desk.accountId, locked, { status: 'paused' });
    });
    await desk.db.query(END_ALERT, [ended.pk]);
    await desk.evaluate();
    expect((await expireDueAlerts(desk.db)).alerts).toContain(ended.id);
    await deleteAlert(desk.db, desk.accountId, deleted.id);
    await pruneFirings(desk.db, Date.now() + 60_000);
    await desk.list(stated(market, 'resolved', NO));
    expect(await eventsOf(paused)).toHaveLength(2);
    expect(await eventsOf(ended)).toHaveLength(2);
    expect(await eventsOf(deleted)).toHaveLength(1);
  });
});

describe('versions of a release without payouts', () => {
  it('are no change of the payouts, and hide none between the states around them', async () => {
    const { market, mint } = desk.market();
    await desk.list(market);
    const alert = await create({ tokenMint: mint, condition: 'status' });
    await desk.list(stated(market, 'resolved', HALVES));
    await desk.evaluate();
    await desk.list({ ...stated(market, 'resolved', HALVES), title: 'A former process writes this version' });
    await desk.db.query(FORGET_PAYOUTS, [market.marketId]);
    expect(await eventsOf(alert)).toHaveLength(1);
    await desk.list(stated(market, 'resolved', ['0.6', '0.4']));
    await desk.list(stated(market, 'resolved', YES));
    expect((await eventsOf(alert)).map((data) => data['correction'])).toEqual([undefined, true, true]);
  });

  it('get the payouts of their time from a process that keeps them', async () => {
    const { market, mint, other } = desk.market();
    await desk.list(market);
    await desk.list(stated(market, 'resolved', HALVES));
    await desk.list(stated(market, 'settled', YES));
    expect(await desk.db.query(VERSIONS, [market.marketId])).toEqual([
      { payouts: [] },
      {
        payouts: [
          [mint, '0.5'],
          [other, '0.5'],
        ],
      },
    ]);
  });
});

describe('a webhook for market_status whose market changes its result', () => {
  async function anOwner(filter?: EventFilter) {
    const accountId = await anAccount(desk.db);
    await aSubscription(desk.db, { accountId, events: ['market_status'], ...(filter && { filter }) });
    return async () => {
      await desk.evaluate();
      return desk.db.query<Row>(STATUS_EVENTS, [accountId]);
    };
  }

  it('gets the result of each state, and a correction for each later change', async () => {
    const owner = await anOwner();
    const { market, mint, other } = desk.market();
    await desk.list(market);
    await desk.list(stated(market, 'resolved', YES));
    await desk.list(stated(market, 'resolved', NO));
    await desk.list(stated(market, 'settled', NO));
    await desk.list(stated(market, 'settled', HALVES));
    const rows = await owner();
    expect(rows.map(dataOf).map((data) => ({ ...told(data), resolution: data['resolution'] }))).toMatchObject([
      { status: 'resolved', previousStatus: 'open', winningOutcomeId: mint, resolution: 'outcome' },
      { previousStatus: 'resolved', winningOutcomeId: other, correction: true, previousWinningOutcomeId: mint },
      { status: 'settled', correction: true, previousWinningOutcomeId: other, resolution: 'void' },
    ]);
    expect(rows.map(({ deliveries }) => deliveries)).toEqual([1, 1, 1]);
  });

  it('gets the correction although its filter names the former winner', async () => {
    const { market, mint, other } = desk.market();
    const owner = await anOwner([{ field: 'data.winningOutcomeId', equal: mint }]);
    await desk.list(market);
    await desk.list(stated(market, 'resolved', YES));
    await desk.list(stated(market, 'resolved', NO));
    const rows = await owner();
    expect(rows.map(dataOf).map(({ winningOutcomeId }) => winningOutcomeId)).toEqual([mint, other]);
    expect(rows.map(({ deliveries }) => deliveries)).toEqual([1, 1]);
  });

  it('gets none when it is newer than the report, or when its filter excluded the report', async () => {
    const { market, other } = desk.market();
    const excluded = await anOwner([{ field: 'data.status', equal: 'halted' }]);
    const elsewhere = await anOwner([{ field: 'data.marketId', equal: newId('req') }]);
    await desk.list(market);
    await desk.list(stated(market, 'resolved', YES));
    const late = await anOwner();
    await desk.list(stated(market, 'resolved', NO));
    expect([other, await excluded(), await elsewhere(), await late()]).toEqual([other, [], [], []]);
  });
});

describe('a backtest of a status alert', () => {
  it('has the firings and the corrections of the live alert', async () => {
    const { market, mint } = desk.market();
    const at = (minutes: number) => Date.now() - minutes * 60_000;
    const startMs = at(100);
    await storeMarketAt(desk.db, market, startMs - 60_000);
    const scope = { market_id: market.marketId };
    const scopeKey = await scopeKeyOf(desk.db, scope);
    const requests = [
      { tokenMint: mint, condition: 'status' },
      { scope, condition: 'status' },
      { scope, condition: 'status', cooldownSeconds: 1_800 },
    ] as const;
    const alerts = [];
    for (const request of requests) {
      const alert = await create(request);
      await desk.db.query(START_AT, [alert.pk, startMs]);
      alerts.push(alert);
    }
    const states = [
      stated(market, 'halted'),
      stated(market, 'open'),
      stated(market, 'resolved', YES),
      stated(market, 'resolved', NO),
      stated(market, 'closed'),
      { ...stated(market, 'resolved', NO), category: 'moved' },
      stated(market, 'settled', HALVES),
    ];
    for (const [index, state] of states.entries()) {
      await storeMarketAt(desk.db, state, at(90 - 10 * index));
      if (index % 2 === 0) await desk.evaluate();
    }
    for (const [index, request] of requests.entries()) {
      const result = await backtest(
        desk.db,
        { ...request, scopeKey: 'scope' in request ? scopeKey : null, startMs, endMs: Date.now() },
        ANSWER_LIMITS,
      );
      const found: BacktestFiring[] = [...(result?.firings ?? []), ...(result?.corrections ?? [])];
      const expected = found
        .sort((a, b) => a.atMs - b.atMs)
        .map(({ atMs, status, previousStatus, winningOutcomeId, corrected }) => ({
          observedAt: new Date(atMs).toISOString(),
          status,
          previousStatus,
          winningOutcomeId,
          ...(corrected && {
            correction: true,
            previousWinningOutcomeId: corrected.previousWinner,
            payouts: corrected.payouts.map(({ outcomeId, payout }) => ({ outcomeId, payout: Number(payout) })),
          }),
        }));
      const live = await eventsOf(alerts[index] ?? { id: '' });
      expect(live.map((data) => ({ observedAt: data['observedAt'], ...told(data) }))).toEqual(expected);
      const firings = await desk.db.query<{ firings: number }>(STATE, [alerts[index]?.pk]);
      expect(firings[0]?.firings).toBe(result?.fired);
    }
  });
});
