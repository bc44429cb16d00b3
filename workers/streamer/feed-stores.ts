import type { BookRecord, PriceRecord } from '../../src/domain/markets/market.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { heldParts } from '../../src/store/feeds/parts.ts';
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

interface StoreOptions {
  readonly deps: IngestDeps;
  readonly venue: string;
  readonly streamer: string;
}

/** Prices of a feed, stored like those of a sweep. Prices of parts that the streamer lost are not stored. */
export function feedPriceStore(options: StoreOptions): PageStore<PriceRecord, SweptPrices, FeedBatch<PriceRecord>> {
  const store = priceStore(options.deps);
  return {
    ...store,
    write: async (tx, records, batch) => store.write(tx, await held(tx, options, records, batch.partOf), batch),
  };
}

/** Books of a feed. Their prices come as quotes. */
export function feedBookStore(options: StoreOptions): PageStore<BookRecord, Written, FeedBatch<BookRecord>> {
  return {
    kind: 'books',
    prepare: () => options.deps.partitions.ensureAroundNow('book_history'),
    async write(tx, records, { partOf, tokenIdOf }) {
      const books = withTokenIds(await held(tx, options, records, partOf), tokenIdOf);
      return { written: (await writeBooks(tx, books)).newer };
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

/** The batch of these records. */
export function batchOf<R extends PriceRecord | BookRecord>(pending: readonly Pending<R>[]): FeedBatch<R> {
  return {
    records: pending.map(({ record }) => record),
    rejected: [],
    tokenIdOf: new Map(pending.map(({ outcome }) => [outcome.outcomeId, outcome.tokenId])),
    partOf: new Map(pending.map(({ outcome }) => [outcome.outcomeId, outcome.part])),
  };
}
