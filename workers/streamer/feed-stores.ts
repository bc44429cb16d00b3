import type { BookRecord, PriceRecord, TradeRecord } from '../../src/domain/markets/market.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { heldParts } from '../../src/store/feeds/parts.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { writeBooks } from '../../src/store/series/books.ts';
import type { Page } from '../../src/venues/port.ts';
import type { PageStore } from '../polling/page-store.ts';
import { priceStore, type RequestedPage, type SweptPrices, withTokenIds } from '../polling/price-page.ts';
import { tradeStore, type WrittenTrades } from '../polling/trade-page.ts';
import type { StreamerDeps } from './deps.ts';
import type { StageWaker } from './stage-waker.ts';

/** Records of a feed with the part of each outcome. */
export interface FeedPage<R> extends RequestedPage<R> {
  readonly partOf: ReadonlyMap<string, number>;
}

interface StoreOptions {
  readonly deps: StreamerDeps;
  readonly venue: string;
  readonly streamer: string;
  readonly waker: StageWaker;
}

/** Prices of a feed, stored like those of a sweep. Prices of parts that the streamer lost are not stored. */
export function feedPriceStore(options: StoreOptions): PageStore<PriceRecord, SweptPrices, FeedPage<PriceRecord>> {
  const { deps, waker } = options;
  const store = priceStore({ ...deps, producer: waker.producer });
  return {
    ...store,
    write: async (tx, records, page) => store.write(tx, await held(tx, options, records, page.partOf), page),
  };
}

/** Books of a feed. Their prices come as quotes. */
export function feedBookStore(options: StoreOptions): PageStore<BookRecord, { written: number }, FeedPage<BookRecord>> {
  return {
    kind: 'books',
    prepare: () => options.deps.partitions.ensureAroundNow('book_history'),
    async write(tx, records, { partOf, tokenIdOf }) {
      const books = withTokenIds(await held(tx, options, records, partOf), tokenIdOf);
      return { written: await writeBooks(tx, books) };
    },
    wake: () => undefined,
  };
}

/** Trades of a feed. They need no lease: a trade has one identity. */
export function feedTradeStore(
  { deps, waker }: StoreOptions,
  currency: string,
): PageStore<TradeRecord, WrittenTrades, Page<TradeRecord>> {
  return {
    ...tradeStore(deps, { currency }),
    wake(parts) {
      const shards = shardsOf(parts.flatMap(({ tokenIds }) => tokenIds));
      waker.wake('fold-candles', shards);
      waker.wake('evaluate-alerts', shards);
    },
  };
}

/** The records of the parts that the streamer holds in this transaction. */
async function held<R extends { outcomeId: string }>(
  tx: Tx,
  { streamer, venue }: StoreOptions,
  records: readonly R[],
  partOf: ReadonlyMap<string, number>,
): Promise<readonly R[]> {
  if (records.length === 0) return records;
  const parts = [...new Set(records.map(({ outcomeId }) => partOf.get(outcomeId) ?? -1))];
  const ours = await heldParts(tx, streamer, venue, parts);
  return ours.size === parts.length
    ? records
    : records.filter(({ outcomeId }) => ours.has(partOf.get(outcomeId) ?? -1));
}
