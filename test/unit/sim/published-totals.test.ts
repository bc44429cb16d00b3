import { beforeAll, describe, expect, it } from 'vitest';
import { Directory } from '../../../sim/kalshi/directory.ts';
import { tradeObject } from '../../../sim/kalshi/wire.ts';
import { groupObject, isPoolMarket, marketObject } from '../../../sim/limitless/wire.ts';
import { contractsOf, liteMarket } from '../../../sim/manifold/contracts.ts';
import { worldOptions } from '../../../sim/options.ts';
import { gammaEventStub } from '../../../sim/polymarket/gamma-event.ts';
import { gammaMarket } from '../../../sim/polymarket/gamma-market.ts';
import type { Market } from '../../../sim/world/market.ts';
import type { Trade } from '../../../sim/world/trade-tape.ts';
import { World } from '../../../sim/world/world.ts';

const SEED = 6;
const NOW = 1_790_000_000;
const MILLION = 1_000_000;
const BUCKET = 300;
const DAY = 86_400;

/** The totals that venues publish are sums over the exchange's ledger of fills, each fill once. */
describe('the published totals', () => {
  let world: World;

  beforeAll(() => {
    const options = { seed: SEED, nowSecond: NOW, historyHours: 1, markets: 12, rollingSeconds: 0 };
    world = new World(worldOptions({ ...options, deepMarkets: 3, deepDays: 2, deepPrints: 300 }, NOW));
    world.playHistory();
    for (let at = 0; at < 300; at += 1) world.step();
  });

  const tape = () => world.tape.from(0, Number.POSITIVE_INFINITY);
  /** The fills of the last 24 h less the running five minutes: the sums of a day move in such steps. */
  const isOfTheDay = ({ second }: Trade) => second >= Math.floor(world.second / BUCKET + 1) * BUCKET - DAY;
  const sumOf = (market: Market, of: (trade: Trade) => number, isCounted = (_trade: Trade) => true) => {
    const fills = tape().filter((trade) => trade.marketNo === market.spec.no && isCounted(trade));
    return fills.reduce((sum, trade) => sum + of(trade), 0);
  };
  /** Dollars at the price of the taker's outcome, in millionths. */
  const usd = (market: Market) => (trade: Trade) =>
    Math.floor((trade.size * market.yesTicks(trade.ticks, trade.takerIntent.outcomeIndex)) / market.spec.ticksPerUnit);
  const traded = () => world.markets.filter(({ tradeCount }) => tradeCount > 0);

  it('cover markets with trades older than a day', () => {
    expect(traded().length).toBeGreaterThan(5);
    expect(traded().some((market) => sumOf(market, usd(market)) > sumOf(market, usd(market), isOfTheDay))).toBe(true);
  });

  it('are dollars of takers on Polymarket, in all and of a day', () => {
    for (const market of traded()) {
      const wire = gammaMarket(market, world.siblingsOf(market), { seed: SEED, second: world.second, rate: 0.05 });
      expect(Number(wire['volume'])).toBe(sumOf(market, usd(market)) / MILLION);
      expect(wire['volumeNum']).toBe(Number(wire['volume']));
      expect(wire['volume24hr']).toBe(sumOf(market, usd(market), isOfTheDay) / MILLION);
    }
    const grouped = world.markets.filter(({ event }) => event.negRiskId !== undefined);
    const [first] = grouped;
    if (first === undefined) throw new Error('no group');
    const members = world.siblingsOf(first).filter((market) => market.isListed);
    const event = gammaEventStub(first.event, members, world.second);
    expect(event['volume']).toBe(members.reduce((sum, market) => sum + sumOf(market, usd(market)), 0) / MILLION);
  });

  it('are contracts on Kalshi: the sum of count_fp of the trades, in all and of a day', () => {
    const settings = { cutoffSecond: 0, showsUnopened: false, combinations: 0, hasEventCategory: false } as const;
    const directory = new Directory(world, { ...settings, eventTickers: 'served' });
    for (const market of traded()) {
      const contracts = (trade: Trade) => Number(tradeObject(trade, market, SEED)['count_fp']);
      const wire = JSON.parse(directory.text(market)) as Record<string, unknown>;
      expect(Number(wire['volume_fp'])).toBeCloseTo(sumOf(market, contracts), 4);
      expect(Number(wire['volume_24h_fp'])).toBeCloseTo(sumOf(market, contracts, isOfTheDay), 4);
    }
  });

  it('are mana of the bets that took on Manifold, over all answers of a contract', () => {
    for (const contract of contractsOf(world)) {
      const sum = (isCounted?: (trade: Trade) => boolean) =>
        contract.markets.reduce((total, market) => total + sumOf(market, usd(market), isCounted), 0) / MILLION;
      const wire = liteMarket(contract, world.second);
      expect(wire['volume']).toBeCloseTo(sum(), 6);
      expect(wire['volume24Hours']).toBeCloseTo(sum(isOfTheDay), 6);
    }
  });

  it('are millionths of a dollar on Limitless, of a market, of a pool and of a group', () => {
    for (const market of traded()) {
      expect(marketObject(market, world)['volume']).toBe(String(sumOf(market, usd(market))));
    }
    expect(traded().some(isPoolMarket)).toBe(true);
    const grouped = world.markets.filter(({ event, isListed }) => event.negRiskId !== undefined && isListed);
    const members = grouped.filter(({ event }) => event.no === grouped[0]?.event.no);
    const sum = members.reduce((total, market) => total + sumOf(market, usd(market)), 0);
    expect(groupObject(members, world)['volume']).toBe(String(sum));
  });
});
