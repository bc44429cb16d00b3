import type { BookRecord } from '../../src/domain/markets/market.ts';
import { announceArrival } from '../../src/store/catalog/arrivals.ts';
import { bookOutcomesOfMarket } from '../../src/store/catalog/watched-outcomes.ts';
import { MEMBER_REFUSED } from '../../src/venues/http/member-batches.ts';
import { bookStore } from '../ingest/price-store.ts';
import type { Written } from '../ingest/store-page.ts';
import { fetchRequested, type PageSource, type RequestedPage, walkPages } from '../polling/poll.ts';
import { defineJob } from '../process/define.ts';

/**
 * Fetches the books of one market for a waiting client, and announces the end of its work also when the venue has no book. It
 * needs no lease, because the time of the venue guards books and prices, and their other rows follow from them. When the process
 * dies or the venue is down, nothing is announced: the wait of the client ends by its own limit, and the next read requests the
 * books again.
 */
export const fetchBook = defineJob('fetch-book', async ({ venue, marketPk }, context) => {
  const adapter = context.adapters.get(venue);
  if (!adapter) return { skipped: 'venue not enabled' };
  const pending = await bookOutcomesOfMarket(context.db, venue, BigInt(marketPk));
  const outcomes = pending.length;
  let isUnread = false;
  const source: PageSource<BookRecord, Written, RequestedPage<BookRecord>> = {
    ...bookStore(context),
    async fetch(_position, call) {
      const batch = pending.splice(0, adapter.maxBooksPerFetch ?? adapter.maxOutcomesPerFetch);
      const books = await fetchRequested(batch, (ids) => adapter.fetchBooks(ids, call));
      isUnread ||=
        books.unread !== undefined ||
        books.fault !== undefined ||
        books.rejected.some(({ reason }) => reason === MEMBER_REFUSED);
      return { ...books, position: null, more: pending.length > 0 };
    },
    async finish(tx, { more }) {
      if (!more && !isUnread) await announceArrival(tx, `book:${marketPk}`);
    },
  };
  const { report } = await walkPages(context, source, { venue, position: null });
  const { records, written, rejected } = report;
  return { outcomes, records, written, rejected };
});
