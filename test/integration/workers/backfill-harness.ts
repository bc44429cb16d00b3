import type { TradeRecord } from '../../../src/domain/markets/market.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { readTradeFacts, requestTradeHistory, type TradeHistory } from '../../../src/store/series/trade-history.ts';
import { backfillTrades } from '../../../workers/jobs/backfill-trades.ts';
import type { DefinedJob, JobReport } from '../../../workers/process/define.ts';
import { aStoredMarket, type TestMarket } from '../../factories/stored-market.ts';
import { aTrade } from '../../factories/trades.ts';
import type { Script, ScriptedAdapter } from '../../factories/venue-adapter.ts';
import type { TestDatabase } from '../../support/postgres/database.ts';
import { type ContextFields, jobContext, testConfig } from './worker-harness.ts';

export const MINUTE_MS = 60_000;
export const NOW = Date.UTC(2026, 5, 15, 12);
/** The start of live polling. */
export const LIVE = NOW - 60 * MINUTE_MS;
export const BEGAN = NOW - 3_000 * MINUTE_MS;

const STORED = sql(
  'test_stored_trades',
  `SELECT t.mint || '/' || trade_id AS id FROM trade JOIN token t ON t.id = token_id WHERE t.mint = ANY ($1::text[])`,
);
const END_LEASE = sql('test_end_lease', `UPDATE poll_state SET lease_until = now() - interval '1 ms' WHERE venue = $1`);

/** A venue that serves these trades, `pageSize` at a time, newest first. */
export function historyOf(tape: readonly TradeRecord[], pageSize: number): NonNullable<Script['history']> {
  return async ({ outcomeIds, fromMs, toMs }, position) => {
    const { index } = (position as { index: number } | null) ?? { index: 0 };
    const asked = tape
      .filter(({ outcomeId, tsMs }) => outcomeIds.includes(outcomeId) && tsMs >= fromMs && tsMs < toMs)
      .sort((a, b) => b.tsMs - a.tsMs);
    const records = asked.slice(index, index + pageSize);
    const more = index + pageSize < asked.length;
    const reachedMs = more ? (records.at(-1)?.tsMs ?? toMs) + 1 : fromMs;
    return { records, rejected: [], position: { index: index + pageSize }, more, reachedMs };
  };
}

/** One trade per minute, backwards from a minute before the live moment. */
export function tapeOf(market: TestMarket, trades: number): TradeRecord[] {
  return Array.from({ length: trades }, (_, i) =>
    aTrade({ tradeId: `t${i}`, outcomeId: market.outcomes[i % 2]?.outcomeId ?? '', tsMs: LIVE - (i + 1) * MINUTE_MS }),
  );
}

/** Trades as `storedIds` names them. */
export function idsOf(tape: readonly TradeRecord[]): string[] {
  return tape.map(({ outcomeId, tradeId }) => `${outcomeId}/${tradeId}`).sort();
}

/** A venue of the tests with requested histories. */
export interface Backfill {
  readonly venue: string;
  readonly partitions: Partitions;
  /** A market with a requested history from BEGAN to LIVE. */
  aRequest(fields?: { fromMs?: number }): Promise<TestMarket>;
  /** Runs the job as a separate process does. */
  run(adapter: ScriptedAdapter, fields?: Partial<ContextFields>, job?: DefinedJob): Promise<JobReport>;
  walkOf(market: TestMarket): Promise<TradeHistory | null>;
  storedIds(...markets: TestMarket[]): Promise<string[]>;
  /** Lets the lease of a dead process end. */
  endLease(): Promise<void>;
}

export function backfillOf(test: TestDatabase, venue: string): Backfill {
  const partitions = new Partitions(test.db);
  return {
    venue,
    partitions,
    async aRequest(fields = {}) {
      const market = await aStoredMarket(test.db, { venue });
      await requestTradeHistory(test.db, { marketPk: market.pk, fromMs: BEGAN, toMs: LIVE, ...fields });
      return market;
    },
    run(adapter, fields = {}, job = backfillTrades) {
      const used = { db: test.db, config: testConfig(test.url), adapter, partitions, now: () => NOW, ...fields };
      return job.run({ venue }, jobContext(used));
    },
    walkOf: async ({ pk }) => (await readTradeFacts(test.db, pk)).history,
    async storedIds(...markets) {
      const mints = markets.flatMap(({ outcomes }) => outcomes.map(({ outcomeId }) => outcomeId));
      return (await test.db.query<{ id: string }>(STORED, [mints])).map(({ id }) => id).sort();
    },
    endLease: async () => void (await test.db.query(END_LEASE, [venue])),
  };
}
