import type { PriceRecord } from '../../src/domain/markets/market.ts';
import { asError } from '../../src/domain/values/errors.ts';
import { forwardAbort } from '../../src/domain/values/signals.ts';
import type { CallContext } from '../../src/venues/port.ts';
import { priceStore, type SweptPrices } from '../ingest/price-store.ts';
import type { PageStore } from '../ingest/store-page.ts';
import type { JobContext } from '../process/define.ts';
import { beginWalk, type RequestedPage, type Walked, type WalkStart } from './poll.ts';

/** Counts of a sweep over the prices of a venue. The position contains them, because a sweep may take several ticks. */
interface SweepTally {
  /** Epoch milliseconds. */
  startedAtMs: number;
  pages: number;
  markets: number;
  /** Prices that the sweep changed. */
  changed: number;
  /** Prices of markets that are not stored as tradable. */
  skipped: number;
  /** Batches or parts that were not read, or not completely; absent without any. */
  failed?: number;
}

/** How the requests of a sweep follow each other. `S` is a position within a sweep, and `Q` requests one page. */
export interface SweepSource<S extends object, Q> {
  /** Requests in flight at once. */
  readonly atOnce: number;
  /** The position of an incomplete sweep among stored positions; undefined for others. */
  resume(stored: unknown): S | undefined;
  /** The position of a new sweep. `stored`: the last one of the sweep before. */
  begin(startedAtMs: number, stored: unknown): S;
  /** The next request beside those in flight; undefined while none can begin. */
  take(position: S, inFlight: ReadonlySet<Q>): Promise<Q | undefined>;
  /** Reads a page. */
  fetch(request: Q, call: CallContext): Promise<SweepAnswer<S>>;
}

interface SweepAnswer<S> extends Omit<RequestedPage<PriceRecord>, 'position' | 'more'> {
  markets: number;
  skipped: number;
  /** The position with this page, once it is stored: `before` contains every page stored before. */
  place(before: S): { position: S | null; isSweepEnd: boolean; isFailed: boolean };
}

interface SweptPage extends RequestedPage<PriceRecord> {
  tally: SweepTally;
  isSweepEnd: boolean;
}

/**
 * Hands out requests up to `atOnce`, and stores each page when no other page is being stored, in the order of arrival. A position contains
 * only stored pages, so a process that dies repeats the pages in flight. After a failed request no further one begins; the pages in flight
 * are stored before the walk throws. A page with a fault is stored too: the next walk begins behind it. A page that cannot be stored aborts
 * the others. The first sweep of a tick is always due, the next one after the interval.
 */
export async function sweepPages<S extends object, Q>(
  context: JobContext,
  source: SweepSource<S, Q>,
  start: WalkStart,
): Promise<Walked> {
  const { config, now } = context;
  const tallied = tallyOf(start.position);
  const resumed = tallied && source.resume(start.position);
  let at = resumed ? { ...resumed, tally: tallied } : begun(start.position);
  let { changed } = at.tally;
  let isEnded = false;
  const prices = priceStore(context);
  const pages: PageStore<PriceRecord, SweptPrices, SweptPage> = {
    ...prices,
    wake(written, { tally, isSweepEnd }) {
      prices.wake(written);
      for (const part of written) changed += part.written;
      if (isSweepEnd) reportSweep(context, start.venue, { ...tally, changed });
    },
  };
  const { walked, isOver, store } = beginWalk(context, pages, { ...start, position: at });
  const unstorable = new AbortController();
  const unlink = forwardAbort(context.signal, unstorable);
  const call = { signal: unstorable.signal, now };
  const errors: Error[] = [];
  const inFlight = new Map<Q, Promise<void>>();
  let lastStore = Promise.resolve();

  function begun(stored: unknown): S & { tally: SweepTally } {
    const startedAtMs = now();
    const tally = { startedAtMs, pages: 0, markets: 0, changed: 0, skipped: 0 };
    return { ...source.begin(startedAtMs, stored), tally };
  }

  async function take(): Promise<Q | undefined> {
    try {
      return isEnded ? undefined : await source.take(at, new Set(inFlight.keys()));
    } catch (error) {
      errors.push(asError(error));
      return undefined;
    }
  }

  async function read(request: Q): Promise<void> {
    try {
      const answer = await source.fetch(request, call);
      lastStore = lastStore.then(() => keep(answer));
      await lastStore;
    } catch (error) {
      errors.push(asError(error));
    } finally {
      inFlight.delete(request);
    }
  }

  async function keep({ markets, skipped, place, ...batch }: SweepAnswer<S>): Promise<void> {
    try {
      const { position, isSweepEnd, isFailed } = place(at);
      const { tally: before } = at;
      // The changes of this page are known after its transaction: the next page counts them.
      const counts = { pages: before.pages + 1, markets: before.markets + markets, changed };
      const failed = isFailed && { failed: (before.failed ?? 0) + 1 };
      const tally = { ...before, ...counts, skipped: before.skipped + skipped, ...failed };
      const after = position && { ...position, tally };
      await store({ ...batch, position: after, more: !isSweepEnd, tally, isSweepEnd });
      at = { ...at, ...after, tally };
      isEnded = isSweepEnd;
      if (batch.fault) errors.push(batch.fault);
    } catch (error) {
      errors.push(asError(error));
      unstorable.abort();
    }
  }

  try {
    for (;;) {
      while (inFlight.size < source.atOnce && errors.length === 0 && !isOver(inFlight.size)) {
        const request = await take();
        if (request === undefined) break;
        inFlight.set(request, read(request));
      }
      if (inFlight.size > 0) {
        await Promise.race(inFlight.values());
        continue;
      }
      if (errors.length > 0 || isOver() || now() - at.tally.startedAtMs < config.pollMs.prices) break;
      at = begun(walked.position);
      walked.position = at;
      changed = 0;
      isEnded = false;
    }
  } finally {
    unlink();
    await prices.end();
  }
  const [error] = errors;
  if (error) throw error;
  return walked;
}

function reportSweep({ log, metrics, now }: JobContext, venue: string, tally: SweepTally): void {
  const seconds = Math.max(0, now() - tally.startedAtMs) / 1000;
  const { pages, markets, changed, skipped, failed } = tally;
  if (failed !== undefined) {
    log.warn({ venue, seconds, markets, pages, changed, skipped, failed }, 'price sweep ended with unread prices');
    return;
  }
  metrics.priceSweep.set({ venue }, seconds);
  log.info({ venue, seconds, markets, pages, changed, skipped }, 'price sweep complete');
}

/** The counts in a stored position; undefined when it has none. */
function tallyOf(position: unknown): SweepTally | undefined {
  const { tally } = (position ?? {}) as { tally?: Partial<SweepTally> };
  const { startedAtMs, pages, markets, changed, skipped } = tally ?? {};
  const areCounts = [startedAtMs, pages, markets, changed, skipped].every(Number.isSafeInteger);
  return areCounts ? (tally as SweepTally) : undefined;
}
