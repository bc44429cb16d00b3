import type { TradeRecord } from '../../src/domain/markets/market.ts';
import { asError } from '../../src/domain/values/errors.ts';
import { failureFields } from '../../src/observe/failures.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { announceArrival } from '../../src/store/catalog/arrivals.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { correctPrices, nextRereadMarket } from '../../src/store/series/trade-reread.ts';
import {
  advanceTradeHistory,
  chargeTradeHistory,
  countHistoryTrades,
  countTradeHistories,
  nextTradeHistory,
  type OpenHistory,
  touchTradeHistory,
  type WalkPurpose,
} from '../../src/store/series/trade-walks.ts';
import { mayBeOfMember, VenueError } from '../../src/venues/errors.ts';
import type { CallContext, HistoryPage, Page, VenueAdapter } from '../../src/venues/port.ts';
import { rejectUntimely, tradeFloorMs, tradeStore, type WrittenTrades } from '../ingest/trade-store.ts';
import { type PageSource, runPoll, walkPages } from '../polling/poll.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** A turn of one market while others wait. A market without any page gets its turn after the next page. */
const TURN_MS = 5_000;
const TURN_PAGES = 20;
/** So many markets that fail without a success between them are the fault of the host. */
const MARKETS_OF_FAILING_HOST = 3;

/** A page of the walk of one market, or a failed try. */
interface BackfillPage extends Page<TradeRecord> {
  walk: OpenHistory;
  read?: Pick<HistoryPage, 'position' | 'reachedMs' | 'truncated'> & { isDone: boolean };
  /** The reason of a failed try. */
  failure?: string;
  /** The transaction of the page sets it when the walk ends, with its sums when it ends well. */
  end?: { sums?: object };
  /** The transaction of the page sets it: tokens with corrected prices. */
  corrected?: readonly bigint[];
}

/**
 * Walks requested markets back through the trades from before their venue's tape was followed, and markets with missing trades through
 * the range that lacks them, in turns. When no such walk is due, it reads stored trades again whose prices may be corrected. Positions
 * live in `trade_history`, `trade_repair` and `trade_reread` and move in the transaction that stores a page, under the lease `history` of
 * the venue, so a process that dies resumes after the last page.
 */
export const backfillTrades = defineJob('backfill-trades', async ({ venue }, context) => {
  const { db, producer, log, stopping } = context;
  const open = (adapter: VenueAdapter): PageSource<TradeRecord, WrittenTrades, BackfillPage> => {
    const store = tradeStore(context, adapter);
    return {
      ...store,
      fetch: takeTurns(context, adapter),
      async write(tx, records, page) {
        if (page.walk.purpose === 'reread') return { written: 0, tokenIds: [] };
        const part = await store.write(tx, records);
        await countHistoryTrades(tx, page.walk, part.written);
        return part;
      },
      finish: finishPage,
      wake(parts, page) {
        // Alerts concern the present. The timer finds the mark of an alert on a trade that is recent all the same.
        producer.wakeStage(
          'fold-candles',
          shardsOf([...parts.flatMap(({ tokenIds }) => tokenIds), ...(page.corrected ?? [])]),
        );
        logPage(log.child({ venue }), page);
      },
    };
  };
  const report = await runPoll(context, { venue, lease: 'history', adapters: context.adapters }, (adapter, start) =>
    walkPages(context, open(adapter), start),
  );
  // A wake-up during the run found the lease taken, so its walk is counted after the release.
  if (!('failed' in report || 'skipped' in report || stopping.aborted)) {
    const counts = await countTradeHistories(db);
    if (counts.some((count) => count.venue === venue && count.due > 0)) producer.wake('backfill-trades', { venue });
  }
  return report;
});

/**
 * Reads page after page of the markets whose turn it is. A market without an answer waits for the next run, and the others go on; at the
 * end the run fails with the first such failure.
 */
function takeTurns(context: JobContext, adapter: VenueAdapter) {
  let turn: { marketPk: bigint; purpose: WalkPurpose; pages: number; endsAtMs: number } | undefined;
  const unanswered: bigint[] = [];
  let failure: VenueError | undefined;
  let inARow = 0;
  let hasAnswer = false;

  /** A timeout is the fault of one market only where others have answers. */
  const isOfMarket = (error: VenueError) => mayBeOfMember(error) || (error.code === 'timeout' && hasAnswer);

  return async (_position: unknown, call: CallContext): Promise<BackfillPage | undefined> => {
    for (;;) {
      const page = await nextPage(call);
      if (page !== 'unanswered') return page;
    }
  };

  async function nextPage(call: CallContext): Promise<BackfillPage | 'unanswered' | undefined> {
    if (turn && (turn.pages >= TURN_PAGES || performance.now() >= turn.endsAtMs)) turn = undefined;
    const walk =
      (await nextTradeHistory(context.db, adapter.venue, turn, unanswered)) ??
      (await nextReread(context, adapter, call, unanswered));
    if (!walk) {
      if (failure) throw failure;
      return undefined;
    }
    const { marketPk, purpose } = walk;
    if (turn?.marketPk !== marketPk || turn.purpose !== purpose) {
      turn = { marketPk, purpose, pages: 0, endsAtMs: performance.now() + TURN_MS };
    }
    turn.pages += 1;
    try {
      const page = rejectUntimely(context, await readPage(walk, adapter, call, tradeFloorMs(context)));
      inARow = 0;
      hasAnswer = true;
      return page;
    } catch (thrown) {
      const isRetryable = thrown instanceof VenueError && thrown.retryable;
      if (!isRetryable && !call.signal.aborted) return { ...EMPTY, walk, failure: asError(thrown).message };
      // An outage concerns every market of the venue. But the venue may never answer for this one, so others come first.
      await touchTradeHistory(context.db, walk);
      inARow += 1;
      const isOver = call.signal.aborted || inARow >= MARKETS_OF_FAILING_HOST;
      if (!isRetryable || isOver || !isOfMarket(thrown)) throw thrown;
      failure ??= thrown;
      unanswered.push(marketPk);
      turn = undefined;
      const { marketId } = walk;
      context.log.debug(
        { venue: adapter.venue, marketId, purpose, ...failureFields(thrown) },
        'trade history unanswered',
      );
      return 'unanswered';
    }
  }
}

/** The walk over the next market of a pass over stored trades; null when no pass is due. */
async function nextReread(
  { db, log }: JobContext,
  { venue }: VenueAdapter,
  { signal }: CallContext,
  except: readonly bigint[],
): Promise<OpenHistory | null> {
  while (!signal.aborted) {
    const step = await nextRereadMarket(db, venue);
    if (!step) return null;
    const { isEnded, ...counts } = step;
    if (isEnded) log.info({ venue, ...counts }, 'prices of stored trades read again');
    const walk = await nextTradeHistory(db, venue, undefined, except);
    if (walk) return walk;
  }
  return null;
}

const EMPTY = { records: [], rejected: [], position: null, more: true };

async function readPage(
  walk: OpenHistory,
  adapter: VenueAdapter,
  call: CallContext,
  floorMs: number,
): Promise<BackfillPage> {
  const { marketId, outcomeIds, toMs } = walk;
  const fromMs = Math.max(walk.fromMs, floorMs);
  if (fromMs >= toMs) return { ...EMPTY, walk, read: { position: null, reachedMs: fromMs, isDone: true } };
  const page = await adapter.pollHistory({ marketId, outcomeIds, fromMs, toMs }, walk.position, call);
  const { records, rejected, position, reachedMs, truncated } = page;
  const result = { ...EMPTY, records, rejected, walk };
  const isDone = !page.more && (reachedMs <= fromMs || truncated !== undefined);
  if (!isDone && !page.more && reachedMs >= (walk.reachedMs ?? toMs)) {
    return { ...result, failure: `the venue gave nothing before ${new Date(reachedMs).toISOString()}` };
  }
  return { ...result, read: { position, reachedMs, isDone, ...(truncated !== undefined && { truncated }) } };
}

/** Moves the walk in the transaction of its page, and announces its first page and its end to waiting requests. */
async function finishPage(tx: Tx, page: BackfillPage): Promise<void> {
  const { walk, read, failure } = page;
  delete page.end;
  delete page.corrected;
  if (failure !== undefined) {
    if (await chargeTradeHistory(tx, walk, failure)) page.end = {};
    if (page.end && walk.purpose === 'reread') await correctPrices(tx, walk, unreadPart(walk, walk.fromMs), []);
  } else if (read) {
    const sums = await advanceTradeHistory(tx, walk, read);
    if (read.isDone && sums !== null) page.end = { sums };
    if (sums !== null && walk.purpose === 'reread') {
      const part = unreadPart(walk, read.isDone ? walk.fromMs : read.reachedMs);
      page.corrected = await correctPrices(tx, walk, part, page.records);
    }
  }
  const isAwaited = walk.purpose === 'history' && (page.end || walk.reachedMs === null);
  if (isAwaited) await announceArrival(tx, `history:${walk.marketPk}`);
}

/** The time of the walk from `fromMs` to the part that earlier pages covered. */
function unreadPart({ reachedMs, toMs }: OpenHistory, fromMs: number): { fromMs: number; toMs: number } {
  return { fromMs, toMs: reachedMs ?? toMs };
}

/** A pass over stored trades has a line at its end, because it walks over every market. */
function logPage(log: Logger, { walk, read, failure, end }: BackfillPage): void {
  const { marketId, purpose } = walk;
  if (purpose === 'reread') return;
  if (failure !== undefined) {
    const message = end ? 'trade history given up' : 'trade history failed';
    log.warn({ marketId, purpose, failures: walk.failures + 1, reason: failure }, message);
  } else if (end) {
    log.info({ marketId, purpose, ...end.sums, missing: read?.truncated }, 'trade history stored');
  }
}
