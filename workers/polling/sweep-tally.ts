import type { PriceRecord } from '../../src/domain/markets/market.ts';
import type { JobContext } from '../process/define.ts';
import type { OverlappingSource } from './polling.ts';
import type { RequestedPage, SweptPrices } from './price-page.ts';

/** Counts of a sweep over the prices of a venue. The position contains them, because a sweep may take several ticks. */
export interface SweepTally {
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

export interface SweptPage extends RequestedPage<PriceRecord> {
  tally: SweepTally;
  isSweepEnd: boolean;
}

/** Sweeps over the prices of a venue; `Q` requests one page. */
export type SweepSource<Q> = OverlappingSource<Q, PriceRecord, SweptPrices, SweptPage>;

/** The sweeps of one tick. */
export interface SweepClock {
  /** Continues the sweep of a stored position. */
  resume(tally: SweepTally): void;
  /** The counts of a new sweep; undefined while the interval of the last one is not over. The first sweep of a tick is always due. */
  begin(): SweepTally | undefined;
  /** The counts with one more page. The page's changes are known after its transaction: the next page counts them. */
  counted(before: SweepTally, page: { markets: number; skipped: number; isFailed: boolean }): SweepTally;
  /** Takes a stored page; reports the sweep at its last one. */
  stored(written: readonly SweptPrices[], page: SweptPage): void;
}

export function sweepClock({ config, log, metrics, now }: JobContext, venue: string): SweepClock {
  let startedAtMs: number | undefined;
  let changed = 0;
  return {
    resume(tally) {
      ({ startedAtMs, changed } = tally);
    },
    begin() {
      const nowMs = now();
      if (startedAtMs !== undefined && nowMs - startedAtMs < config.pollMs.prices) return undefined;
      startedAtMs = nowMs;
      changed = 0;
      return { startedAtMs, pages: 0, markets: 0, changed, skipped: 0 };
    },
    counted({ pages, markets, skipped, ...before }, page) {
      const counts = { pages: pages + 1, markets: markets + page.markets, changed, skipped: skipped + page.skipped };
      return { ...before, ...counts, ...(page.isFailed && { failed: (before.failed ?? 0) + 1 }) };
    },
    stored(written, { tally, isSweepEnd }) {
      for (const part of written) changed += part.written;
      if (!isSweepEnd) return;
      const seconds = Math.max(0, now() - tally.startedAtMs) / 1000;
      const { pages, markets, skipped, failed } = tally;
      if (failed !== undefined) {
        log.warn({ venue, seconds, markets, pages, changed, skipped, failed }, 'price sweep ended with unread prices');
        return;
      }
      metrics.priceSweep.set({ venue }, seconds);
      log.info({ venue, seconds, markets, pages, changed, skipped }, 'price sweep complete');
    },
  };
}

/** The counts in a stored position; undefined when it has none. */
export function tallyOf(position: unknown): SweepTally | undefined {
  const { tally } = (position ?? {}) as { tally?: Partial<SweepTally> };
  const { startedAtMs, pages, markets, changed, skipped } = tally ?? {};
  const areCounts = [startedAtMs, pages, markets, changed, skipped].every(Number.isSafeInteger);
  return areCounts ? (tally as SweepTally) : undefined;
}
