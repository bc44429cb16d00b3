import { expect, it } from 'vitest';
import { tickerOf } from '../../../sim/kalshi/wire.ts';
import { createAlert } from '../../../src/store/alerts/alerts.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluate.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { outcomeIdsOf } from '../../../src/venues/kalshi/tickers.ts';
import { startSimulatedKalshi } from '../../conformance/venue-adapter/kalshi-exchange.ts';
import { anAccount } from '../../factories/alerts.ts';
import { drain } from '../../support/drain.ts';
import { polledCatalog } from './catalog-harness.ts';

const EVENTS = sql('test_events_of_kalshi', 'SELECT body FROM event ORDER BY pk');

const catalog = polledCatalog('kalshi', startSimulatedKalshi);

it('a status alert corrects its report when Kalshi amends a determined result before it finalizes it', async () => {
  const { db, exchange, poll } = catalog;
  const market = exchange.state().markets.find(({ phase }) => phase === 'open');
  if (!market) throw new Error('the exchange has no open market');
  const { conditionId } = market;
  const { yes, no } = outcomeIdsOf(tickerOf(market));
  await poll(1);
  const accountId = await anAccount(db);
  await db.transaction((tx) => createAlert(tx, accountId, { tokenMint: yes, condition: 'status' }));
  for (const action of ['close', 'amend', 'resolve'] as const) {
    exchange.steer({ conditionId, action, winner: action === 'close' ? 0 : 1 });
    for (const seconds of [31, 301]) {
      await poll(seconds);
      await drain(db, 'evaluate-alerts', { limit: 4_000, order: 'oldest' }, (tx, marks) => evaluateAlerts(tx, marks));
    }
  }
  const rows = await db.query<{ body: string }>(EVENTS);
  expect(rows.map(({ body }) => (JSON.parse(body) as { data: object }).data)).toMatchObject([
    { status: 'resolved', winningOutcomeId: yes },
    { status: 'resolved', winningOutcomeId: no, correction: true, previousWinningOutcomeId: yes },
  ]);
});
