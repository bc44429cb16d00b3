import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { TradeReread0035 } from '../../../src/store/db/migrations/0035-trade-reread.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { foldCandles } from '../../../src/store/series/candles.ts';
import { nextRereadMarket, readRereads } from '../../../src/store/series/trade-reread.ts';
import { countTradeHistories } from '../../../src/store/series/trade-walks.ts';
import { writeTrades } from '../../../src/store/series/trades.ts';
import { VenueError } from '../../../src/venues/errors.ts';
import { parseBets } from '../../../src/venues/manifold/parse-trade.ts';
import { readHistoryPage } from '../../../src/venues/manifold/walk-history.ts';
import type { HistoryRequest } from '../../../src/venues/port.ts';
import { backfillTrades } from '../../../workers/jobs/backfill-trades.ts';
import { wrongCandles } from '../../e2e/oracle.ts';
import { aStoredMarket, type TestMarket } from '../../factories/stored-market.ts';
import { scriptedAdapter } from '../../factories/venue-adapter.ts';
import { drain } from '../../support/drain.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { capturedLog, jobContext, testConfig, wakeRecorder } from './worker-harness.ts';

const NOW = Date.UTC(2026, 5, 15, 12);
const DAY_MS = 86_400_000;
const BETS = 9;
const PAGE_SIZE = 4;

interface Bet {
  id: string;
  contractId: string;
  createdTime: number;
  amount: number;
  shares: number;
  outcome: string;
  isRedemption: boolean;
}

const test = useTestDatabase();
let partitions: Partitions;
/** The bets that the venue serves, oldest first. */
let served: Bet[];
let made = 0;
beforeAll(async () => {
  partitions = new Partitions(test.db);
});
beforeEach(async () => {
  served = [];
  await run('clear', 'TRUNCATE trade_reread, mark, publish_mark, observation, trade, candle, poll_state');
  await run('clear_markets', `UPDATE market SET venue = 'former' WHERE venue = 'manifold'`);
});

const run = <Row>(name: string, text: string) => test.db.query<Row>(sql(`test_reread_${name}`, text));
const startPasses = () =>
  run(
    'passes',
    `INSERT INTO trade_reread (pass, venue, due_at, since_at, until_at, from_at, to_at)
     SELECT pass, 'manifold', due_at, since_at, until_at, since_at, until_at FROM (VALUES
       (1, now(), timestamptz '2021-01-01Z', to_timestamp(${NOW / 1000})),
       (2, now() + interval '1 day', to_timestamp(${NOW / 1000}), to_timestamp(${NOW / 1000}) + interval '1 day'))
       AS p (pass, due_at, since_at, until_at)`,
  );

/** A market whose stored prices are quotients of binary floats, as an earlier release computed them. */
async function aMarketOfFloats(): Promise<TestMarket> {
  const market = await aStoredMarket(test.db, { venue: 'manifold', marketId: `c${++made}`, hasBook: false });
  const bets = Array.from({ length: BETS }, (_, n): Bet => {
    // Two bets share each millisecond.
    const createdTime = NOW - DAY_MS + Math.floor(n / 2) * 20_000;
    const price = [0.07, 0.29, 0.57, 0.58, 0.73][n % 5] ?? 0;
    const shares = 46.5753 + n / 8;
    const common = { contractId: market.marketId, outcome: n % 2 === 0 ? 'YES' : 'NO', isRedemption: false };
    return {
      id: `${market.marketId}b${n}`,
      createdTime,
      amount: Number((price * shares).toFixed(12)),
      shares,
      ...common,
    };
  });
  served.push(...bets);
  const trades = bets.map((bet) => ({
    tradeId: bet.id,
    outcomeId: `${bet.contractId}:${bet.outcome.toLowerCase()}`,
    tsMs: bet.createdTime,
    price: decimal(bet.amount / bet.shares + 1e-16),
    size: decimal(bet.shares),
    side: 'buy' as const,
  }));
  const times = trades.map(({ tsMs }) => tsMs);
  await partitions.ensure('trade', times);
  await test.db.transaction((tx) => writeTrades(tx, trades, 'MANA'));
  await fold();
  await run('clear_marks', 'TRUNCATE mark, publish_mark');
  return market;
}

async function fold(): Promise<void> {
  await drain(test.db, 'fold-candles', { limit: 100_000, order: 'oldest' }, foldCandles);
}

/** The venue's route for the bets of a market, with the walk and the parser of the adapter. */
function adapter(fails?: (request: HistoryRequest) => void) {
  return scriptedAdapter({
    venue: 'manifold',
    async history(request, position) {
      fails?.(request);
      const { rows, ...page } = await readHistoryPage(request, position, NOW, { pageSize: PAGE_SIZE }, async (query) =>
        served
          .filter(({ contractId }) => contractId === query.contractId)
          .filter(
            ({ createdTime: at }) => at > (query.afterMs ?? 0) && at < (query.beforeMs ?? Number.POSITIVE_INFINITY),
          )
          .toReversed()
          .slice(0, query.limit),
      );
      const { records, rejected } = parseBets(rows, NOW);
      const ours = records.map((record) => ({ ...record, outcomeId: record.outcomeId.toLowerCase() }));
      return { records: ours, rejected, ...page };
    },
  });
}

const fields = () => ({ db: test.db, config: testConfig(test.url), partitions, now: () => NOW });
const backfill = (venue = adapter(), more: object = {}) =>
  backfillTrades.run({ venue: 'manifold' }, jobContext({ ...fields(), adapter: venue, ...more }));

const prices = async () => {
  const rows = await run<{ tradeId: string; price: string; size: string }>(
    'prices',
    'SELECT trade_id, price, size FROM trade ORDER BY trade_id',
  );
  return rows.map(({ tradeId, price, size }) => `${tradeId} ${decimal(price)} ${decimal(size)}`);
};
const exactPrices = (bets: readonly Bet[] = served) =>
  parseBets(bets, NOW)
    .records.map(({ tradeId, price, size }) => `${tradeId} ${price} ${size}`)
    .sort();
const marks = () => run<{ stage: string }>('marks', 'SELECT stage FROM mark');
const progress = async () => (await readRereads(test.db, ['manifold'])).get('manifold');

describe('a pass over stored trades', () => {
  it('corrects their prices and candles where the venue serves them, and nothing fires anew', async () => {
    await aMarketOfFloats();
    await aMarketOfFloats();
    const before = await prices();
    expect(before).not.toEqual(exactPrices());
    await startPasses();
    const producer = wakeRecorder();
    const { log, lines } = capturedLog();
    expect(await backfill(adapter(), { producer, log })).toMatchObject({ written: 0, rejected: 0 });
    expect(await prices()).toEqual(exactPrices());
    const changed = before.filter((line) => !exactPrices().includes(line)).length;
    expect(await progress()).toMatchObject({ isEnded: false, markets: 2, trades: changed, kept: 0 });
    // No observation, no mark of an alert, and no trade for a stream; the candles change, and readers of old trades learn it.
    expect(new Set((await marks()).map(({ stage }) => stage))).toEqual(new Set(['fold-candles']));
    expect(await run('observations', 'SELECT FROM observation')).toEqual([]);
    expect(
      await run('trade_marks', `SELECT kind FROM publish_mark WHERE kind <> (SELECT max(kind) FROM publish_mark)`),
    ).toEqual([]);
    expect(producer.woken).toContain('fold-candles');
    await fold();
    expect(await wrongCandles(test.db)).toEqual([]);
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual(['prices of stored trades read again']);
    expect(await countTradeHistories(test.db)).toEqual([]);
  });

  it('has no effect on exact prices', async () => {
    await aMarketOfFloats();
    await startPasses();
    await backfill();
    await fold();
    const before = await progress();
    await run('clear_again', 'TRUNCATE mark, publish_mark');
    await run('again', `UPDATE trade_reread SET ended_at = NULL, market_id = 0 WHERE pass = 1`);
    await backfill();
    expect([await marks(), await progress()]).toEqual([[], { ...before, markets: 2, endedAt: expect.any(Date) }]);
  });

  it('keeps and counts the trades that the venue does not serve, or serves with another size', async () => {
    await aMarketOfFloats();
    const gone = await aMarketOfFloats();
    const before = await prices();
    const [first, second] = served.slice(0, 2);
    served = served.filter(({ contractId, id }) => contractId !== gone.marketId && id !== first?.id);
    if (second) second.shares *= 2;
    await startPasses();
    await backfill();
    const kept = before.filter((line) =>
      [`${first?.id} `, `${second?.id} `, gone.marketId].some((of) => line.startsWith(of)),
    );
    expect(kept).toHaveLength(BETS + 2);
    expect(await progress()).toMatchObject({ markets: 2, kept: BETS + 2 });
    const others = served.filter(({ id }) => id !== second?.id);
    expect(await prices()).toEqual([...exactPrices(others), ...kept].sort());
  });

  it('continues after the last page when the venue fails', async () => {
    await aMarketOfFloats();
    await startPasses();
    let calls = 0;
    const failing = adapter(() => {
      if (++calls === 2) throw new VenueError('manifold', 'http_status', 'status 503', { retryable: true });
    });
    expect(await backfill(failing)).toHaveProperty('failed');
    const part = await progress();
    expect(part?.trades).toBeGreaterThan(0);
    expect(await prices()).not.toEqual(exactPrices());
    await run('later', `UPDATE poll_state SET lease_until = NULL`);
    await backfill();
    expect(await prices()).toEqual(exactPrices());
    expect(await progress()).toMatchObject({ markets: 1, kept: 0 });
  });

  it('counts the trades of a market that it gives up, and goes on', async () => {
    const broken = await aMarketOfFloats();
    await aMarketOfFloats();
    const before = await prices();
    await startPasses();
    const failing = adapter(({ marketId }) => {
      if (marketId === broken.marketId)
        throw new VenueError('manifold', 'http_status', 'status 404', { statusCode: 404, retryable: false });
    });
    for (let attempt = 0; attempt < 5; attempt += 1) {
      await backfill(failing);
      await run('retry', `UPDATE trade_reread SET touched_at = touched_at - interval '10 min'`);
    }
    await backfill(failing);
    expect(await progress()).toMatchObject({ markets: 2, kept: BETS });
    const kept = before.filter((line) => line.startsWith(broken.marketId));
    const others = served.filter(({ contractId }) => contractId !== broken.marketId);
    expect(await prices()).toEqual([...exactPrices(others), ...kept].sort());
  });

  it('is due for the reconcile timer before its first market and between two markets', async () => {
    await aMarketOfFloats();
    await aMarketOfFloats();
    expect(await countTradeHistories(test.db)).toEqual([]);
    await startPasses();
    const due = [{ venue: 'manifold', status: 'queued', walks: 1, due: 1 }];
    expect(await countTradeHistories(test.db)).toEqual(due);
    await nextRereadMarket(test.db, 'manifold');
    expect(await countTradeHistories(test.db)).toEqual(due);
    await run('end_of_market', `UPDATE trade_reread SET status = 'done' WHERE pass = 1`);
    expect(await countTradeHistories(test.db)).toEqual(due);
  });
});

describe('the migration', () => {
  it.each([
    [0, ''],
    [2, `INSERT INTO poll_state (venue, kind, first_success_at) VALUES ('manifold', 'trades', now())`],
  ])('makes %i passes', async (passes, before) => {
    if (before !== '') await run('polled', before);
    const migration = new TradeReread0035();
    await test.db.em.transaction(async ({ queryRunner }) => {
      if (!queryRunner) throw new Error('no runner');
      await migration.down(queryRunner);
      await migration.up(queryRunner);
    });
    const rows = await run(
      'made',
      'SELECT pass, since_at < until_at AS is_range, due_at = until_at AS is_due FROM trade_reread ORDER BY 1',
    );
    expect(rows).toEqual([1, 2].slice(0, passes).map((pass) => ({ pass, isRange: true, isDue: true })));
  });
});
