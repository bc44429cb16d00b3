import { JOBS } from '../../src/queues/jobs.ts';
import type { PageFacts } from '../../src/store/catalog/poll-state.ts';
import type { Tx } from '../../src/store/db/tx.ts';
import type { CallContext, Page } from '../../src/venues/port.ts';
import { type PageStore, recordsOf, storePage, type Written } from '../ingest/store-page.ts';
import type { JobContext } from '../process/define.ts';
import type { PollEnd } from './poll-leases.ts';

/** Pages that are read one after the other, and how they are stored. */
export interface PageSource<R, W, P extends Page<R> = Page<R>> extends PageStore<R, W, P> {
  /** Other work under the lease, before each page. */
  beforePage?(position: unknown, call: CallContext): Promise<void>;
  /** The next page after `position`, read outside any transaction; undefined ends the walk. */
  fetch(position: unknown, call: CallContext): Promise<P | undefined>;
}

/** Where a walk begins. */
export interface WalkStart {
  venue: string;
  position: unknown;
  /** Moves the position in the transaction of a page. Absent: the walk has no position. @throws LeaseLostError */
  advance?(tx: Tx, position: unknown, facts?: PageFacts): Promise<void>;
  /** Moves the position behind a page without news, which has no transaction. @throws LeaseLostError */
  keep?(position: unknown, facts: PageFacts): void;
}

export interface Walked {
  report: { pages: number; records: number; written: number; rejected: number };
  position: PollEnd['position'];
  requests: PollEnd['requests'];
}

/** A walk ends for this tick after this many pages or this long. Half the deadline of the job leaves the last page enough time. */
const MAX_PAGES = 500;
const WALK_MS = JOBS['poll-markets'].deadlineMs / 2;

/** Reads and stores pages, until the venue has no more, the tick is over or the signal fires. */
export async function walkPages<R, W extends Written, P extends Page<R>>(
  context: JobContext,
  source: PageSource<R, W, P>,
  start: WalkStart,
  maxPages = MAX_PAGES,
): Promise<Walked> {
  const { walked, isOver, store } = beginWalk(context, source, start, maxPages);
  const call = { signal: context.signal, now: context.now };
  try {
    for (let hasMore = true; hasMore && !isOver(); ) {
      await source.beforePage?.(walked.position, call);
      const page = await source.fetch(walked.position, call);
      if (!page) break;
      await store(page);
      // The page is stored, so the next walk begins behind it.
      if (page.fault) throw page.fault;
      hasMore = page.more;
    }
  } finally {
    await source.end?.();
  }
  return walked;
}

/** The state of a walk, its limits, and the function that stores its next page. */
export function beginWalk<R, W extends Written, P extends Page<R>>(
  context: JobContext,
  pages: PageStore<R, W, P>,
  { venue, position, advance, keep }: WalkStart,
  maxPages = MAX_PAGES,
) {
  const report = { pages: 0, records: 0, written: 0, rejected: 0 };
  const walked: Walked = { report, position, requests: 'none' };
  const endsAtMs = performance.now() + WALK_MS;
  return {
    walked,
    /** True when no request may begin beside those in flight. */
    isOver: (inFlight = 0) =>
      report.pages + inFlight >= maxPages || performance.now() >= endsAtMs || context.signal.aborted,
    async store(page: P): Promise<void> {
      const { position: before } = walked;
      const { written, rejected } = await storePage(context, pages, page, {
        venue,
        advance: async (tx, isLast) => (isLast ? advance?.(tx, page.position, page) : advance?.(tx, before)),
        ...(keep && { keep: () => keep(page.position, page) }),
      });
      walked.position = page.position;
      if (!page.isIdle) walked.requests = 'sent';
      else if (walked.requests === 'none') walked.requests = 'nothing to request';
      report.pages += 1;
      report.records += recordsOf(page);
      report.written += written;
      report.rejected += rejected;
    },
  };
}
