import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TradeRecord } from '../../../../src/domain/markets/market.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { writeMarkets } from '../../../../src/store/catalog/markets.ts';
import { Partitions } from '../../../../src/store/db/partitions.ts';
import { readMarketTrades } from '../../../../src/store/series/market-series.ts';
import { writeTrades } from '../../../../src/store/series/trades.ts';
import { aMarketRecord } from '../../../factories/markets.ts';
import { gate } from '../../../support/gate.ts';
import { changesAfter, publishPending } from '../../../support/journal.ts';
import { createTestDatabase, type TestDatabase } from '../../../support/postgres/database.ts';

let test: TestDatabase;
let nowMs: number;
let publishedUpTo: number;
beforeEach(async () => {
  test = await createTestDatabase({ poolSize: 12 });
  publishedUpTo = 0;
  nowMs = Math.floor(Date.now() / 1000) * 1000;
  const partitions = new Partitions(test.db);
  for (const table of ['observation', 'price_history'] as const) await partitions.ensureAroundNow(table);
  await partitions.ensure('trade', [nowMs]);
});
afterEach(() => test.drop());

function aTrade(tradeId: string, marketId = 'm-1'): TradeRecord {
  const outcomeId = `${marketId}:yes`;
  return { tradeId, outcomeId, tsMs: nowMs, price: decimal('0.5'), size: decimal('2'), side: 'buy' };
}
const storeTrades = (...trades: TradeRecord[]) => test.db.transaction((tx) => writeTrades(tx, trades, 'USD'));
const storeMarket = (marketId = 'm-1') =>
  test.db.transaction((tx) => writeMarkets(tx, 'polymarket', 'USD', [aMarketRecord({ marketId })], Date.now()));

/** The ids of the trades that a reader of the market gets now. */
async function readTradeIds(marketId = 'm-1'): Promise<string[]> {
  const query = { range: {}, direction: 'asc', limit: 100 } as const;
  const read = await readMarketTrades(test.db, { venues: ['polymarket'], marketId }, query);
  return (read?.page.trades ?? []).map(({ tradeId }) => tradeId);
}

/** The markets and trades of the next claims, in their order. */
async function published() {
  await publishPending(test.db);
  const changes = await changesAfter(test.db, publishedUpTo);
  publishedUpTo = changes.at(-1)?.seq ?? publishedUpTo;
  return changes
    .filter(({ kind }) => kind === 'trade' || kind === 'market')
    .map(({ kind, body }) => (kind === 'trade' ? body['trade_id'] : kind));
}

describe('a trade that is stored before its market', () => {
  it('has no change when a claim takes it before the market, whose change tells readers to read it', async () => {
    await storeTrades(aTrade('early'));
    expect(await published()).toEqual([]);
    await storeMarket();
    expect(await published()).toEqual(['market']);
    expect(await readTradeIds()).toEqual(['early']);
    await storeTrades(aTrade('early'), aTrade('later'));
    expect(await published()).toEqual(['later']);
  });

  it('has its change when a claim takes both', async () => {
    await storeTrades(aTrade('early'));
    await storeMarket();
    expect(await published()).toEqual(['early', 'market']);
  });

  it('has its change when it commits after the market, in whatever order they began', async () => {
    const [isWritten, mayCommit] = [gate(), gate()];
    const slow = test.db.transaction(async (tx) => {
      // Commits the token first: the market would wait for a transaction that adds it.
      await storeTrades(aTrade('first'));
      await writeTrades(tx, [aTrade('slow')], 'USD');
      isWritten.open();
      await mayCommit.opened;
    });
    await isWritten.opened;
    await storeMarket();
    expect(await published()).toEqual(['first', 'market']);
    mayCommit.open();
    await slow;
    expect(await published()).toEqual(['slow']);
  });

  it('is never lost: a reader that reads at the first change of the market gets each trade, or its change', async () => {
    const marketIds = Array.from({ length: 24 }, (_, n) => `m-${n}`);
    const state = { isWriting: true };
    const writing = Promise.all(
      marketIds.map(async (marketId, n) => {
        const writes = [
          ...[1, 2, 3].map((i) => () => storeTrades(aTrade(`${marketId}-${i}`, marketId))),
          () => storeMarket(marketId),
        ];
        const first = n % writes.length;
        await Promise.all([...writes.slice(first), ...writes.slice(0, first)].map((write) => write()));
      }),
    ).finally(() => {
      state.isWriting = false;
    });
    const known = new Set<unknown>();
    let seq = 0;
    let isLast = false;
    while (!isLast) {
      isLast = !state.isWriting;
      await publishPending(test.db, 5);
      for (const change of await changesAfter(test.db, seq)) {
        seq = change.seq;
        if (change.kind === 'trade') known.add(change.body['trade_id']);
        if (change.kind === 'market') for (const tradeId of await readTradeIds(change.marketId)) known.add(tradeId);
      }
    }
    await writing;
    expect([...known].toSorted()).toEqual(marketIds.flatMap((id) => [1, 2, 3].map((i) => `${id}-${i}`)).toSorted());
  });
});
