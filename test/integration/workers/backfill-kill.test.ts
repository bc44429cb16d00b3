import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { INTERVAL_SECONDS } from '../../../src/domain/markets/candle.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { foldCandles } from '../../../src/store/series/candles.ts';
import { pollTrades } from '../../../workers/jobs/poll-trades.ts';
import { aTrade } from '../../factories/trades.ts';
import { pagesOf, scriptedAdapter } from '../../factories/venue-adapter.ts';
import { drain } from '../../support/drain.ts';
import { type Candle, foldTrades } from '../../support/postgres/candle-fold.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { BEGAN, backfillOf, historyOf, idsOf, LIVE, MINUTE_MS, NOW } from './backfill-harness.ts';
import { LosableDatabase } from './worker-harness.ts';

const CANDLES = sql(
  'test_candles_of',
  `SELECT bucket AS start, open, high, low, close, volume, notional, trades FROM candle c JOIN token t ON t.id = c.token_id
   WHERE t.mint = $1 AND interval_seconds = $2 ORDER BY bucket`,
);

const test = useTestDatabase();
let made = 0;

async function foldWaiting(): Promise<void> {
  await drain(test.db, 'fold-candles', { limit: 500, order: 'newest' }, foldCandles);
}
async function candlesOf(outcomeId: string, interval: number): Promise<Candle[]> {
  const rows = await test.db.query<Record<keyof Candle, string>>(CANDLES, [outcomeId, interval]);
  return rows.map(({ start, trades, ...prices }) => ({
    start: Number(start),
    trades: Number(trades),
    open: decimal(prices.open),
    high: decimal(prices.high),
    low: decimal(prices.low),
    close: decimal(prices.close),
    volume: decimal(prices.volume),
    notional: decimal(prices.notional),
  }));
}

describe('a backfill that is killed at every page during live polls', () => {
  const entry = fc.record({
    minutesAgo: fc.integer({ min: 0, max: 300 }),
    offsetMs: fc.constantFrom(0, 1, 59_999),
    ordinal: fc.integer({ min: 0, max: 3 }),
    ticks: fc.integer({ min: 1, max: 999 }),
  });

  it('stores exactly the trades of the venue, and candles that equal their fold', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(entry, { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 6 }),
        fc.array(fc.constantFrom('before commit', 'after commit', 'live poll'), { minLength: 1, maxLength: 12 }),
        async (entries, pageSize, faults) => {
          made += 1;
          const on = backfillOf(test, `v${made}`);
          const markets = [await on.aRequest(), await on.aRequest()];
          const outcomes = markets.flatMap((market) => market.outcomes.map(({ outcomeId }) => outcomeId));
          const tape = entries.map(({ minutesAgo, offsetMs, ordinal, ticks }, i) =>
            aTrade({
              tradeId: `t${i}`,
              outcomeId: outcomes[ordinal] ?? '',
              tsMs: NOW - minutesAgo * MINUTE_MS + offsetMs,
              price: decimal(`0.${String(ticks).padStart(3, '0')}`),
            }),
          );
          // The live poll starts an hour before the live moment.
          const recent = tape.filter(({ tsMs }) => tsMs >= LIVE - 60 * MINUTE_MS);
          const pages = Array.from({ length: Math.ceil(recent.length / 3) + 1 }, (_, i) =>
            recent.slice(3 * i, 3 * i + 3),
          );
          const serve = historyOf(tape, pageSize);
          const adapter = scriptedAdapter({ venue: on.venue, history: serve, trades: pagesOf(pages) });
          await on.partitions.ensure(
            'trade',
            tape.map(({ tsMs }) => tsMs),
          );
          for (const fault of faults) {
            if (fault === 'live poll') {
              await on.run(adapter, {}, pollTrades);
              continue;
            }
            const db = new LosableDatabase(test.db.dataSource);
            if (fault === 'before commit') db.loseAtCommit = () => true;
            else db.loseBefore = (transaction) => transaction > 1;
            await on.run(adapter, { db }).catch((error: Error) => expect(error.message).toContain('terminating'));
            await on.endLease();
          }
          await on.run(adapter);
          await on.run(adapter, {}, pollTrades);
          expect(await on.storedIds(...markets)).toEqual(idsOf(tape));
          for (const market of markets)
            expect(await on.walkOf(market)).toMatchObject({ status: 'done', reachedMs: BEGAN });
          await foldWaiting();
          for (const outcomeId of outcomes) {
            const trades = tape.filter((trade) => trade.outcomeId === outcomeId);
            for (const interval of Object.values(INTERVAL_SECONDS)) {
              expect(await candlesOf(outcomeId, interval)).toEqual(foldTrades(trades, interval));
            }
          }
        },
      ),
      { numRuns: 10 },
    );
  });
});
