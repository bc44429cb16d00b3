import type { BookRecord } from '../../src/domain/markets/market.ts';
import { hotOutcomes, mostTradedMarkets, type WatchedOutcome } from '../../src/store/catalog/watched-outcomes.ts';
import { byOutcomeId, prepareForBooks, writeBookPage } from '../polling/book-page.ts';
import { runPoll } from '../polling/polling.ts';
import { defineJob } from '../process/define.ts';

/** Volumes move with the catalog poll, once a minute: the ranking is kept as the poll's position, not made at each tick. */
const RANKED_FOR_MS = 60_000;

interface Ranking {
  atMs: number;
  /** Keys of the most traded markets. */
  traded: string[];
}

function isRanking(position: unknown): position is Ranking {
  const { atMs, traded } = (position ?? {}) as Partial<Ranking>;
  return typeof atMs === 'number' && Array.isArray(traded);
}

/**
 * Reads the books of the hot markets, the most wanted first. The budget: `bookPollMarkets`, by default 250 markets, that is
 * 500 outcomes, hence one request of a tick at Polymarket (500 books each) and three at Kalshi (100 markets each). Requests go
 * out one after the other, and none begins after the tick is over: however many markets are configured, this poll never
 * takes more than one caller's turns of its own tick from the host's rate, and what it leaves out is the least wanted.
 */
export const pollBooks = defineJob('poll-books', ({ venue }, context) => {
  const { bookPollMarkets, pollMs } = context.config;
  let waiting: WatchedOutcome[] | undefined;
  let batch = new Map<string, WatchedOutcome>();
  const overAtMs = performance.now() + pollMs.books;

  async function ranking(position: unknown): Promise<Ranking> {
    const atMs = context.now();
    // A shorter one is of a catalog that was still growing, or of another setting.
    if (isRanking(position) && position.traded.length === bookPollMarkets) {
      if (position.atMs <= atMs && atMs - position.atMs < RANKED_FOR_MS) return position;
    }
    return { atMs, traded: (await mostTradedMarkets(context.db, venue, bookPollMarkets)).map(String) };
  }

  return runPoll<BookRecord>(context, {
    venue,
    kind: 'books',
    fetch: async (adapter, before, call) => {
      let position = before;
      if (!waiting) {
        const ranked = await ranking(before);
        waiting = await hotOutcomes(context.db, venue, bookPollMarkets, ranked.traded.map(BigInt));
        position = ranked;
      }
      const outcomes = waiting.splice(0, adapter.maxBooksPerFetch ?? adapter.maxOutcomesPerFetch);
      batch = byOutcomeId(outcomes);
      const books =
        outcomes.length === 0 ? { records: [], rejected: [] } : await adapter.fetchBooks([...batch.keys()], call);
      return { ...books, position, more: waiting.length > 0 && performance.now() < overAtMs };
    },
    prepare: () => prepareForBooks(context),
    write: (tx, records) => writeBookPage(tx, records, batch, context),
  });
});
