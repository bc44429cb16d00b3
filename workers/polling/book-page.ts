import { priceOfBook } from '../../src/domain/markets/book-price.ts';
import type { BookRecord } from '../../src/domain/markets/market.ts';
import type { WatchedOutcome } from '../../src/store/catalog/watched-outcomes.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { writePrices } from '../../src/store/prices/prices.ts';
import { writeBooks } from '../../src/store/series/books.ts';
import type { JobContext } from '../process/define.ts';
import type { WrittenPage } from './page-writer.ts';

/** Makes room for what `writeBookPage` leaves, before its transaction. */
export async function prepareForBooks({ partitions }: Pick<JobContext, 'partitions'>): Promise<void> {
  await partitions.ensureAroundNow('book_history');
  await partitions.ensureAroundNow('price_history');
  await partitions.ensureAroundNow('observation');
}

/** Writes the books of outcomes that were asked for, by the venue's ids. A book is a price observation too. */
export async function writeBookPage(
  tx: Tx,
  records: readonly BookRecord[],
  asked: ReadonlyMap<string, WatchedOutcome>,
  { producer }: Pick<JobContext, 'producer'>,
): Promise<WrittenPage> {
  const known = records.flatMap((book) => {
    const outcome = asked.get(book.outcomeId);
    return outcome ? [{ book, tokenId: outcome.tokenId }] : [];
  });
  const written = await writeBooks(
    tx,
    known.map(({ book, tokenId }) => ({ tokenId, asOfMs: book.asOfMs, bids: book.bids, asks: book.asks })),
  );
  const prices = known.flatMap(({ book, tokenId }) => {
    const price = priceOfBook(book);
    return price === undefined ? [] : [{ ...price, tokenId }];
  });
  const { movedTokenIds } = await writePrices(tx, prices);
  return { written, wake: () => producer.wakeStage('evaluate-alerts', shardsOf(movedTokenIds)) };
}

/** Outcomes by the venue's ids. */
export function byOutcomeId(outcomes: readonly WatchedOutcome[]): Map<string, WatchedOutcome> {
  return new Map(outcomes.map((outcome) => [outcome.outcomeId, outcome]));
}
