import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { parsePreciseVenueTimeMs } from '../../../src/venues/venue-time.ts';
import { compareTrades, type OrderedTrade } from '../../support/laws/trade-order.ts';
import { bucketStart } from '../../support/postgres/candle-fold.ts';
import { listRecordedFiles, printTable, readRecordedCsv, venueDataFolder } from '../../support/venue-data.ts';

const kalshi = venueDataFolder('kalshi');
const folder = kalshi === undefined ? undefined : join(kalshi, 'trade_tape_2025-11');

function tapeOf(path: string): OrderedTrade[] {
  return readRecordedCsv(path).map((row) => ({
    tradeId: row['trade_id'] ?? '',
    tsMs: parsePreciseVenueTimeMs(row['created_time']) ?? Number.NaN,
    price: decimal(row['price'] ?? ''),
    side: row['taker_side'] === 'yes' ? 'buy' : 'sell',
  }));
}

function byId(a: OrderedTrade, b: OrderedTrade): number {
  return a.tsMs - b.tsMs || (a.tradeId < b.tradeId ? -1 : 1);
}

function groupsOf(tape: readonly OrderedTrade[], keyOf: (trade: OrderedTrade) => number): OrderedTrade[][] {
  const groups = new Map<number, OrderedTrade[]>();
  for (const trade of tape) {
    const group = groups.get(keyOf(trade)) ?? [];
    group.push(trade);
    groups.set(keyOf(trade), group);
  }
  return [...groups.values()];
}

const ends = (trades: readonly OrderedTrade[]) => `${trades[0]?.price} ${trades.at(-1)?.price}`;

describe.skipIf(folder === undefined)('the order of trades on recorded Kalshi tapes', () => {
  const tapes = folder === undefined ? [] : listRecordedFiles(folder).map((file) => tapeOf(join(folder, file)));

  it('has one side only within one microsecond, and changes open or close of 8 % of the 1m candles', () => {
    const sweeps = tapes
      .flatMap((tape) => groupsOf(tape, ({ tsMs }) => tsMs))
      .filter((trades) => new Set(trades.map(({ price }) => price)).size > 1);
    const mixed = sweeps.filter((trades) => new Set(trades.map(({ side }) => side)).size > 1);
    const minutes = tapes.flatMap((tape) => groupsOf(tape, ({ tsMs }) => bucketStart(tsMs, 60)));
    const changed = minutes.filter(
      (trades) => ends(trades.toSorted(byId)) !== ends(trades.toSorted(compareTrades)),
    ).length;
    const figures = {
      tapes: tapes.length,
      trades: tapes.flat().length,
      sweeps: sweeps.length,
      mixed: mixed.length,
      minutes: minutes.length,
      changed,
    };
    printTable('Trades of one microsecond at several prices', [figures]);
    expect(figures).toEqual({ tapes: 111, trades: 15_610, sweeps: 1_136, mixed: 0, minutes: 2_961, changed: 241 });
  });
});
