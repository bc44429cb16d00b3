import { priceOfBook } from '../src/domain/book-price.ts';
import type { BookRecord } from '../src/domain/market.ts';
import { writeBooks } from '../src/store/books.ts';
import { shardsOf } from '../src/store/marks.ts';
import { writePrices } from '../src/store/prices.ts';
import { hotOutcomes, type WatchedOutcome } from '../src/store/watched-outcomes.ts';
import { defineJob } from './define.ts';
import { runPoll } from './polling.ts';

/** Markets whose books are kept fresh: the most traded ones. */
const HOT_MARKETS = 250;

/** Reads the books of the hot markets. A book is a price observation too. */
export const pollBooks = defineJob('poll-books', ({ venue }, context) => {
  let waiting: WatchedOutcome[] | undefined;
  let batch = new Map<string, WatchedOutcome>();
  return runPoll<BookRecord>(context, {
    venue,
    kind: 'books',
    fetch: async (adapter, _position, call) => {
      waiting ??= await hotOutcomes(context.db, venue, HOT_MARKETS);
      const outcomes = waiting.splice(0, adapter.maxOutcomesPerFetch);
      batch = new Map(outcomes.map((outcome) => [outcome.outcomeId, outcome]));
      const books =
        outcomes.length === 0 ? { records: [], rejected: [] } : await adapter.fetchBooks([...batch.keys()], call);
      return { ...books, position: null, more: waiting.length > 0 };
    },
    prepare: async () => {
      await context.partitions.ensureAroundNow('price_history');
      await context.partitions.ensureAroundNow('observation');
    },
    write: async (tx, records) => {
      const known = records.flatMap((book) => {
        const outcome = batch.get(book.outcomeId);
        return outcome ? [{ book, tokenId: outcome.tokenId }] : [];
      });
      const written = await writeBooks(
        tx,
        known.map(({ book, tokenId }) => ({ tokenId, asOfMs: book.asOfMs, bids: book.bids, asks: book.asks })),
      );
      const prices = known.flatMap(({ book, tokenId }) => {
        const price = priceOfBook(book);
        return price === null ? [] : [{ ...price, tokenId }];
      });
      const { movedTokenIds } = await writePrices(tx, prices);
      return {
        written,
        wake: () => context.producer.wakeStage('evaluate-alerts', shardsOf(movedTokenIds)),
      };
    },
  });
});
