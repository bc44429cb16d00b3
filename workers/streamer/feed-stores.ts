import type { BookRecord, PriceRecord } from '../../src/domain/markets/market.ts';
import type { FeedReader } from '../../src/store/db/leases.ts';
import { sweepPrices } from '../../src/store/prices/prices.ts';
import { writeBooks } from '../../src/store/series/books.ts';
import { type OutcomesBatch, priceStore, type SweptPrices, withTokenIds } from '../ingest/price-store.ts';
import type { IngestDeps, PageStore, Written } from '../ingest/store-page.ts';

/** An outcome of a feed. */
export interface FeedOutcome {
  readonly outcomeId: string;
  readonly tokenId: bigint;
  readonly marketPk: bigint;
  readonly part: number;
}

/** A record of an outcome that waits for the database. */
export interface Pending<R> {
  readonly outcome: FeedOutcome;
  readonly record: R;
}

/** Records of a feed with the part of each outcome. */
export interface FeedBatch<R> extends OutcomesBatch<R> {
  readonly partOf: ReadonlyMap<string, number>;
}

interface StoreOptions extends FeedReader {
  readonly deps: IngestDeps;
}

/** Prices of a feed, stored like those of a sweep. Prices of parts that the streamer lost are not stored. */
export function feedPriceStore({
  deps,
  ...feed
}: StoreOptions): PageStore<PriceRecord, SweptPrices, FeedBatch<PriceRecord>> {
  const { kind, prepare, wake, end } = priceStore(deps);
  return {
    kind,
    prepare,
    commitsEach: true,
    async write(db, records, batch) {
      const { newer, movedTokenIds, confirmed } = await sweepPrices(db, withParts(records, batch), feed);
      return { written: newer, movedTokenIds, confirmed };
    },
    wake,
    end,
  };
}

/** Books of a feed. Their prices come as quotes. */
export function feedBookStore({ deps, ...feed }: StoreOptions): PageStore<BookRecord, Written, FeedBatch<BookRecord>> {
  return {
    kind: 'books',
    prepare: () => deps.partitions.ensureAroundNow('book_history'),
    commitsEach: true,
    async write(db, records, batch) {
      return { written: (await writeBooks(db, withParts(records, batch), feed)).newer };
    },
  };
}

function withParts<R extends { outcomeId: string }>(records: readonly R[], { tokenIdOf, partOf }: FeedBatch<R>) {
  return withTokenIds(records, tokenIdOf).map((record) => ({ ...record, part: partOf.get(record.outcomeId) ?? -1 }));
}

/** The batch of these records. */
export function batchOf<R extends PriceRecord | BookRecord>(pending: readonly Pending<R>[]): FeedBatch<R> {
  return {
    records: pending.map(({ record }) => record),
    rejected: [],
    tokenIdOf: new Map(pending.map(({ outcome }) => [outcome.outcomeId, outcome.tokenId])),
    partOf: new Map(pending.map(({ outcome }) => [outcome.outcomeId, outcome.part])),
  };
}
