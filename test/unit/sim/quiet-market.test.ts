import { describe, expect, it } from 'vitest';
import { type ExchangeOptions, worldOptions } from '../../../sim/options.ts';
import { tokenQuote } from '../../../sim/wire/prices.ts';
import { liveSource } from '../../../sim/world/live-source.ts';
import { movedSecond, movesOf, QuietTexts, visibleMarket } from '../../../sim/world/quiet-market.ts';
import { steerMarket } from '../../../sim/world/steering.ts';
import { World } from '../../../sim/world/world.ts';

const NOW = 1_790_000_000;

function quietWorld(options: ExchangeOptions = {}): World {
  const defaults = { seed: 5, nowSecond: NOW, historyHours: 0.05, markets: 1_000, liveMarkets: 2, rollingSeconds: 0 };
  const world = new World(worldOptions({ ...defaults, ...options }, NOW));
  world.playHistory();
  return world;
}

const quietMarkets = (world: World) => world.markets.filter((market) => !market.spec.hasTraders);
const quotes = (world: World) => quietMarkets(world).map((market) => tokenQuote(visibleMarket(market, world), 0));

describe('markets without traders', () => {
  it('keep their opening quotes without the option', () => {
    const world = quietWorld();
    const opening = quotes(world);
    world.skipTo(NOW + 100_000);
    expect(quotes(world)).toEqual(opening);
    expect(opening.every(({ bid, ask }) => bid !== undefined && ask !== undefined)).toBe(true);
  });

  it('move the given share of quotes per minute, the same ones for the same seed and second', () => {
    const world = quietWorld({ quietMovesPerMinute: 0.1 });
    const opening = quotes(world);
    expect(opening).toEqual(quotes(quietWorld()));
    world.skipTo(NOW + 60);
    const later = quotes(world);
    const moved = later.filter((quote, at) => quote.bid !== opening[at]?.bid);
    expect(moved.length).toBeGreaterThan(70);
    expect(moved.length).toBeLessThan(130);
    const again = quietWorld({ quietMovesPerMinute: 0.1 });
    again.skipTo(NOW + 60);
    expect(quotes(again)).toEqual(later);
  });

  it('are listed by the time that they show when a control changed them', () => {
    const world = quietWorld({ quietMovesPerMinute: 0.1, markets: 60 });
    for (const [at, market] of quietMarkets(world).slice(0, 20).entries()) {
      world.skipTo(NOW + at);
      steerMarket(world, market, { action: 'propose', winner: 0 });
    }
    const entries = liveSource(world).gamma.entries();
    for (const entry of entries) {
      const { updatedAt } = JSON.parse(entry.text(false)) as { updatedAt: string };
      expect(Math.floor(Date.parse(updatedAt) / 1000)).toBe(entry.sortValue('updatedAt') / 1000);
    }
    expect(entries.filter((entry) => entry.sortValue('updatedAt') >= NOW * 1000).length).toBeGreaterThanOrEqual(20);
  });

  it('change bid and ask with every move, at the second of the move', () => {
    const world = quietWorld({ quietMovesPerMinute: 1, markets: 60 });
    let before = quotes(world);
    for (let minute = 1; minute <= 20; minute += 1) {
      world.skipTo(NOW + minute * 60);
      const after = quotes(world);
      for (const [at, market] of quietMarkets(world).entries()) {
        expect(after[at]?.bid).not.toBe(before[at]?.bid);
        expect(after[at]?.ask).not.toBe(before[at]?.ask);
        expect(Math.floor(visibleMarket(market, world).changedAtMs / 1000)).toBe(movedSecond(market, world));
        expect(movedSecond(market, world)).toBeGreaterThan(world.second - 60);
        expect(movedSecond(market, world)).toBeLessThanOrEqual(world.second);
      }
      before = after;
    }
  });
});

describe('QuietTexts', () => {
  it('keeps a text until the quotes move or a control changes the market', () => {
    const world = quietWorld({ quietMovesPerMinute: 1 });
    const market = quietMarkets(world)[7];
    if (market === undefined) throw new Error('no quiet market');
    const texts = new QuietTexts(world);
    let made = 0;
    const text = () => texts.of(market, () => String(++made));
    expect([text(), text()]).toEqual(['1', '1']);
    world.skipTo(NOW + 60);
    expect(movesOf(market, world)).toBe(1);
    expect([text(), text()]).toEqual(['2', '2']);
    steerMarket(world, market, { action: 'halt' });
    expect([text(), text()]).toEqual(['3', '4']);
  });

  it('makes the text of a market with traders at each request', () => {
    const world = quietWorld();
    const [market] = world.moving;
    if (market === undefined) throw new Error('no market with traders');
    const texts = new QuietTexts(world);
    let made = 0;
    const text = () => texts.of(market, () => String(++made));
    expect([text(), text()]).toEqual(['1', '2']);
  });
});
