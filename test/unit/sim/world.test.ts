import { beforeAll, describe, expect, it } from 'vitest';
import { engineControl } from '../../../sim/control.ts';
import { type ExchangeOptions, worldOptions } from '../../../sim/options.ts';
import { clobBook } from '../../../sim/polymarket/clob-payloads.ts';
import { shownDoubleTicks } from '../../../sim/wire/prices.ts';
import { forcePrice } from '../../../sim/world/forced-price.ts';
import { type Market, UNITS } from '../../../sim/world/market.ts';
import { World } from '../../../sim/world/world.ts';

const NOW = 1_790_000_000;

function play(options: ExchangeOptions, liveSteps = 0): World {
  const world = new World(worldOptions({ historyHours: 1, nowSecond: NOW, ...options }, NOW));
  world.playHistory();
  for (let at = 0; at < liveSteps; at += 1) world.step();
  return world;
}

/** The rows of a world that stands still. */
function ledgerOf(world: World) {
  const clock = { catchUp: () => undefined } as Parameters<typeof engineControl>[1];
  return engineControl(world, clock).ledger().trades;
}

function tape(world: World): string {
  return ledgerOf(world)
    .map((row) => JSON.stringify(row))
    .join('\n');
}

describe('World', () => {
  let world: World;
  beforeAll(() => {
    world = play({ seed: 5 }, 400);
  });

  it('gives the same tape byte for byte for the same seed, start and number of steps', () => {
    const again = play({ seed: 5 }, 400);
    const text = tape(again);
    expect(text.length).toBeGreaterThan(100_000);
    expect(text === tape(world)).toBe(true);
    expect(tape(play({ seed: 6 }, 400)) === text).toBe(false);
    again.step();
    expect(tape(again).startsWith(text)).toBe(true);
  });

  it('lets some markets trade for days before the history, in order and as often as requested', () => {
    const deep = play({ seed: 5, deepMarkets: 2, deepPrints: 1500, deepDays: 4 });
    const trades = deep.tape.from(0, Number.POSITIVE_INFINITY);
    const seconds = trades.map((trade) => trade.second);
    expect(seconds).toEqual(seconds.toSorted((a, b) => a - b));
    const old = trades.filter((trade) => trade.second <= NOW - 3600);
    const counts = [0, 1].map((no) => old.filter((trade) => trade.marketNo === no).length);
    expect(counts[0]).toBeGreaterThanOrEqual(1500);
    expect(counts[1]).toBeGreaterThanOrEqual(1500);
    expect(old).toHaveLength((counts[0] ?? 0) + (counts[1] ?? 0));
    const [first] = seconds;
    expect(first).toBe(NOW - 3600 - 4 * 86_400);
    expect(old.filter((trade) => trade.second < NOW - 3600 - 2 * 86_400).length).toBeGreaterThan(old.length / 3);
    expect(deep.markets[0]?.spec.createdSecond).toBeLessThan(first ?? 0);
  });

  it('keeps a tape in time order, with sums equal to the volumes of the markets', () => {
    const sums = new Map<number, number>();
    let before = 0;
    for (const trade of world.tape.from(0, Number.POSITIVE_INFINITY)) {
      const market = marketNo(world, trade.marketNo);
      expect(trade.second).toBeGreaterThanOrEqual(before);
      before = trade.second;
      const ticks = market.yesTicks(trade.ticks, trade.takerIntent.outcomeIndex);
      const microUsd = Math.floor((trade.size * ticks) / market.spec.ticksPerUnit);
      sums.set(trade.marketNo, (sums.get(trade.marketNo) ?? 0) + microUsd);
      // Buyer and seller, or two buyers of opposite outcomes, or two sellers: the fill must be valid for both.
      const isSame = trade.takerIntent.outcomeIndex === trade.makerIntent.outcomeIndex;
      expect(trade.takerIntent.side !== trade.makerIntent.side).toBe(isSame);
    }
    for (const market of world.markets) {
      expect(market.volumeMicroUsd).toBe(sums.get(market.spec.no) ?? 0);
      expect(market.volume.total(world.second).microUsd).toBe(sums.get(market.spec.no) ?? 0);
    }
  });

  it('prints several fills of an order under one hash, and sometimes two equal rows', () => {
    const rows = ledgerOf(world);
    const takerRows = rows.map(({ index: _index, maker: _maker, ...row }) => JSON.stringify(row));
    expect(new Set(rows.map((row) => row.transactionHash)).size).toBeLessThan(rows.length);
    const repeated = takerRows.length - new Set(takerRows).size;
    expect(repeated).toBeGreaterThan(0);
    expect(repeated).toBeLessThan(rows.length / 5);
  });

  it('keeps the sum of beliefs of a negative-risk event at one, and its midpoints near it', () => {
    const group = world.markets.filter((market) => market.event.negRiskId !== undefined);
    expect(group).toHaveLength(5);
    expect(group.reduce((sum, market) => sum + market.fundamental, 0)).toBe(UNITS);
    expect(new Set(group.map((market) => market.event.negRiskId)).size).toBe(1);
    const middles = group.reduce((sum, market) => sum + (shownDoubleTicks(market) ?? 0) / 2000, 0);
    expect(Math.abs(middles - 1)).toBeLessThan(0.1);
  });

  it('shows the two outcomes as mirrors of one book, best price last', () => {
    for (const market of world.markets.filter((each) => each.isTrading)) {
      const [yes, no] = [0, 1].map((index) => bookOf(market, index as 0 | 1));
      const mirrored = (levels: Level[] = []) =>
        levels.map(({ price, size }) => [Math.round((1 - Number(price)) * 1000), size]);
      const plain = (levels: Level[] = []) => levels.map(({ price, size }) => [Math.round(Number(price) * 1000), size]);
      expect(mirrored(no?.asks)).toEqual(plain(yes?.bids));
      expect(mirrored(no?.bids)).toEqual(plain(yes?.asks));
      const ascending = (prices: number[]) => prices.every((price, at) => at === 0 || price > (prices[at - 1] ?? 0));
      expect(ascending((yes?.bids ?? []).map((level) => Number(level.price)))).toBe(true);
      expect(ascending((yes?.asks ?? []).map((level) => Number(level.price)).reverse())).toBe(true);
    }
  });

  it('opens, closes and resolves markets as time passes', () => {
    const fresh = play({ seed: 5, rollingSeconds: 60, markets: 40 });
    const phases = () => new Map(fresh.markets.map((market) => [market.spec.no, market.phase]));
    const seen = new Set<string>();
    const before = phases();
    for (let at = 0; at < 1200; at += 1) {
      fresh.step();
      for (const market of fresh.markets) seen.add(market.phase);
    }
    const after = phases();
    expect([...seen].sort()).toEqual(['disputed', 'open', 'proposed', 'resolved', 'scheduled']);
    expect([...before].filter(([no, phase]) => phase === 'scheduled' && after.get(no) === 'open')).not.toEqual([]);
    expect([...before].filter(([no, phase]) => phase === 'open' && after.get(no) === 'resolved')).not.toEqual([]);
    expect(after.size).toBeGreaterThan(before.size);
    for (const market of fresh.markets.filter((each) => each.phase === 'resolved')) {
      expect(market.winner).toBeTypeOf('number');
      expect(market.book.orderCount).toBe(0);
      expect(market.closedSecond).toBeGreaterThanOrEqual(market.spec.resolveSecond ?? Number.POSITIVE_INFINITY);
    }
  });

  it('keeps memory bounded, dropping the oldest trades', () => {
    const small = play({ seed: 5, tapeCapacity: 500, perMarketCapacity: 50 }, 200);
    const all = small.tape.from(0, Number.POSITIVE_INFINITY);
    expect(small.tape.nextIndex).toBeGreaterThan(1000);
    expect(all).toHaveLength(500);
    expect(all[0]?.index).toBe(small.tape.firstIndex);
    expect(all.at(-1)?.index).toBe(small.tape.nextIndex - 1);
    for (const market of small.markets) {
      const kept = [...small.tape.newestFirst(market.spec.no)];
      expect(kept.length).toBeLessThanOrEqual(50);
      expect(kept.every((trade) => trade.index >= small.tape.firstIndex)).toBe(true);
      expect(kept.map((trade) => trade.index)).toEqual(kept.map((trade) => trade.index).sort((a, b) => b - a));
    }
  });
});

describe('forcePrice', () => {
  it.each([
    [0, 0.9],
    [0, 0.1],
    [1, 0.83],
    [1, 0.07],
  ] as const)('moves outcome %i to %f with real trades, and holds it there', (outcomeIndex, price) => {
    const world = play({ seed: 9 }, 10);
    const market = busyMarket(world);
    const ticks = Math.round(price * market.spec.ticksPerUnit);
    const from = world.tape.nextIndex;
    const fills = forcePrice(world, market, outcomeIndex, ticks, 30);
    const printed = world.tape.from(from, 10_000);
    expect(printed).toHaveLength(fills);
    const tokenTicks = printed.map((trade) => market.yesTicks(trade.ticks, outcomeIndex));
    expect(tokenTicks.at(-1)).toBe(ticks);
    expect(market.lastByToken[outcomeIndex]?.ticks).toBe(ticks);
    for (let at = 0; at < 29; at += 1) {
      world.step();
      const { bestBid = 0, bestAsk = 0 } = market.book;
      expect((bestBid + bestAsk) / 2).toBe(market.yesTicks(ticks, outcomeIndex));
    }
    expect(world.tape.from(from + fills, 10_000).filter((trade) => trade.marketNo === market.spec.no)).toEqual([]);
    for (let at = 0; at < 300; at += 1) world.step();
    expect(world.tape.from(from + fills, 10_000).filter((trade) => trade.marketNo === market.spec.no)).not.toEqual([]);
  });

  it('keeps the sum of beliefs of a negative-risk event at one', () => {
    const world = play({ seed: 9 }, 10);
    const market = marketNo(world, 3);
    forcePrice(world, market, 0, 700, 5);
    const group = world.siblingsOf(market);
    expect(group.reduce((sum, each) => sum + each.fundamental, 0)).toBe(UNITS);
    for (let at = 0; at < 600; at += 1) world.step();
    expect(group.reduce((sum, each) => sum + each.fundamental, 0)).toBe(UNITS);
    expect(group.every((each) => each.fundamental >= 0)).toBe(true);
  });
});

interface Level {
  price: string;
  size: string;
}

function bookOf(market: Market, outcomeIndex: 0 | 1): { bids: Level[]; asks: Level[] } {
  return JSON.parse(JSON.stringify(clobBook(market, outcomeIndex)));
}

function busyMarket(world: World): Market {
  const market = world.markets.find(
    (each) => each.isTrading && each.event.negRiskId === undefined && each.spec.stopSecond === undefined,
  );
  if (market === undefined) throw new Error('no market to force');
  return market;
}

function marketNo(world: World, no: number): Market {
  const market = world.markets[no];
  if (market === undefined) throw new Error(`no market ${no}`);
  return market;
}
