import { afterAll, beforeAll, expect, it } from 'vitest';
import { tickerOf } from '../../../sim/kalshi/wire.ts';
import { createAlert } from '../../../src/store/alerts/alerts.ts';
import { evaluateAlerts } from '../../../src/store/alerts/evaluation.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { outcomeIdsOf } from '../../../src/venues/kalshi/outcome-ids.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';
import { pollMarkets } from '../../../workers/jobs/poll-markets.ts';
import { startSimulatedKalshi } from '../../conformance/venue-adapter/kalshi-exchange.ts';
import { anAccount } from '../../factories/alerts.ts';
import { drain } from '../../support/drain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { jobContext, testConfig } from './worker-harness.ts';

const EVENTS = sql('test_events_of_kalshi', 'SELECT body FROM event ORDER BY pk');

let test: TestDatabase;
let venue: Awaited<ReturnType<typeof startSimulatedKalshi>>;
let adapter: VenueAdapter;
beforeAll(async () => {
  test = await createTestDatabase();
  venue = await startSimulatedKalshi({ nowSecond: Math.floor(Date.now() / 1000) });
  adapter = venue.createAdapter();
});
afterAll(async () => {
  await adapter.close();
  await venue.close();
  await test.drop();
});

/** One poll of the catalog after so many seconds, and the evaluation of its changes. */
async function poll(seconds: number): Promise<void> {
  venue.exchange.idle(seconds);
  const config = testConfig(test.url, { VENUES: 'kalshi' });
  const context = jobContext({ db: test.db, config, adapter, now: () => venue.now() });
  expect(await pollMarkets.run({ venue: 'kalshi' }, context)).not.toHaveProperty('failed');
  await drain(test.db, 'evaluate-alerts', { limit: 4_000, order: 'oldest' }, (tx, marks) => evaluateAlerts(tx, marks));
}

it('a status alert corrects its report when Kalshi amends a determined result before it finalizes it', async () => {
  const market = venue.exchange.state().markets.find(({ phase }) => phase === 'open');
  if (!market) throw new Error('the exchange has no open market');
  const { conditionId } = market;
  const { yes, no } = outcomeIdsOf(tickerOf(market));
  await poll(1);
  const accountId = await anAccount(test.db);
  await test.db.transaction((tx) => createAlert(tx, accountId, { tokenMint: yes, condition: 'status' }));
  for (const action of ['close', 'amend', 'resolve'] as const) {
    venue.exchange.steer({ conditionId, action, winner: action === 'close' ? 0 : 1 });
    await poll(31);
    await poll(301);
  }
  const rows = await test.db.query<{ body: string }>(EVENTS);
  expect(rows.map(({ body }) => (JSON.parse(body) as { data: object }).data)).toMatchObject([
    { status: 'resolved', winningOutcomeId: yes },
    { status: 'resolved', winningOutcomeId: no, correction: true, previousWinningOutcomeId: yes },
  ]);
});
