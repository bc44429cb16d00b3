import { beforeEach, expect, it } from 'vitest';
import { sql } from '../../../src/store/db/tx.ts';
import { gaugesOf } from '../../../workers/process/role-gauges.ts';
import { aVenueCompleteness } from '../../factories/completeness.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { jobContext, testConfig } from './worker-harness.ts';

const NOW = Date.UTC(2026, 5, 15, 12);
const SET_TAPE = sql(
  'test_gauges_tape',
  `INSERT INTO poll_state (venue, kind, first_success_at, last_success_at, caught_up_at) VALUES ('kalshi', 'trades', $1, $1, $1)
   ON CONFLICT (venue, kind) DO UPDATE SET last_success_at = excluded.last_success_at, caught_up_at = excluded.caught_up_at`,
);
const CLEAR = sql('test_gauges_clear', 'TRUNCATE venue_completeness');

const test = useTestDatabase();
beforeEach(() => test.db.query(CLEAR));

const at = (agoMs: number) => new Date(NOW - agoMs);
const readTape = (agoMs: number) => test.db.query(SET_TAPE, [at(agoMs).toISOString()]);
const sum = { checkedAt: at(0), since: at(86_400_000), share: 1, markets: 7, missing: 0 };

/** The samples of the completeness of the venue by name. */
async function samples(): Promise<Record<string, number>> {
  const deps = jobContext({ db: test.db, config: testConfig(test.url, { VENUES: 'kalshi' }), now: () => NOW });
  deps.metrics.collectors.add(...gaugesOf('poller', deps).filter(({ name }) => name === 'completeness'));
  const lines = (await deps.metrics.text()).matchAll(
    /^oddswire_(trade\w+|markets_missing_trades)\{venue="kalshi".*\} (\S+)$/gm,
  );
  return Object.fromEntries([...lines].map(([, name, value]) => [name, Number(value)]));
}

it('the gauges of completeness show no share where nothing was compared', async () => {
  await readTape(4_000);
  await aVenueCompleteness(test.db, 'kalshi', { ...sum, share: null });
  expect(await samples()).toEqual({ trades_read_age_seconds: 4, markets_missing_trades: 0 });
  await test.db.query(CLEAR);
  await aVenueCompleteness(test.db, 'kalshi', sum);
  expect(await samples()).toEqual({ trades_read_age_seconds: 4, trade_coverage_ratio: 1, markets_missing_trades: 0 });
});

it('the gauges of completeness claim nothing while the polls of trades fail, but keep a known loss', async () => {
  await readTape(2_220_000);
  await aVenueCompleteness(test.db, 'kalshi', sum);
  expect(await samples()).toEqual({ trades_read_age_seconds: 2_220 });
  await test.db.query(CLEAR);
  await aVenueCompleteness(test.db, 'kalshi', { ...sum, share: 0.5, missing: 2, missingSince: at(60_000) });
  expect(await samples()).toEqual({
    trades_read_age_seconds: 2_220,
    trade_coverage_ratio: 0.5,
    markets_missing_trades: 2,
  });
});
