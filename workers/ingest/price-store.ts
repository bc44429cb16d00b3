import type { BookRecord, PriceRecord } from '../../src/domain/markets/market.ts';
import { priceOfBook } from '../../src/domain/markets/quoted-price.ts';
import type { FeedReader } from '../../src/store/db/leases.ts';
import { isContentRefused, type Tx } from '../../src/store/db/tx.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import type { ConfirmedPrice } from '../../src/store/prices/confirmations.ts';
import { comparePrices, sweepPrices } from '../../src/store/prices/prices.ts';
import { writeBooks } from '../../src/store/series/books.ts';
import type { Batch } from '../../src/venues/port.ts';
import { bookMemoryOf } from './book-memory.ts';
import { PriceConfirmations } from './price-confirmations.ts';
import type { IngestDeps, PageStore, Written } from './store-page.ts';

/** Prices or books of certain outcomes. Records of other outcomes are not stored. */
export interface OutcomesBatch<R> extends Batch<R> {
  /** Our keys of these outcomes, by the ids of the venue. */
  tokenIdOf: ReadonlyMap<string, bigint>;
}

interface WrittenPrices extends Written {
  /** Outcomes whose price moved. */
  movedTokenIds: readonly bigint[];
}

export interface SweptPrices extends WrittenPrices {
  /** Outcomes whose stored price is still the venue's. */
  confirmed: readonly ConfirmedPrice[];
}

/** The confirmations of the process, or of one walk, which ends with their write. */
function confirmationsOf(deps: Pick<IngestDeps, 'db' | 'log' | 'confirmations'>) {
  const { confirmations: shared } = deps;
  const confirmations = shared ?? new PriceConfirmations(deps);
  return {
    confirmations,
    endConfirmations: async () => {
      if (shared === undefined) await confirmations.flush();
    },
  };
}

/** Stores the changed prices of a tick, wakes their alerts, and confirms the others. Each tick needs a store of its own. */
export function priceStore(deps: Pick<IngestDeps, 'db' | 'log' | 'partitions' | 'producer' | 'confirmations'>) {
  const { confirmations, endConfirmations } = confirmationsOf(deps);
  let isMostlyNew = false;
  return {
    kind: 'prices',
    async news(records, { tokenIdOf }) {
      const unknown = withTokenIds(confirmations.confirmKnown(records, tokenIdOf), tokenIdOf);
      if (isMostlyNew || unknown.length === 0) {
        isMostlyNew = false;
        return unknown;
      }
      const compared = await comparePrices(deps.db, unknown).catch((error: unknown) => {
        if (isContentRefused(error)) return undefined;
        throw error;
      });
      if (compared === undefined) return unknown;
      const { news, equal } = compared;
      // The next page of the tick is probably like this one. Writing compares too.
      isMostlyNew = news.length * 2 > records.length;
      confirmations.confirm(equal);
      return news;
    },
    prepare: () => prepareForPrices(deps),
    async write(tx, records, { tokenIdOf }) {
      const { newer, movedTokenIds, confirmed } = await sweepPrices(tx, withTokenIds(records, tokenIdOf));
      return { written: newer, movedTokenIds, confirmed };
    },
    wake(parts) {
      wakeAlerts(deps, parts);
      confirmations.add(parts.flatMap(({ confirmed }) => confirmed));
      const moved = parts.flatMap(({ movedTokenIds }) => movedTokenIds);
      confirmations.forget(moved);
      bookMemoryOf(deps.db).forget(moved);
    },
    end: endConfirmations,
  } satisfies PageStore<PriceRecord, SweptPrices, OutcomesBatch<PriceRecord>>;
}

interface SweptBooks extends SweptPrices {
  /** Outcomes whose stored book is the given one. */
  appliedTokenIds: readonly bigint[];
}

/** Stores books and their prices, and wakes the alerts on these. Each walk needs a store of its own. */
export function bookStore(deps: Pick<IngestDeps, 'db' | 'log' | 'partitions' | 'producer' | 'confirmations' | 'now'>) {
  const { confirmations, endConfirmations } = confirmationsOf(deps);
  return {
    kind: 'books',
    async prepare() {
      await deps.partitions.ensureAroundNow('book_history');
      await prepareForPrices(deps);
    },
    write: writeBookPage,
    wake(parts, page) {
      wakeAlerts(deps, parts);
      confirmations.add(parts.flatMap(({ confirmed }) => confirmed));
      confirmations.forget(parts.flatMap(({ movedTokenIds }) => movedTokenIds));
      const appliedTokenIds = parts.flatMap((part) => part.appliedTokenIds);
      bookMemoryOf(deps.db).applied(page, appliedTokenIds, deps.now());
    },
    end: endConfirmations,
  } satisfies PageStore<BookRecord, SweptBooks, OutcomesBatch<BookRecord>>;
}

/** Records of a feed with the part of each outcome. */
export interface FeedBatch<R> extends OutcomesBatch<R> {
  readonly partOf: ReadonlyMap<string, number>;
}

interface FeedStoreOptions extends FeedReader {
  readonly deps: IngestDeps;
}

/** Prices of a feed, stored like those of a sweep. Prices of parts that the streamer lost are not stored. */
export function feedPriceStore({
  deps,
  ...feed
}: FeedStoreOptions): PageStore<PriceRecord, SweptPrices, FeedBatch<PriceRecord>> {
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
export function feedBookStore({
  deps,
  ...feed
}: FeedStoreOptions): PageStore<BookRecord, Written, FeedBatch<BookRecord>> {
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

async function prepareForPrices({ partitions }: Pick<IngestDeps, 'partitions'>): Promise<void> {
  await partitions.ensureAroundNow('price_history');
  await partitions.ensureAroundNow('observation');
}

function wakeAlerts({ producer }: Pick<IngestDeps, 'producer'>, parts: readonly WrittenPrices[]): void {
  producer.wakeStage('evaluate-alerts', shardsOf(parts.flatMap(({ movedTokenIds }) => movedTokenIds)));
}

/** Writes books. Each is a price observation too; an unchanged price is confirmed like that of a sweep. */
async function writeBookPage(
  tx: Tx,
  records: readonly BookRecord[],
  { tokenIdOf }: Pick<OutcomesBatch<BookRecord>, 'tokenIdOf'>,
): Promise<SweptBooks> {
  const known = withTokenIds(records, tokenIdOf);
  const prices = known.flatMap((book) => {
    const price = priceOfBook(book);
    return price === undefined ? [] : [{ ...price, tokenId: book.tokenId }];
  });
  const { newer, appliedTokenIds } = await writeBooks(tx, known);
  const { movedTokenIds, confirmed } = await sweepPrices(tx, prices);
  return { written: newer, appliedTokenIds, movedTokenIds, confirmed };
}

function withTokenIds<R extends { outcomeId: string }>(records: readonly R[], tokenIdOf: ReadonlyMap<string, bigint>) {
  return records.flatMap((record) => {
    const tokenId = tokenIdOf.get(record.outcomeId);
    return tokenId === undefined ? [] : [{ ...record, tokenId }];
  });
}
