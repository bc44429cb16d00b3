import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { MarketRecord, TradeRecord } from '../../../src/domain/markets/market.ts';
import { writeMarkets } from '../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { foldCandles } from '../../../src/store/series/candles.ts';
import { writeTrades } from '../../../src/store/series/trades.ts';
import { parseCandlesticks } from '../../../src/venues/kalshi/fetch-candlesticks.ts';
import type { Page } from '../../../src/venues/port.ts';
import { startSimulatedKalshi } from '../../conformance/venue-adapter/kalshi-exchange.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { storedCandles } from '../../factories/stored-series.ts';
import { aTrade } from '../../factories/trades.ts';
import { drain } from '../../support/drain.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { readRecordedJson, venueDataFolder } from '../../support/venue-data.ts';
import { oddswire } from './run-command.ts';

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.drop());

interface Outcome {
  code: number | string;
  out: string;
  err: string;
}

async function audit(args: readonly string[], environment: Record<string, string> = {}): Promise<Outcome> {
  const {
    code,
    stdout: out,
    stderr: err,
  } = await oddswire(['audit', ...args], { DATABASE_URL: test.url, ...environment });
  return { code, out, err };
}

async function fold(): Promise<void> {
  await drain(test.db, 'fold-candles', { limit: 100_000, order: 'oldest' }, foldCandles);
}

const SWEPT = sql(
  'audit_test_swept',
  `SELECT venue_market_id AS ticker FROM (
     SELECT token_id, date_trunc('minute', ts), (array_agg(price ORDER BY ts, trade_id))[1] AS by_id,
       (array_agg(price ORDER BY ts, price * side))[1] AS by_sweep
     FROM trade GROUP BY 1, 2
     UNION ALL
     SELECT token_id, date_trunc('minute', ts), (array_agg(price ORDER BY ts DESC, trade_id DESC))[1],
       (array_agg(price ORDER BY ts DESC, price * side DESC))[1]
     FROM trade GROUP BY 1, 2) minute JOIN outcome USING (token_id) JOIN market m ON m.id = market_id
   WHERE by_id <> by_sweep GROUP BY 1 ORDER BY count(*) DESC LIMIT 5`,
);

/** Markets with minutes that would open or close at other prices if ids ordered the fills of one order. */
async function sweptTickers(): Promise<string[]> {
  return (await test.db.query<{ ticker: string }>(SWEPT)).map(({ ticker }) => ticker);
}

async function allPages<R>(next: (position: unknown) => Promise<Page<R>>): Promise<R[]> {
  const records: R[] = [];
  let position: unknown = null;
  for (;;) {
    const page = await next(position);
    records.push(...page.records);
    if (!page.more) return records;
    position = page.position;
  }
}

describe('oddswire audit', () => {
  it('ends with 2 and its usage on wrong arguments, with 1 without a database', async () => {
    const wrong = await audit(['books', '--venue', 'nasdaq']);
    expect(wrong).toMatchObject({ code: 2, out: '' });
    expect(wrong.err).toContain('--venue must be one of polymarket, kalshi, manifold');
    expect(wrong.err).toContain('usage: oddswire audit');
    const away = await audit(['candles', '--venue', 'kalshi'], {
      DATABASE_URL: 'postgres://u:geheim@127.0.0.1:1/none',
    });
    expect(away.code).toBe(1);
    expect(away.err).toMatch(/^oddswire audit: the database of DATABASE_URL does not answer: .*ECONNREFUSED/);
    expect(away.err).not.toContain('geheim');
  });

  it.each([[], ['--json'], ['--against', 'venue']])(
    'ends with 1 for a market that does not exist (%s)',
    async (...more) => {
      const missing = await audit(['candles', '--venue', 'kalshi', '--market', 'KX-NOTHING', ...more]);
      expect(missing).toEqual({ code: 1, out: '', err: 'oddswire audit: kalshi has no market KX-NOTHING\n' });
    },
  );

  it('says that it compared nothing, and ends with 3, without trades and without candles', async () => {
    const empty = await audit(['candles', '--venue', 'manifold', '--json']);
    expect([empty.code, JSON.parse(empty.out)]).toEqual([
      3,
      { differences: [], found: 0, outcomes: 0, compared: 0, repaired: false },
    ]);
    await aStoredMarket(test.db, { venue: 'manifold' });
    const untraded = await audit(['candles', '--venue', 'manifold']);
    expect(untraded).toMatchObject({ code: 3, out: '' });
    expect(untraded.err).toBe(
      'nothing was compared: 2 outcomes have no trades or candles in this range, or these wait for a fold\n',
    );
  });

  it('says that it compared nothing when all trades wait for a fold', async () => {
    const market = await aStoredMarket(test.db, { venue: 'limitless' });
    const tsMs = Date.now() - 3_600_000;
    await new Partitions(test.db).ensure('trade', [tsMs]);
    const trade = aTrade({ outcomeId: market.outcomes[0]?.outcomeId ?? '', tsMs });
    await test.db.transaction((tx) => writeTrades(tx, [trade], 'USD'));
    expect(await audit(['candles', '--venue', 'limitless'])).toMatchObject({ code: 3, out: '' });
    await fold();
    const folded = await audit(['candles', '--venue', 'limitless']);
    expect(folded).toMatchObject({
      code: 0,
      err: expect.stringMatching(/^[1-9]\d* candles of 2 outcomes compared, 0 differ\n$/),
    });
  });

  it('finds candles of a simulated Kalshi equal to its candlesticks when orders sweep several prices, and a broken candle in both ways', async () => {
    const venue = await startSimulatedKalshi();
    const adapter = venue.createAdapter();
    try {
      const context = { signal: new AbortController().signal, now: () => venue.now() };
      await venue.trade();
      await venue.rest();
      const markets = await allPages<MarketRecord>((position) => adapter.pollMarkets(position, context));
      const trades = await allPages<TradeRecord>((position) => adapter.pollTrades(position, context));
      const partitions = new Partitions(test.db);
      await partitions.ensure(
        'trade',
        trades.map(({ tsMs }) => tsMs),
      );
      await partitions.ensureAroundNow('price_history');
      await test.db.transaction((tx) => writeMarkets(tx, 'kalshi', 'USD', markets, venue.now()));
      await test.db.transaction((tx) => writeTrades(tx, trades, 'USD'));
      await fold();

      const ticker = trades[0]?.outcomeId.split(':')[0] ?? '';
      const second = Math.floor(venue.now() / 1000);
      const range = ['--from', String(second - 7_200), '--to', String(second + 3_600)];
      const whole = ['candles', '--venue', 'kalshi', ...range];
      const against = [...whole, '--market', ticker, '--against', 'venue'];
      const environment = { KALSHI_API_URL: venue.exchange.kalshiUrl };
      expect(await audit(whole)).toMatchObject({ code: 0, out: '' });
      const clean = await audit([...whole, '--json']);
      expect([clean.code, JSON.parse(clean.out)]).toEqual([
        0,
        {
          differences: [],
          found: 0,
          outcomes: expect.any(Number),
          compared: expect.any(Number),
          repaired: false,
        },
      ]);
      const swept = await sweptTickers();
      expect(swept.length).toBeGreaterThan(2);
      for (const each of new Set([ticker, ...swept])) {
        const same = await audit([...whole, '--market', each, '--against', 'venue'], environment);
        expect(same).toMatchObject({ code: 0, out: '' });
        expect(same.err).toMatch(/^[1-9]\d* candles of 1 min compared, 0 fields differ\n[1-9]\d* candles of 60 min/);
      }

      await test.db.query(
        sql(
          'audit_test_break',
          `UPDATE candle SET high = 0.999 WHERE interval_seconds = 60 AND (token_id, bucket) IN (
             SELECT token_id, min(bucket) FROM candle JOIN outcome USING (token_id) JOIN market m ON m.id = market_id
             WHERE venue_market_id = $1 AND interval_seconds = 60 GROUP BY token_id) RETURNING bucket`,
        ),
        [ticker],
      );
      const found = await audit([...whole, '--market', ticker]);
      expect(found.code).toBe(1);
      expect(found.out).toMatch(new RegExp(`^${ticker} ${ticker}:yes 1m .*Z  high 0.999, trades say 0\\.\\d+\\n$`));
      const disagreement = await audit(against, environment);
      expect(disagreement).toMatchObject({ code: 1 });
      expect(disagreement.out).toMatch(/^\S+ 1 min \S+Z {2}high: ours 0.999, the venue's 0\.\d+\n$/);
      const repaired = await audit([...whole, '--json', '--repair']);
      expect([repaired.code, JSON.parse(repaired.out)]).toMatchObject([
        0,
        { differences: [{ market_id: ticker, interval: '1m', stored: { high: '0.999' } }], found: 1, repaired: true },
      ]);
      expect(await audit(whole)).toMatchObject({ code: 0, out: '' });
    } finally {
      await adapter.close();
      await venue.close();
    }
  });

  const recorded = venueDataFolder('kalshi');
  it.skipIf(recorded === undefined)('reads recorded candlesticks from a file', async () => {
    const path = join(recorded ?? '', '2026-08_cockpit', 'candlesticks_pregame_mlb.json');
    const answer = readRecordedJson(path) as {
      market: { ticker: string };
      candlesticks_response: { candlesticks: unknown[] };
    };
    const { ticker } = answer.market;
    const candles = parseCandlesticks(answer.candlesticks_response.candlesticks, 1);
    const market = await aStoredMarket(test.db, { venue: 'kalshi', marketId: ticker });
    const traded = candles.flatMap(({ start, open, high, low, close, volume }) =>
      open && high && low && close ? [{ bucket: start, open, high, low, close, volume }] : [],
    );
    expect(traded.length).toBeGreaterThan(0);
    await storedCandles(test.db, market.outcomes[0]?.tokenId ?? 0n, 60, traded.slice(1));
    const range = ['--from', String(candles[0]?.start), '--to', String((candles.at(-1)?.start ?? 0) + 60)];
    const found = await audit([
      'candles',
      '--venue',
      'kalshi',
      '--market',
      ticker,
      ...range,
      '--against',
      path,
      '--json',
    ]);
    expect(found.code).toBe(1);
    const result = JSON.parse(found.out) as { differences: { start: number; ours?: string }[]; found: number };
    expect(new Set(result.differences.map(({ start }) => start))).toEqual(new Set([traded[0]?.bucket]));
    expect(result.differences.every(({ ours }) => ours === undefined)).toBe(true);
    expect(result.found).toBe(result.differences.length);
  });
});
