import { DuckDBInstance } from '@duckdb/node-api';
import { expect } from 'vitest';
import type { ArchiveHistory } from '../../../api/reads/archive-history.ts';
import { addDecimals, type Decimal, decimal } from '../../../src/domain/values/decimal.ts';
import type { TimeRange } from '../../../src/domain/values/time-range.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { type Database, sql } from '../../../src/store/db/tx.ts';
import { readMarketCandles, readMarketTrades } from '../../../src/store/series/market-series.ts';
import { type TradePlace, toTradePage } from '../../../src/store/series/reads.ts';
import { writeTrades } from '../../../src/store/series/trades.ts';

/* The history of the market `m` of Polymarket as the API reads it, and as the test stored it. */

const MARKET = { venues: ['polymarket'], marketId: 'm' } as const;

/** The rows of a statement of DuckDB. */
export async function readFiles(statement: string): Promise<Record<string, unknown>[]> {
  const connection = await (await DuckDBInstance.create(':memory:')).connect();
  return (await connection.runAndReadAll(statement)).getRowObjectsJson();
}

/** Stores a trade of the outcome `m:yes` as a process of this release does. */
export async function storeLateTrade(db: Database, late: { tsMs: number; tradeId: string }): Promise<void> {
  await new Partitions(db).ensure('trade', [late.tsMs]);
  const trade = { outcomeId: 'm:yes', ...late, price: decimal('0.5'), size: decimal('1') };
  await db.transaction((tx) => writeTrades(tx, [trade], 'USDC'));
}

/** The ids of all trades of the market, as the API reads them. */
export async function readTape(db: Database, history: ArchiveHistory): Promise<string[]> {
  const ids: string[] = [];
  for (let after: TradePlace | undefined; ; ) {
    const query = { range: {}, direction: 'asc', limit: 3_000, ...(after && { after }) } as const;
    const read = await readMarketTrades(db, MARKET, query);
    if (!read) throw new TypeError('the market is stored');
    const page = toTradePage(await history.withPast(read, { ...query, outcomeId: undefined }), query.limit);
    ids.push(...page.trades.map(({ tradeId }) => tradeId));
    if (!page.next) return ids;
    after = page.next;
  }
}

/** Trades and volume of candles by their start. */
type FoldedTrades = Map<number, { trades: number; volume: Decimal }>;

/** The candles of the outcome `m:yes`, as the API reads them. */
export async function readCandles(
  db: Database,
  history: ArchiveHistory,
  { seconds, range }: { seconds: number; range: TimeRange },
): Promise<FoldedTrades> {
  const read = await readMarketCandles(db, MARKET, { seconds, range, withCloseBefore: false });
  if (!read) throw new TypeError('the market is stored');
  const outcomeId = read.market.outcomes[0]?.outcomeId;
  const past = await history.candles(read.market, { outcomeId, seconds, range: { ...range, end: read.seam } });
  const all = [...past, ...read.candles];
  const candles = new Map(all.map(({ bucket, trades, volume }) => [bucket, { trades, volume: decimal(volume) }]));
  expect(candles.size).toBe(all.length);
  return candles;
}

export interface LedgerTrade {
  tradeId: string;
  price: string;
  size: string;
  /** Epoch seconds. */
  minute: number;
}

const LEDGER = sql(
  'test_trade_ids',
  `SELECT r.trade_id, r.price::text AS price, r.size::text AS size, floor(extract(epoch FROM r.ts) / 60)::float8 * 60 AS minute
   FROM trade r JOIN token t ON t.id = r.token_id WHERE t.mint = ANY ($1::text[]) ORDER BY 1`,
);

/** The trades of outcomes that Postgres has. */
export function readLedger(db: Database, outcomeIds: readonly string[]): Promise<LedgerTrade[]> {
  return db.query<LedgerTrade>(LEDGER, [outcomeIds]);
}

/** The candles of trades. */
export function foldLedger(ledger: readonly LedgerTrade[], seconds: number): FoldedTrades {
  const folded: FoldedTrades = new Map();
  for (const { minute, size } of ledger) {
    const bucket = Math.floor(minute / seconds) * seconds;
    const { trades, volume } = folded.get(bucket) ?? { trades: 0, volume: decimal('0') };
    folded.set(bucket, { trades: trades + 1, volume: addDecimals(volume, decimal(size)) });
  }
  return folded;
}

/** In the order of their starts. */
export function inOrder(candles: FoldedTrades) {
  return [...candles].sort(([one], [other]) => one - other);
}
