import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { INTERVAL_SECONDS } from '../../../../src/domain/markets/candle.ts';
import type { TradeRecord } from '../../../../src/domain/markets/market.ts';
import { type Decimal, decimal } from '../../../../src/domain/values/decimal.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { waitingShards } from '../../../../src/store/marks/marks.ts';
import { foldCandles } from '../../../../src/store/series/candles.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { drain } from '../../../support/drain.ts';
import { type Candle, foldTrades } from '../../../support/postgres/candle-fold.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const STAGE = 'fold-candles' as const;
const BASE_MS = Date.UTC(2026, 0, 31, 23, 40);
const SPAN_MS = 3 * 3_600_000;

const test = useTestDatabase();
let partitions: Partitions;
let run = 0;
beforeAll(async () => {
  partitions = new Partitions(test.db);
  await partitions.ensureAroundNow('observation');
});

async function write(trades: readonly TradeRecord[]): Promise<void> {
  await partitions.ensure(
    'trade',
    trades.map((trade) => trade.tsMs),
  );
  await test.db.transaction((tx) => writeTrades(tx, trades, 'USD'));
}

async function foldWaiting(limit: number): Promise<void> {
  await drain(test.db, STAGE, { limit, order: 'newest' }, foldCandles);
}

const STORED = sql(
  'test_stored_candles',
  `SELECT bucket AS start, open, high, low, close, volume, notional, trades FROM candle c JOIN token t ON t.id = c.token_id
   WHERE t.mint = $1 AND interval_seconds = $2 ORDER BY bucket`,
);

async function storedCandles(outcomeId: string, interval: number): Promise<Candle[]> {
  const rows = await test.db.query<Record<keyof Candle, string>>(STORED, [outcomeId, interval]);
  return rows.map((row) => ({
    start: Number(row.start),
    open: decimal(row.open),
    high: decimal(row.high),
    low: decimal(row.low),
    close: decimal(row.close),
    volume: decimal(row.volume),
    notional: decimal(row.notional),
    trades: Number(row.trades),
  }));
}

const price = fc
  .integer({ min: 1, max: 9_999 })
  .map((ticks): Decimal => decimal(`0.${String(ticks).padStart(4, '0')}`));
const size = fc.integer({ min: 1, max: 10_000_000 }).map((units): Decimal => decimal(units / 1_000));
const tape = fc.uniqueArray(
  fc.record({
    offsetMs: fc.oneof(fc.integer({ min: 0, max: SPAN_MS }), fc.constantFrom(0, 59_999, 60_000, 1_200_000)),
    id: fc.string({ unit: fc.constantFrom('a', 'B', 'z', '0', '9', '_'), minLength: 1, maxLength: 6 }),
    outcome: fc.integer({ min: 0, max: 2 }),
    price,
    size,
    side: fc.constantFrom('buy', 'sell', undefined),
    ordinal: fc.constantFrom(0, 0, 1),
  }),
  { minLength: 1, maxLength: 60, selector: ({ offsetMs, id, outcome }) => `${offsetMs}/${id}/${outcome}` },
);

describe('foldCandles', () => {
  it('produces the fold of the tape for any order, duplication, batching and interleaving of trades', async () => {
    await fc.assert(
      fc.asyncProperty(
        tape,
        fc.infiniteStream(fc.nat()),
        fc.integer({ min: 1, max: 7 }),
        async (entries, dice, limit) => {
          run += 1;
          const trades = entries.map(
            (entry): TradeRecord => ({
              tradeId: entry.id,
              outcomeId: `run-${run}-${entry.outcome}`,
              tsMs: BASE_MS + entry.offsetMs,
              price: entry.price,
              size: entry.size,
              ordinal: entry.ordinal,
              ...(entry.side && { side: entry.side }),
            }),
          );
          const roll = (sides: number) => (dice.next().value ?? 0) % sides;
          const shuffled = [...trades, ...trades.filter(() => roll(3) === 0)]
            .map((trade) => ({ trade, key: roll(1_000_003) }))
            .sort((a, b) => a.key - b.key)
            .map(({ trade }) => trade);
          const writers: Promise<void>[] = [];
          while (shuffled.length > 0) {
            writers.push(write(shuffled.splice(0, 1 + roll(20))));
            if (roll(2) === 0) await Promise.all(writers.splice(0));
            if (roll(3) === 0) writers.push(foldWaiting(limit));
          }
          await Promise.all(writers);
          await foldWaiting(limit);
          for (const outcomeId of new Set(trades.map((trade) => trade.outcomeId))) {
            const own = trades.filter((trade) => trade.outcomeId === outcomeId);
            for (const interval of Object.values(INTERVAL_SECONDS)) {
              expect(await storedCandles(outcomeId, interval)).toEqual(foldTrades(own, interval));
            }
          }
        },
      ),
      { numRuns: 25 },
    );
  });

  it('updates a folded bucket when a late trade changes it', async () => {
    const outcomeId = 'late';
    const at = (offsetMs: number, tradeId: string, text: string): TradeRecord => ({
      tradeId,
      outcomeId,
      tsMs: BASE_MS + offsetMs,
      price: decimal(text),
      size: decimal('1'),
    });
    await write([at(30_000, 'b', '0.5'), at(40_000, 'c', '0.6')]);
    await foldWaiting(100);
    await write([at(10_000, 'a', '0.2'), at(59_999, 'd', '0.9')]);
    await foldWaiting(100);
    const [day] = await storedCandles(outcomeId, 86_400);
    expect(day).toMatchObject({ open: '0.2', high: '0.9', low: '0.2', close: '0.9', volume: '4', trades: 4 });
  });

  it('skips trades that were already stored', async () => {
    const trade: TradeRecord = {
      tradeId: 'once',
      outcomeId: 'replayed',
      tsMs: BASE_MS,
      price: decimal('0.4'),
      size: decimal('3'),
    };
    await write([trade]);
    await foldWaiting(100);
    await write([trade, trade]);
    expect(await waitingShards(test.db, STAGE)).toEqual([]);
  });
});
