import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { worldOptions } from '../../../sim/options.ts';
import { clobBook, clobMarket } from '../../../sim/polymarket/clob-payloads.ts';
import { dataTrade } from '../../../sim/polymarket/data-trade.ts';
import { gammaMarket } from '../../../sim/polymarket/gamma-market.ts';
import { World } from '../../../sim/world/world.ts';
import { listRecordedFiles, readRecordedJson, readRecordedLines, venueDataFolder } from '../../support/venue-data.ts';

const folder = venueDataFolder('polymarket');
const SEED = 3;
const NOW = 1_790_000_000;

/** `$.path:type` of every value in a payload, in the form of the recorded shapes. */
function shapeOf(value: unknown, path = '$', found = new Set<string>()): Set<string> {
  const isList = Array.isArray(value);
  const type = value === null ? 'null' : isList ? 'array' : typeof value;
  const names: Record<string, string> = { string: 'str', boolean: 'bool' };
  found.add(`${path}:${names[type] ?? type}`);
  if (isList) for (const item of value as unknown[]) shapeOf(item, `${path}[]`, found);
  else if (type === 'object') {
    for (const [key, inner] of Object.entries(value as object)) shapeOf(inner, `${path}.${key}`, found);
  }
  return found;
}

/** The parsed wire format, which has no `undefined`. */
function sent(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

describe.runIf(folder !== undefined)('the wire format of the simulator, against the recordings,', () => {
  const root = folder ?? '';
  let world: World;
  let markets: unknown[];

  beforeAll(() => {
    world = new World(worldOptions({ seed: SEED, nowSecond: NOW, historyHours: 1, rollingSeconds: 120 }, NOW));
    world.playHistory();
    for (let at = 0; at < 900; at += 1) world.step();
    markets = world.markets
      .filter((market) => market.phase !== 'scheduled')
      .map((market) =>
        sent(gammaMarket(market, world.siblingsOf(market), { seed: SEED, second: world.second, rate: 0.05 })),
      );
  });

  function recordedShape(file: string): Set<string> {
    const { shape } = readRecordedJson(join(root, 'shapes_2026-06', file)) as { shape: string[] };
    return new Set(shape);
  }

  /** Real Gamma markets of every age. */
  function recordedGammaMarkets(): unknown[] {
    const event = readRecordedJson(join(root, '2026-05_fed_event/gamma-event.json')) as { markets: unknown[] };
    const lines = readRecordedLines(join(root, '2026-07_btc5m_markets/BTC-5m-markets-2026-07-24.jsonl.gz'));
    return [
      ...event.markets,
      ...lines.map((line) => (line as { raw: unknown }).raw),
      ...(readRecordedJson(join(root, '2026-06_drmanhattan/polymarket_markets.json')) as unknown[]),
      ...listRecordedFiles(join(root, 'nautilus_rust'))
        .filter((file) => file.startsWith('gamma_market'))
        .map((file) => readRecordedJson(join(root, 'nautilus_rust', file))),
    ];
  }

  it('has no Gamma field that is missing in the recordings, and none with another type', () => {
    const known = recordedShape('gamma__markets.json');
    // Newer than the recordings: see the schema of the official package in test/conformance/official-packages.
    known.add('$[].version:str');
    for (const market of recordedGammaMarkets()) for (const item of shapeOf(market, '$[]')) known.add(item);
    const ours = [...new Set(markets.flatMap((market) => [...shapeOf(market, '$[]')]))];
    expect(ours.filter((item) => !known.has(item))).toEqual([]);
  });

  it('has the Gamma fields of every recorded market of 2026', () => {
    const lines = readRecordedLines(join(root, '2026-07_btc5m_markets/BTC-5m-markets-2026-07-24.jsonl.gz'));
    const event = readRecordedJson(join(root, '2026-05_fed_event/gamma-event.json')) as { markets: object[] };
    const recent = [...event.markets, ...lines.map((line) => (line as { raw: object }).raw)];
    const common = Object.keys(recent[0] ?? {}).filter((key) => recent.every((market) => key in market));
    expect(common.length).toBeGreaterThan(50);
    for (const market of markets) expect(common.filter((key) => !(key in (market as object)))).toEqual([]);
  });

  it('omits fields that a new market lacks, and keeps stale quotes after the close', () => {
    const closed = markets.filter((market) => (market as { closed: boolean }).closed);
    expect(closed.length).toBeGreaterThan(2);
    for (const market of closed as Record<string, unknown>[]) {
      expect(market['outcomePrices']).toMatch(/^\["[01]", "[01]"\]$/);
      expect(market['umaResolutionStatus']).toBe('resolved');
      expect(market['closedTime']).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\+00$/);
      expect(market['acceptingOrders']).toBe(false);
      expect(market['active']).toBe(true);
    }
    expect(closed.some((market) => 'bestBid' in (market as object))).toBe(true);
    const untraded = markets.filter((market) => !('volume' in (market as object))) as object[];
    for (const market of untraded)
      expect(Object.keys(market).filter((key) => /^volume|lastTrade/.test(key))).toEqual([]);
  });

  it('has lists as text, and numbers beside their text forms', () => {
    for (const market of markets as Record<string, string>[]) {
      const tokenIds = JSON.parse(market['clobTokenIds'] ?? '') as string[];
      expect(tokenIds).toEqual([expect.stringMatching(/^\d{77}$/), expect.stringMatching(/^\d{77}$/)]);
      expect(market['clobTokenIds']).toBe(`["${tokenIds[0]}", "${tokenIds[1]}"]`);
      expect(Number(market['liquidity'])).toBe(market['liquidityNum']);
      if ('volume' in market) expect(Number(market['volume'])).toBe(market['volumeNum']);
    }
  });

  it('has outcomes of protocol V2 that consist of their condition and one byte, in a plain list', () => {
    const ofVersion = (version: string) =>
      (markets as Record<string, unknown>[]).filter((market) => market['version'] === version);
    for (const market of ofVersion('v1')) {
      expect(market['conditionId']).toMatch(/^0x[0-9a-f]{64}$/);
      expect(market).not.toHaveProperty('positionIds');
    }
    expect(ofVersion('v2').length).toBeGreaterThan(2);
    for (const { conditionId, positionIds, clobTokenIds } of ofVersion('v2') as Record<string, string>[]) {
      expect(conditionId).toMatch(/^0x01[0-9a-f]{60}$/);
      expect(positionIds).toEqual([0, 1].map((index) => BigInt(`${conditionId}0${index}`).toString()));
      expect(clobTokenIds).not.toContain(positionIds?.[0]);
    }
  });

  it('has books of the recorded shape, with the prices in the recorded order', () => {
    const shapes = world.markets
      .filter((market) => market.isTrading)
      .map((market) => [...shapeOf(sent(clobBook(market, 0)))].sort());
    const known = [...recordedShape('clob__book.json')].sort();
    expect(shapes.length).toBeGreaterThan(10);
    for (const shape of shapes) expect(shape).toEqual(known);

    const recorded = readRecordedJson(join(root, '2026-05_fed_event/clob-books.json')) as Book[];
    const ours = world.markets.map((market) => sent(clobBook(market, 1)) as Book);
    for (const book of [...recorded, ...ours]) {
      expect(isAscending(book.bids.map(({ price }) => Number(price)))).toBe(true);
      expect(isAscending(book.asks.map(({ price }) => -Number(price)))).toBe(true);
      expect(book.timestamp).toMatch(/^\d{13}$/);
      expect(book.hash).toMatch(/^[0-9a-f]{40}$/);
    }
  });

  it('has CLOB markets and trades of the recorded shape', () => {
    const marketShape = new Set(world.markets.flatMap((market) => [...shapeOf(sent(clobMarket(market, SEED)))]));
    const knownMarket = recordedShape('clob__markets_condition_id.json');
    expect([...marketShape].filter((item) => !knownMarket.has(item))).toEqual([]);

    const trades = world.tape.from(0, 500).flatMap((trade) => {
      const market = world.markets[trade.marketNo];
      return market === undefined
        ? []
        : (['taker', 'maker'] as const).map((role) => dataTrade(trade, market, role, { seed: SEED, second: 0 }));
    });
    expect(trades.length).toBeGreaterThan(100);
    const real = readRecordedJson(join(root, 'data_api_v2_2026-09/trades.json')) as object[];
    expect([...shapeOf(sent(trades))].sort()).toEqual([...shapeOf(real)].sort());
    expect(Object.keys(trades[0] ?? {})).toEqual(Object.keys(real[0] ?? {}));
  });
});

interface Book {
  bids: { price: string }[];
  asks: { price: string }[];
  timestamp: string;
  hash: string;
}

function isAscending(values: number[]): boolean {
  return values.every((value, at) => at === 0 || value > (values[at - 1] ?? 0));
}
