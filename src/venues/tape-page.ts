import type { TradeRecord } from '../domain/markets/market.ts';
import type { ParsedBatch } from './parsed-batch.ts';
import type { TapePage } from './port.ts';
import type { Report } from './report.ts';

/** Far below the deadline of a poll: a slow machine stores its pages before its tick ends. */
const CALL_MS = 10_000;

/** Tells when a call that begins now, and reads several pages, begins no further one. The next call continues at its position. */
export function callEnd(callMs = CALL_MS): () => boolean {
  const endsAtMs = performance.now() + callMs;
  return () => performance.now() >= endsAtMs;
}

/** A page of a tape whose position has a walk in progress, gaps to fill, and the time at which the newest trades were read. */
interface WalkedPage {
  rows: readonly unknown[];
  position: { walk?: unknown; gaps: readonly unknown[]; headAtMs: number };
  more: boolean;
  truncated?: string | undefined;
}

/** The page with its trades, counted in the report. It has caught up when nothing is left to be read. */
export function tapePage(report: Report, page: WalkedPage, batch: ParsedBatch<TradeRecord>): TapePage {
  report.truncated('trades', page.truncated);
  const { position, more } = page;
  const isCaughtUp = position.walk === undefined && position.gaps.length === 0;
  return {
    ...report.counted('trades', page.rows.length, batch),
    position,
    more,
    ...(isCaughtUp && { caughtUpMs: position.headAtMs }),
  };
}
