import type { BookRecord } from '../../src/domain/markets/market.ts';
import { hotOutcomes, mostTradedMarkets, type WatchedOutcome } from '../../src/store/catalog/watched-outcomes.ts';
import { bookMemoryOf } from '../ingest/book-memory.ts';
import { bookStore } from '../ingest/price-store.ts';
import type { Written } from '../ingest/store-page.ts';
import { fetchRequested, type PageSource, type RequestedPage, runPoll, walkPages } from '../polling/poll.ts';
import { defineJob } from '../process/define.ts';

/** Volumes change with the catalog poll, once a minute. The position of the poll keeps the ranking for as long. */
const RANKED_FOR_MS = 60_000;

interface Ranking {
  atMs: number;
  /** Keys of the most traded markets. */
  traded: string[];
  /** Outcomes of a tick that failed, from the first one on: the next tick begins behind them. */
  leftBehind?: number;
}

function isRanking(position: unknown): position is Ranking {
  const { atMs, traded } = (position ?? {}) as Partial<Ranking>;
  return typeof atMs === 'number' && Array.isArray(traded);
}

/**
 * Reads the books of the hot markets, the hottest first. The default of `bookPollMarkets` is 250 markets or 500 outcomes: one
 * request per tick at Polymarket (500 books each) and three at Kalshi (100 markets each). Requests run one after the other, and
 * none starts after the end of the tick. So this poll never takes more of the host's rate than one caller, and with too many
 * markets it skips the coldest. After a batch that failed, the next tick begins behind it.
 */
export const pollBooks = defineJob('poll-books', ({ venue }, context) => {
  const { bookPollMarkets, pollMs } = context.config;
  let pending: WatchedOutcome[] | undefined;
  let left = 0;
  let hot = 0;
  const endsAtMs = performance.now() + pollMs.books;

  async function ranking(position: unknown): Promise<Ranking> {
    const atMs = context.now();
    // A shorter ranking comes from a growing catalog or from another setting.
    if (isRanking(position) && position.traded.length === bookPollMarkets) {
      if (position.atMs <= atMs && atMs - position.atMs < RANKED_FOR_MS) return position;
    }
    return { atMs, traded: (await mostTradedMarkets(context.db, venue, bookPollMarkets)).map(String) };
  }

  return runPoll(context, { venue, lease: 'books', adapters: context.adapters }, (adapter, start) => {
    const source: PageSource<BookRecord, Written, RequestedPage<BookRecord>> = {
      ...bookStore(context),
      news: (_records, page) => bookMemoryOf(context.db).news(page, context.now()),
      async fetch(before, call) {
        let position = before;
        if (!pending) {
          const ranked = await ranking(before);
          const { leftBehind = 0, ...kept } = ranked;
          const outcomes = await hotOutcomes(context.db, venue, bookPollMarkets, ranked.traded.map(BigInt));
          hot = outcomes.length;
          left = leftBehind < hot ? leftBehind : 0;
          pending = [...outcomes.slice(left), ...outcomes.slice(0, left)];
          position = kept;
        }
        const batch = pending.splice(0, adapter.maxBooksPerFetch ?? adapter.maxOutcomesPerFetch);
        const books = await fetchRequested(batch, (ids) => adapter.fetchBooks(ids, call));
        left = hot === 0 ? 0 : (left + batch.length) % hot;
        if (books.fault) position = { ...(position as Ranking), leftBehind: left };
        return { ...books, position, more: pending.length > 0 && performance.now() < endsAtMs };
      },
    };
    return walkPages(context, source, start);
  });
});
