import type { BookRecord } from '../../src/domain/markets/market.ts';
import { announceArrival } from '../../src/store/catalog/arrivals.ts';
import { quarantine } from '../../src/store/catalog/quarantine.ts';
import { bookOutcomesOfMarket } from '../../src/store/catalog/watched-outcomes.ts';
import type { Batch } from '../../src/venues/port.ts';
import { byOutcomeId, prepareForBooks, writeBookPage } from '../polling/book-page.ts';
import { countPage, countUnstored } from '../polling/polling.ts';
import { defineJob } from '../process/define.ts';

/**
 * Fetches the books of one market because a client waits for them (DESIGN "Cold reads"), and says so when it is done, also
 * when the venue had none. It needs no poll lease: books and prices are guarded by the venue's time, and the rest of what
 * they leave follows from that. When the process dies, or the venue is down, nothing is announced and the client's wait ends
 * by its own limit; the next read asks again.
 */
export const fetchBook = defineJob('fetch-book', async ({ venue, marketPk }, context) => {
  const adapter = context.adapters.get(venue);
  if (!adapter) return { skipped: 'venue not enabled' };
  const asked = byOutcomeId(await bookOutcomesOfMarket(context.db, venue, BigInt(marketPk)));
  const ids = [...asked.keys()];
  const found: Batch<BookRecord> = { records: [], rejected: [] };
  const counted = { venue, kind: 'books' as const, page: found };
  const page = await countUnstored(context, counted, async () => {
    const size = adapter.maxBooksPerFetch ?? adapter.maxOutcomesPerFetch;
    for (let start = 0; start < ids.length; start += size) {
      const part = await adapter.fetchBooks(ids.slice(start, start + size), {
        signal: context.signal,
        now: context.now,
      });
      found.records.push(...part.records);
      found.rejected.push(...part.rejected);
    }
    await prepareForBooks(context);
    return context.db.transaction(async (tx) => {
      await quarantine(tx, venue, found.rejected);
      const written = await writeBookPage(tx, found.records, asked, context);
      await announceArrival(tx, `book:${marketPk}`);
      return written;
    });
  });
  page.wake();
  const { written } = countPage(context, { ...counted, parts: [page], refused: [] });
  return { outcomes: ids.length, records: found.records.length, written, rejected: found.rejected.length };
});
