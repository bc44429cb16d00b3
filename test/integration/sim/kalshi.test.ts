import { beforeAll, describe, expect, it } from 'vitest';
import type { LedgerRow } from '../../../sim/exchange.ts';
import { tickerOf } from '../../../sim/kalshi/wire.ts';
import { type Decimal, decimal, ONE, subtractDecimals } from '../../../src/domain/values/decimal.ts';
import { parsePreciseVenueTimeMs } from '../../../src/venues/venue-time.ts';
import { compareTrades } from '../../support/laws/trade-order.ts';
import { NOW, useHttpExchange } from './http-exchange.ts';

interface KalshiMarket {
  ticker: string;
  title: string;
  yes_sub_title: string;
  event_ticker: string;
  close_time: string;
  status: string;
  settlement_ts?: string;
}
interface KalshiTrade {
  trade_id: string;
  ticker: string;
  count_fp: string;
  yes_price_dollars: string;
  taker_side: string;
  created_time: string;
}
interface Page {
  cursor: string;
  markets: KalshiMarket[];
  trades: KalshiTrade[];
  events: { event_ticker: string; markets: KalshiMarket[] }[];
}
interface Candle {
  end_period_ts: number;
  price: Record<string, string | null>;
  volume_fp?: string;
  volume?: string;
}

const LIVE_HOURS = 0.5;
const CUTOFF = NOW - LIVE_HOURS * 3600;

const { http, exchange } = useHttpExchange(
  {
    kalshiLiveHours: LIVE_HOURS,
    kalshiUnopened: true,
    deepMarkets: 1,
    deepPrints: 300,
  },
  200,
);
let ledger: readonly LedgerRow[];
beforeAll(() => {
  ledger = exchange.ledger().trades;
});

/** All pages of a listing. */
async function all<K extends 'markets' | 'trades' | 'events'>(path: string, what: K): Promise<Page[K][number][]> {
  const found: Page[K][number][] = [];
  let cursor = '';
  do {
    const joint = path.includes('?') ? '&' : '?';
    const page = await http.get<Page>(http.kalshi(`${path}${cursor === '' ? '' : `${joint}cursor=${cursor}`}`));
    found.push(...page[what]);
    ({ cursor } = page);
  } while (cursor !== '');
  return found;
}

const ledgerOf = (conditionId: string) => ledger.filter((row) => row.conditionId === conditionId);
const second = (trade: KalshiTrade) => Math.floor(Date.parse(trade.created_time) / 1000);

function toOrdered(trade: KalshiTrade) {
  return {
    tradeId: trade.trade_id,
    tsMs: parsePreciseVenueTimeMs(trade.created_time) ?? 0,
    price: decimal(trade.yes_price_dollars),
    side: trade.taker_side === 'yes' ? ('buy' as const) : ('sell' as const),
  };
}

function priceOfYes({ outcomeIndex, price }: LedgerRow): Decimal {
  return outcomeIndex === 0 ? decimal(price) : subtractDecimals(ONE, decimal(price));
}

function pricesByStamp(trades: readonly ReturnType<typeof toOrdered>[]): Map<number, Decimal[]> {
  const found = new Map<number, Decimal[]>();
  for (const { tsMs, price } of trades) found.set(tsMs, [...(found.get(tsMs) ?? []), price]);
  return found;
}

/** The market with the longest past. */
function deepest(): { conditionId: string; ticker: string } {
  const market = exchange.state().markets.find((each) => each.conditionId === ledger[0]?.conditionId);
  if (market === undefined) throw new Error('no market');
  return { conditionId: market.conditionId, ticker: tickerOf(market) };
}

it('Kalshi lists the markets of a window of close times by close time, page by page', async () => {
  const everything = (await all('/markets?mve_filter=exclude', 'markets')).map(({ ticker, close_time }) => ({
    ticker,
    second: Date.parse(close_time) / 1000,
  }));
  const seconds = everything.map(({ second }) => second).sort((a, b) => a - b);
  const [from = 0, to = 0] = [seconds[5], seconds[30]];
  const path = `/markets?mve_filter=exclude&limit=4&min_close_ts=${from}&max_close_ts=${to}`;
  const window = await all(path, 'markets');
  const expected = everything.filter((each) => each.second >= from && each.second <= to);
  expect(window.map(({ ticker }) => ticker).sort()).toEqual(expected.map(({ ticker }) => ticker).sort());
  const closes = window.map(({ close_time }) => close_time);
  expect(closes).toEqual(closes.toSorted());
});

it.each([
  ['markets', 1000],
  ['events', 200],
  ['events/multivariate', 200],
  ['markets/trades', 1000],
  ['historical/markets', 1000],
  ['historical/trades', 1000],
])('Kalshi refuses a limit of %s above %i', async (path, most) => {
  await http.get(http.kalshi(`/${path}?limit=${most}`));
  await http.get(http.kalshi(`/${path}?limit=${most + 1}`), 400);
  await http.get(http.kalshi(`/${path}?limit=2000`), 400);
});

it('Kalshi serves batches, not a market or an event of their names', async () => {
  const { ticker } = deepest();
  const window = `start_ts=${NOW - 1800}&end_ts=${NOW}&period_interval=1`;
  const [series] = ticker.split('-');
  const single = await http.get<{ candlesticks: Candle[] }>(
    http.kalshi(`/series/${series}/markets/${ticker}/candlesticks?${window}`),
  );
  const batch = await http.get<{ markets: { market_ticker: string; candlesticks: Candle[] }[] }>(
    http.kalshi(`/markets/candlesticks?market_tickers=${ticker},UNKNOWN&${window}`),
  );
  expect(single.candlesticks.length).toBeGreaterThan(0);
  expect(batch.markets).toEqual([{ market_ticker: ticker, candlesticks: single.candlesticks }]);
  const combinations = await http.get<Page>(http.kalshi('/events/multivariate?with_nested_markets=true'));
  const { markets } = await http.get<Page>(http.kalshi('/markets?mve_filter=only'));
  expect(combinations.events.flatMap((event) => event.markets)).toEqual(markets);
  expect(markets.length).toBeGreaterThan(0);
  expect(await http.get(http.kalshi('/series/fee_changes'))).toEqual({ series_fee_change_arr: [] });
  expect(await http.get(http.kalshi('/events/fee_changes'))).toEqual({ cursor: '', event_fee_changes: [] });
});

it('Kalshi siblings share a title and differ in their label', async () => {
  const events = await all('/events?with_nested_markets=true', 'events');
  const groups = events.filter(({ markets }) => markets.length > 1);
  expect(groups.length).toBeGreaterThan(0);
  for (const { markets } of groups) {
    expect(new Set(markets.map(({ title }) => title)).size).toBe(1);
    expect(new Set(markets.map(({ yes_sub_title }) => yes_sub_title)).size).toBe(markets.length);
  }
});

describe('Kalshi trades of one market', () => {
  it('are split by the cutoff into the live and the historical route, and complete together', async () => {
    const { conditionId, ticker } = deepest();
    const live = await all(`/markets/trades?ticker=${ticker}&limit=70`, 'trades');
    const old = await all(`/historical/trades?ticker=${ticker}&limit=70`, 'trades');
    expect(live.length).toBeGreaterThan(0);
    expect(old.length).toBeGreaterThanOrEqual(300);
    expect(Math.min(...live.map(second))).toBeGreaterThanOrEqual(CUTOFF);
    expect(Math.max(...old.map(second))).toBeLessThan(CUTOFF);
    const seconds = [...live, ...old].map(second);
    expect(seconds).toEqual(
      ledgerOf(conditionId)
        .map((row) => row.timestamp)
        .toReversed(),
    );
    expect(new Set([...live, ...old].map((trade) => trade.trade_id)).size).toBe(seconds.length);
  });

  it('of one order share a microsecond and have descending ids; the order of a sweep reproduces their sequence', async () => {
    const ties = { orders: 0, listedOtherwise: 0 };
    for (const market of exchange.state().markets.slice(0, 6)) {
      const path = `trades?ticker=${tickerOf(market)}&limit=41`;
      const listed = [...(await all(`/markets/${path}`, 'trades')), ...(await all(`/historical/${path}`, 'trades'))];
      const places = listed.map(({ created_time: stamp, trade_id: id }) => {
        return `${stamp.slice(0, 19)} ${stamp.slice(20, -1).padEnd(6, '0')} ${id}`;
      });
      expect(places).toEqual(places.toSorted().toReversed());
      const ordered = listed.map(toOrdered).sort(compareTrades);
      expect(ordered.map(({ price }) => price)).toEqual(ledgerOf(market.conditionId).map(priceOfYes));
      const listedByStamp = pricesByStamp(listed.map(toOrdered).toReversed());
      for (const [stamp, prices] of pricesByStamp(ordered)) {
        if (new Set(prices).size === 1) continue;
        ties.orders += 1;
        if (prices.join() !== listedByStamp.get(stamp)?.join()) ties.listedOtherwise += 1;
      }
    }
    expect(ties.orders).toBeGreaterThan(10);
    expect(ties.listedOtherwise).toBeGreaterThan(0);
  });

  it('are filtered by a window of seconds, both ends included', async () => {
    const { conditionId, ticker } = deepest();
    const times = ledgerOf(conditionId).map((row) => row.timestamp);
    const [from, to] = [times[50] ?? 0, times[150] ?? 0];
    const found = await all(`/historical/trades?ticker=${ticker}&min_ts=${from}&max_ts=${to}`, 'trades');
    expect(found.map(second)).toEqual(times.filter((time) => time >= from && time <= to).toReversed());
  });

  it('are empty for an unknown ticker', async () => {
    expect(await http.get(http.kalshi('/markets/trades?ticker=KXNONE-1'))).toEqual({ cursor: '', trades: [] });
  });

  it('have a cutoff route', async () => {
    const { trades_created_ts, market_settled_ts } = await http.get<Record<string, string>>(
      http.kalshi('/historical/cutoff'),
    );
    expect(Date.parse(trades_created_ts ?? '') / 1000).toBe(CUTOFF);
    expect(market_settled_ts).toBe(trades_created_ts);
  });
});

describe('Kalshi markets', () => {
  it('are on the historical route only when settled before the cutoff', async () => {
    const live = await all('/markets?limit=7&mve_filter=exclude', 'markets');
    const old = await all('/historical/markets?limit=2', 'markets');
    expect(old.length).toBeGreaterThan(0);
    for (const market of old) expect(Date.parse(market.settlement_ts ?? '') / 1000).toBeLessThan(CUTOFF);
    const { ticker = '' } = old[0] ?? {};
    expect(live.map((market) => market.ticker)).not.toContain(ticker);
    expect(await http.get<Page>(http.kalshi(`/markets?tickers=${ticker}`))).toMatchObject({ markets: [] });
    expect(await http.get<Page>(http.kalshi(`/historical/markets?tickers=${ticker},KX-NONE`))).toMatchObject({
      markets: [{ ticker, status: 'finalized' }],
    });
    await http.get(http.kalshi(`/markets/${ticker}`), 404);
    await http.get(http.kalshi(`/historical/markets/${ticker}`));
    const known = await all('/events?with_nested_markets=true', 'events');
    expect(known.flatMap((event) => event.markets.map((market) => market.ticker)).sort()).toEqual(
      live.map((market) => market.ticker).sort(),
    );
  });

  it('are found by their tickers, without unknown ones', async () => {
    const [first, second] = await all('/markets?status=open', 'markets');
    const path = `/markets?tickers=${second?.ticker},KX-NONE,${first?.ticker}`;
    const { markets } = await http.get<Page>(http.kalshi(path));
    expect(markets.map((market) => market.ticker)).toEqual([first?.ticker, second?.ticker]);
  });

  it.each([
    ['unopened', ['initialized']],
    ['open', ['active']],
    ['paused', ['inactive']],
    ['closed', ['determined', 'disputed']],
    ['settled', ['finalized']],
  ])('pass the filter %s with the field values %j', async (filter, statuses) => {
    const halted = exchange.state().markets.find((market) => market.phase === 'open' && !market.negRisk);
    if (filter === 'paused') exchange.steer({ conditionId: halted?.conditionId ?? '', action: 'halt' });
    const closing = exchange.state().markets.find((market) => market.phase === 'open' && !market.halted);
    if (filter === 'closed') exchange.steer({ conditionId: closing?.conditionId ?? '', action: 'close' });
    const found = await all(`/markets?status=${filter}`, 'markets');
    expect(found.length).toBeGreaterThan(0);
    for (const market of found) expect(statuses).toContain(market.status);
  });

  it('reject field values as filters', async () => {
    await http.get(http.kalshi('/markets?status=finalized'), 400);
    await http.get(http.kalshi('/events?status=paused'), 400);
  });

  it.each([
    '/markets?min_updated_ts=1',
    '/markets?min_updated_ts=1&mve_filter=exclude&status=open',
    '/markets?min_close_ts=1&min_settled_ts=1',
    '/markets?min_close_ts=1&status=settled',
    '/markets?min_settled_ts=1&status=open',
    '/markets?mve_filter=none',
    '/markets?ticker=A',
    '/markets/orderbooks?tickers=A&depth=1',
    '/markets/trades?tickers=A',
    '/historical/markets?status=settled',
    '/historical/trades?status=open',
    '/series?limit=1',
    '/events/KXSIMEVENT-1?status=open',
  ])('reject incompatible filters and undocumented parameters: %s', async (path) => {
    await http.get(http.kalshi(path), 400);
  });
});

describe('Kalshi combinations', () => {
  it('are among the markets unless excluded, with their legs', async () => {
    const every = await all('/markets?limit=7', 'markets');
    const plain = await all('/markets?limit=7&mve_filter=exclude', 'markets');
    const combinations = await all('/markets?mve_filter=only', 'markets');
    expect(combinations.length).toBe(3);
    expect(every).toEqual([...plain, ...combinations]);
    const known = new Set(plain.map((market) => market.ticker));
    for (const market of combinations as (KalshiMarket & { mve_selected_legs: { market_ticker: string }[] })[]) {
      expect(market.ticker).toMatch(/^KXMVESIM-/);
      expect(known.has(market.ticker)).toBe(false);
      expect(market.mve_selected_legs.length).toBe(2);
    }
    const [first] = combinations;
    expect(await all(`/markets?tickers=${first?.ticker}`, 'markets')).toEqual([first]);
    expect(await http.get(http.kalshi(`/markets/${first?.ticker}`))).toEqual({ market: first });
    const book = { no_dollars: [['0.8120', '369.00']], yes_dollars: [] };
    expect(await http.get(http.kalshi(`/markets/orderbooks?tickers=${first?.ticker}&tickers=KX-NONE`))).toEqual({
      orderbooks: [
        { ticker: first?.ticker, orderbook_fp: book },
        { ticker: 'KX-NONE', orderbook_fp: { yes_dollars: [], no_dollars: [] } },
      ],
    });
  });

  it('are printed on the tape of all markets, for any page size, and on their own', async () => {
    const tape = await all('/markets/trades?limit=211', 'trades');
    expect(await all('/markets/trades?limit=1000', 'trades')).toEqual(tape);
    expect(new Set(tape.map((trade) => trade.trade_id)).size).toBe(tape.length);
    const printed = tape.filter((trade) => trade.ticker.startsWith('KXMVESIM-'));
    expect(printed.length).toBeGreaterThan(3);
    expect(tape.length - printed.length).toBe(ledger.filter((row) => row.timestamp >= CUTOFF).length);
    const [first] = printed;
    const own = await all(`/markets/trades?ticker=${first?.ticker}&limit=97`, 'trades');
    expect(own).toEqual(printed.filter((trade) => trade.ticker === first?.ticker));
  });
});

describe('Kalshi events and series', () => {
  it('are found by their tickers, several at once', async () => {
    const [a, b, c] = await all('/events?limit=3', 'events');
    expect(await all(`/events?tickers=${c?.event_ticker},KX-NONE,${a?.event_ticker}`, 'events')).toEqual([a, c]);
    expect(b).toBeDefined();
  });

  it('give an event each status of its markets', async () => {
    const statuses = ['unopened', 'open', 'closed', 'settled'];
    const words: Record<string, string> = {
      initialized: 'unopened',
      active: 'open',
      inactive: 'open',
      determined: 'closed',
      disputed: 'closed',
      finalized: 'settled',
    };
    const listed = new Map<string, Set<string>>();
    for (const status of statuses) {
      for (const { event_ticker } of await all(`/events?status=${status}`, 'events')) {
        listed.set(event_ticker, (listed.get(event_ticker) ?? new Set()).add(status));
      }
    }
    const events = await all('/events?with_nested_markets=true', 'events');
    expect([...listed.values()].some((each) => each.size > 1)).toBe(true);
    for (const { event_ticker, markets } of events) {
      const own = new Set(markets.map((market) => words[market.status]));
      expect([...(listed.get(event_ticker) ?? [])]).toEqual(expect.arrayContaining([...own]));
    }
  });

  it('give a series its categories and tags, or null', async () => {
    interface Series {
      ticker: string;
      category: string;
      categories: string[];
      tags: string[] | null;
    }
    const { series } = await http.get<{ series: Series[] }>(http.kalshi('/series'));
    expect(series.map(({ ticker, category, categories, tags }) => [ticker, category, categories, tags])).toEqual([
      ['KXSIM', 'Simulated', ['Simulated', 'Exercises'], ['Simulation']],
      ['KXSIMUNTAGGED', 'Climate and Weather', ['Climate and Weather'], null],
      ['KXSIMTWOTAGS', 'Sports', ['Sports'], ['Baseball', 'Tennis']],
    ]);
    expect(await http.get(http.kalshi('/series?category=Exercises'))).toEqual({ series: [series[0]] });
    expect(await http.get(http.kalshi('/series/KXSIM'))).toEqual({ series: series[0] });
    expect(await http.get(http.kalshi('/series?category=Sports'))).toEqual({ series: [series[2]] });
    expect(await http.get(http.kalshi(`/series?min_updated_ts=${NOW}`))).toEqual({ series: [] });
    await http.get(http.kalshi('/series/KX-NONE'), 404);
  });
});

describe('Kalshi candlesticks', () => {
  const path = (ticker: string, minutes: number, from: number, to: number) =>
    `/series/KXSIM/markets/${ticker}/candlesticks?period_interval=${minutes}&start_ts=${from}&end_ts=${to}`;
  const read = async (address: string) =>
    (await http.get<{ candlesticks: Candle[] }>(http.kalshi(address))).candlesticks;

  it.each([1, 60])(
    'of %i minutes fold the market’s prints, and carry the price over empty periods',
    async (minutes) => {
      const { conditionId, ticker } = deepest();
      const step = minutes * 60;
      const from = Math.floor((NOW - 2 * 3600) / step) * step;
      const candles = await read(path(ticker, minutes, from, NOW));
      expect(candles.map((candle) => candle.end_period_ts)).toEqual(
        Array.from({ length: Math.floor((NOW - from) / step) + 1 }, (_, index) => from + index * step),
      );
      const prints = ledgerOf(conditionId);
      let previous = yesPrice(prints.filter((row) => row.timestamp < from - step).at(-1));
      let empty = 0;
      for (const { end_period_ts: end, price, volume_fp } of candles) {
        const inside = prints.filter((row) => row.timestamp >= end - step && row.timestamp < end);
        const prices = inside.map(yesPrice).map(Number);
        expect(price['previous_dollars']).toBe(previous);
        expect(Number(volume_fp)).toBeCloseTo(
          inside.reduce((sum, row) => sum + Number(row.size), 0),
          6,
        );
        if (inside.length === 0) {
          expect(Object.keys(price)).toEqual(['previous_dollars']);
          expect(volume_fp).toBe('0.00');
          empty += 1;
          continue;
        }
        previous = yesPrice(inside.at(-1));
        expect([price['open_dollars'], price['close_dollars']]).toEqual([yesPrice(inside[0]), previous]);
        expect(Number(price['high_dollars'])).toBeCloseTo(Math.max(...prices), 9);
        expect(Number(price['low_dollars'])).toBeCloseTo(Math.min(...prices), 9);
      }
      if (minutes === 1) expect(empty).toBeGreaterThan(0);
    },
  );

  it('of a day end at midnight in New York', async () => {
    const { ticker } = deepest();
    const ends = (await read(path(ticker, 1440, NOW - 4 * 86_400, NOW + 86_400))).map((candle) => candle.end_period_ts);
    const hour = new Intl.DateTimeFormat('en-US', { timeZone: 'America/New_York', timeStyle: 'short' });
    expect(ends).toHaveLength(5);
    expect(new Set(ends.map((end) => hour.format(end * 1000)))).toEqual(new Set(['12:00 AM']));
  });

  it('of an archived market have other names, and null without a print', async () => {
    const [old] = await all('/historical/markets', 'markets');
    const window = `period_interval=1&start_ts=${NOW - 3600}&end_ts=${NOW}`;
    await http.get(http.kalshi(`/series/KXSIM/markets/${old?.ticker}/candlesticks?${window}`), 404);
    const candles = await read(`/historical/markets/${old?.ticker}/candlesticks?${window}`);
    const traded = candles.find((candle) => candle.price['open'] !== null);
    expect(Object.keys(traded?.price ?? {}).sort()).toEqual(['close', 'high', 'low', 'mean', 'open', 'previous']);
    expect(Number(traded?.volume)).toBeGreaterThan(0);
    expect(candles.find((candle) => candle.price['open'] === null)).toMatchObject({ volume: '0.00' });
  });

  it('reject another period, another series and a reversed window', async () => {
    const { ticker } = deepest();
    await http.get(http.kalshi(path(ticker, 5, NOW - 60, NOW)), 400);
    await http.get(http.kalshi(path(ticker, 1, NOW, NOW - 60)), 400);
    await http.get(http.kalshi(path(ticker, 1, NOW - 60, NOW).replace('KXSIM', 'KXOTHER')), 404);
  });
});

function yesPrice(row: { outcomeIndex: number; price: string } | undefined): string | undefined {
  if (row === undefined) return undefined;
  const price = Number(row.price);
  return (row.outcomeIndex === 0 ? price : 1 - price).toFixed(4);
}
