import { priceOfBook } from '../../src/domain/markets/book-price.ts';
import type { BookRecord, PriceRecord } from '../../src/domain/markets/market.ts';
import type { WatchedOutcome } from '../../src/store/catalog/watched-outcomes.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import type { ConfirmedPrice } from '../../src/store/prices/checks.ts';
import { sweepPrices, writePrices } from '../../src/store/prices/prices.ts';
import { writeBooks } from '../../src/store/series/books.ts';
import { isOfHost, VenueError } from '../../src/venues/errors.ts';
import type { Batch, Page } from '../../src/venues/port.ts';
import type { JobContext } from '../process/define.ts';
import type { PageStore } from './page-store.ts';
import { PriceConfirmations } from './price-confirmations.ts';

/** The answer to a request for certain outcomes. Records of other outcomes are not stored. */
export interface RequestedPage<R> extends Page<R> {
  /** Our keys of the requested outcomes, by the ids of the venue. */
  tokenIdOf: ReadonlyMap<string, bigint>;
}

interface WrittenPrices {
  written: number;
  /** Outcomes whose price moved. */
  movedTokenIds: readonly bigint[];
}

export interface SweptPrices extends WrittenPrices {
  /** Outcomes whose stored price is still the venue's. */
  confirmed: readonly ConfirmedPrice[];
}

type PriceStoreContext = Pick<JobContext, 'db' | 'log' | 'partitions' | 'producer'>;

/** Stores the changed prices of a tick, wakes their alerts, and confirms the others. Each tick needs a store of its own. */
export function priceStore(
  context: PriceStoreContext,
): PageStore<PriceRecord, SweptPrices, RequestedPage<PriceRecord>> {
  const confirmations = new PriceConfirmations(context);
  return {
    kind: 'prices',
    prepare: () => prepareForPrices(context),
    async write(tx, records, { tokenIdOf }) {
      const { newer, movedTokenIds, confirmed } = await sweepPrices(tx, withTokenIds(records, tokenIdOf));
      return { written: newer, movedTokenIds, confirmed };
    },
    wake(parts) {
      wakeAlerts(context, parts);
      confirmations.add(parts.flatMap(({ confirmed }) => confirmed));
    },
    end: () => confirmations.flush(),
  };
}

/** Stores books, and wakes the alerts on their prices. */
export function bookStore(context: JobContext): PageStore<BookRecord, WrittenPrices, RequestedPage<BookRecord>> {
  return {
    kind: 'books',
    async prepare() {
      await context.partitions.ensureAroundNow('book_history');
      await prepareForPrices(context);
    },
    write: writeBookPage,
    wake: (parts) => wakeAlerts(context, parts),
  };
}

async function prepareForPrices({ partitions }: Pick<JobContext, 'partitions'>): Promise<void> {
  await partitions.ensureAroundNow('price_history');
  await partitions.ensureAroundNow('observation');
}

function wakeAlerts({ producer }: Pick<JobContext, 'producer'>, parts: readonly WrittenPrices[]): void {
  producer.wakeStage('evaluate-alerts', shardsOf(parts.flatMap(({ movedTokenIds }) => movedTokenIds)));
}

/** Writes books. Each is a price observation too. */
export async function writeBookPage(
  tx: Tx,
  records: readonly BookRecord[],
  { tokenIdOf }: Pick<RequestedPage<BookRecord>, 'tokenIdOf'>,
): Promise<WrittenPrices> {
  const known = withTokenIds(records, tokenIdOf);
  const prices = known.flatMap((book) => {
    const price = priceOfBook(book);
    return price === undefined ? [] : [{ ...price, tokenId: book.tokenId }];
  });
  const written = await writeBooks(tx, known);
  const { movedTokenIds } = await writePrices(tx, prices);
  return { written, movedTokenIds };
}

export function withTokenIds<R extends { outcomeId: string }>(
  records: readonly R[],
  tokenIdOf: ReadonlyMap<string, bigint>,
) {
  return records.flatMap((record) => {
    const tokenId = tokenIdOf.get(record.outcomeId);
    return tokenId === undefined ? [] : [{ ...record, tokenId }];
  });
}

/** A batch without an answer, which the walk leaves behind: the next tick begins with others. Rethrows other errors. */
export function failedBatch(error: unknown): Batch<never> & Pick<Page<never>, 'isIdle' | 'fault'> {
  if (!(error instanceof VenueError) || isOfHost(error)) throw error;
  return { records: [], rejected: [], isIdle: true, fault: error };
}

/** Requests prices or books of outcomes. No outcomes need no request. */
export async function fetchRequested<R>(
  outcomes: readonly WatchedOutcome[],
  fetch: (outcomeIds: readonly string[]) => Promise<Batch<R>>,
): Promise<Batch<R> & Pick<RequestedPage<R>, 'tokenIdOf' | 'isIdle'>> {
  const tokenIdOf = new Map(outcomes.map(({ outcomeId, tokenId }) => [outcomeId, tokenId]));
  if (tokenIdOf.size === 0) return { records: [], rejected: [], tokenIdOf, isIdle: true };
  return { ...(await fetch([...tokenIdOf.keys()]).catch(failedBatch)), tokenIdOf };
}
