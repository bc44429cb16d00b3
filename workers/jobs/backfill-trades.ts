import type { TradeRecord } from '../../src/domain/markets/market.ts';
import { asError } from '../../src/domain/values/errors.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { announceArrival } from '../../src/store/catalog/arrivals.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import {
  advanceTradeHistory,
  chargeTradeHistory,
  countHistoryTrades,
  countTradeHistories,
  nextTradeHistory,
  type OpenHistory,
  touchTradeHistory,
} from '../../src/store/series/trade-walks.ts';
import { VenueError } from '../../src/venues/errors.ts';
import type { CallContext, HistoryPage, Page, VenueAdapter } from '../../src/venues/port.ts';
import { runPoll } from '../polling/polling.ts';
import { prepareForTrades, tradeFloorMs, writeTradePage } from '../polling/trade-page.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** A market has the floor for so long at most while others wait; one that was never touched gets it after the next page. */
const SLICE_MS = 5_000;
const SLICE_PAGES = 20;

/** A page of one market's walk, or why there is none. */
interface BackfillPage extends Page<TradeRecord> {
  /** Absent: no walk is due. */
  walk?: OpenHistory;
  read?: Pick<HistoryPage, 'position' | 'reachedMs' | 'truncated'> & { isDone: boolean };
  /** Why this try counts as failed. */
  failure?: string;
  /** Says what an operator should know, once, when the page is committed. */
  tell?: () => void;
}

/**
 * Walks markets back through the trades that were made before their venue's tape was followed, those that were asked for,
 * in turn (DESIGN "Cold reads"). Positions live in `trade_history` and move in the transaction that stores a page, under the
 * lease `history` of the venue: dying anywhere goes on behind the last page.
 */
export const backfillTrades = defineJob('backfill-trades', async ({ venue }, context) => {
  const turns = takeTurns(context, venue);
  const report = await runPoll<TradeRecord, BackfillPage>(context, {
    venue,
    kind: 'trades',
    leaseKind: 'history',
    fetch: (adapter, _position, call) => turns.nextPage(adapter, call),
    prepare: (records) => prepareForTrades(context, records),
    async write(tx, records, adapter, page) {
      const { inserted, quarantined, tokenIds, count } = await writeTradePage(context, tx, records, adapter);
      if (page.walk) await countHistoryTrades(tx, page.walk.marketPk, inserted);
      return {
        written: inserted,
        quarantined,
        wake: () => {
          count();
          // Alerts look at the present; should one be concerned after all, its mark is found by the timer.
          context.producer.wakeStage('fold-candles', shardsOf(tokenIds));
          const { tell } = page;
          delete page.tell;
          tell?.();
        },
      };
    },
    finish: (tx, page) => finishPage(tx, page, context.log.child({ venue })),
  });
  // Looked at once the lease is free: whoever was asked meanwhile and found it taken is counted on here.
  if (!('failed' in report || 'skipped' in report || context.stopping.aborted)) {
    const counts = await countTradeHistories(context.db);
    if (counts.some((count) => count.venue === venue && count.due > 0))
      context.producer.wake('backfill-trades', { venue });
  }
  return report;
});

/** Whose turn it is, page by page. */
function takeTurns(context: JobContext, venue: string) {
  let turn: { marketPk: bigint; pages: number; endsAtMs: number } | undefined;

  return {
    async nextPage(adapter: VenueAdapter, call: CallContext): Promise<BackfillPage> {
      if (turn && (turn.pages >= SLICE_PAGES || performance.now() >= turn.endsAtMs)) turn = undefined;
      const walk = await nextTradeHistory(context.db, venue, turn?.marketPk);
      if (!walk) return { ...NOTHING, more: false };
      if (turn?.marketPk !== walk.marketPk) {
        turn = { marketPk: walk.marketPk, pages: 0, endsAtMs: performance.now() + SLICE_MS };
      }
      turn.pages += 1;
      try {
        return await readPage(walk, adapter, call, tradeFloorMs(context));
      } catch (thrown) {
        // An outage is the venue's, and the same for every market; yet it may be that only this one is never answered.
        if ((thrown instanceof VenueError && thrown.retryable) || call.signal.aborted) {
          await touchTradeHistory(context.db, walk.marketPk);
          throw thrown;
        }
        return { ...NOTHING, more: true, walk, failure: asError(thrown).message };
      }
    },
  };
}

const NOTHING = { records: [], rejected: [], position: null };

async function readPage(
  walk: OpenHistory,
  adapter: VenueAdapter,
  call: CallContext,
  floorMs: number,
): Promise<BackfillPage> {
  const { marketId, outcomeIds, toMs } = walk;
  const fromMs = Math.max(walk.fromMs, floorMs);
  if (fromMs >= toMs) {
    return { ...NOTHING, more: true, walk, read: { position: null, reachedMs: fromMs, isDone: true } };
  }
  const page = await adapter.pollHistory({ marketId, outcomeIds, fromMs, toMs }, walk.position, call);
  const { records, rejected, position, reachedMs, truncated } = page;
  const result = { records, rejected, position: null, more: true, walk };
  const isDone = !page.more && (reachedMs <= fromMs || truncated !== undefined);
  if (!isDone && !page.more && reachedMs >= (walk.reachedMs ?? toMs)) {
    return { ...result, failure: `the venue gave nothing before ${new Date(reachedMs).toISOString()}` };
  }
  return { ...result, read: { position, reachedMs, isDone, ...(truncated !== undefined && { truncated }) } };
}

/** Moves the walk, in the transaction of its page, and tells those who wait for the first one. */
async function finishPage(tx: Tx, page: BackfillPage, log: Logger): Promise<void> {
  const { walk, read, failure } = page;
  if (!walk) return;
  const { marketId } = walk;
  let isOver = false;
  if (failure !== undefined) {
    isOver = await chargeTradeHistory(tx, walk, failure);
    const words = isOver ? 'trade history given up' : 'trade history failed';
    page.tell = () => log.warn({ marketId, failures: walk.failures + 1, reason: failure }, words);
  } else if (read) {
    const sums = await advanceTradeHistory(tx, walk, read);
    isOver = read.isDone && sums !== null;
    if (isOver) page.tell = () => log.info({ marketId, ...sums, missing: read.truncated }, 'trade history stored');
  }
  if (isOver || walk.reachedMs === null) await announceArrival(tx, `history:${walk.marketPk}`);
}
