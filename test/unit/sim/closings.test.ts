import { describe, expect, it } from 'vitest';
import { type CloseWindow, Closings } from '../../../sim/kalshi/closings.ts';
import { closeSecondOf } from '../../../sim/kalshi/wire.ts';
import { worldOptions } from '../../../sim/options.ts';
import type { Market } from '../../../sim/world/market.ts';
import { steerMarket } from '../../../sim/world/steering.ts';
import { World } from '../../../sim/world/world.ts';

const NOW = 1_790_000_000;
const DAY = 86_400;

function largeWorld(): World {
  const options = { seed: 3, nowSecond: NOW, historyHours: 0.1, markets: 3_000, liveMarkets: 30 };
  const world = new World(worldOptions(options, NOW));
  world.playHistory();
  return world;
}

/** The same rows by a scan of all markets. */
function scanned(world: World, { minSecond, maxSecond }: CloseWindow): Market[] {
  return world.markets
    .filter((market) => closeSecondOf(market) >= minSecond && closeSecondOf(market) <= maxSecond)
    .sort((a, b) => closeSecondOf(a) - closeSecondOf(b) || a.spec.no - b.spec.no);
}

const WINDOWS: CloseWindow[] = [
  { minSecond: 0, maxSecond: Number.MAX_SAFE_INTEGER },
  { minSecond: NOW - DAY, maxSecond: NOW + DAY },
  { minSecond: NOW + 3 * DAY, maxSecond: NOW + 7 * DAY },
  { minSecond: NOW + 400 * DAY, maxSecond: NOW + 500 * DAY },
];

describe('Closings', () => {
  it('lists the markets of a window by close time, also after a control closed some', () => {
    const world = largeWorld();
    const closings = new Closings(world);
    for (const window of WINDOWS) expect([...closings.between(window, undefined)]).toEqual(scanned(world, window));
    for (const market of world.markets.slice(1_000, 1_010)) steerMarket(world, market, { action: 'close', winner: 0 });
    for (let at = 0; at < 700; at += 1) world.step();
    for (const window of WINDOWS) expect([...closings.between(window, undefined)]).toEqual(scanned(world, window));
  });

  it('continues at a market, so that pages repeat and skip none', () => {
    const world = largeWorld();
    const closings = new Closings(world);
    for (const window of WINDOWS.slice(0, 3)) {
      const all = scanned(world, window);
      for (const at of [0, 1, Math.floor(all.length / 2), all.length - 1]) {
        expect([...closings.between(window, all[at]?.spec.no)]).toEqual(all.slice(at));
      }
    }
  });

  it('finds most close times within two weeks, and some within a year', () => {
    const world = largeWorld();
    const within = (days: number) => scanned(world, { minSecond: NOW, maxSecond: NOW + days * DAY }).length;
    expect(within(14) / world.markets.length).toBeGreaterThan(0.6);
    expect(within(120) / world.markets.length).toBeLessThan(0.95);
    expect(within(366)).toBeGreaterThan(0.99 * world.markets.length);
  });
});
