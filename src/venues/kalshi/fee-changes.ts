import { asError } from '../../domain/values/errors.ts';
import { VenueError } from '../errors.ts';
import { readModel } from '../rejection.ts';
import type { KalshiClient, ListAnswer } from './client.ts';
import type { AnnouncedFees } from './fees.ts';
import { type KalshiFeeChange, kalshiFeeChange } from './models.ts';
import { fieldOf } from './parse-market.ts';

/** Changes are announced days before. */
const EVERY_MS = 30 * 60_000;
/** After a failure. */
const RETRY_MS = 5 * 60_000;
const MAX_PAGES = 20;

/** The changes of fees that the venue announces. */
export interface FeeChangeDirectory {
  /**
   * The market rows with the announced changes of their series and event as `announced`, absent while they could not be read. It does not
   * fail with the venue; it throws VenueError only when aborted.
   */
  complete(rows: readonly unknown[], nowMs: number, signal: AbortSignal): Promise<unknown[]>;
}

/** `onFailure` gets the reason of each failed read. The changes known so far stay in use until the next read is due twice. */
export function createFeeChangeDirectory(
  client: Pick<KalshiClient, 'listSeriesFeeChanges' | 'listEventFeeChanges'>,
  onFailure: (detail: string) => void,
): FeeChangeDirectory {
  let known:
    | { series: Map<string, KalshiFeeChange[]>; events: Map<string, KalshiFeeChange[]>; atMs: number }
    | undefined;
  let triedAtMs: number | undefined;
  let inFlight: Promise<void> | undefined;

  async function read(nowMs: number, signal: AbortSignal): Promise<void> {
    triedAtMs = nowMs;
    try {
      const series = grouped(await client.listSeriesFeeChanges(signal), 'series_ticker');
      const rows: unknown[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const answer: ListAnswer = await client.listEventFeeChanges({ cursor }, signal);
        rows.push(...answer.rows);
        if (answer.nextCursor === undefined || answer.nextCursor === cursor) break;
        cursor = answer.nextCursor;
      }
      known = { series, events: grouped(rows, 'event_ticker'), atMs: nowMs };
    } catch (error) {
      if (signal.aborted) throw error;
      if (known !== undefined && nowMs - known.atMs > 2 * EVERY_MS) known = undefined;
      onFailure(`changes of fees: ${asError(error).message}`);
    }
  }

  const isDue = (nowMs: number) => {
    if (triedAtMs === undefined || nowMs < triedAtMs) return true;
    return nowMs - triedAtMs >= (known?.atMs === triedAtMs ? EVERY_MS : RETRY_MS);
  };

  return {
    async complete(rows, nowMs, signal) {
      if (rows.length > 0 && (inFlight !== undefined || isDue(nowMs))) {
        inFlight ??= read(nowMs, signal).finally(() => {
          inFlight = undefined;
        });
        await inFlight.catch((error: unknown) => {
          // The read may belong to another call, which was aborted.
          if (signal.aborted) throw error;
        });
      }
      return rows.map((row) => {
        if (known === undefined || row === null || typeof row !== 'object' || Array.isArray(row)) return row;
        const announced: AnnouncedFees = {
          ofSeries: known.series.get(String(fieldOf(fieldOf(row, 'event'), 'series_ticker'))) ?? [],
          ofEvent: known.events.get(String(fieldOf(row, 'event_ticker'))) ?? [],
        };
        return { ...row, announced };
      });
    },
  };
}

/** @throws VenueError when a change is unreadable: without it the list would look complete */
function grouped(rows: readonly unknown[], key: string): Map<string, KalshiFeeChange[]> {
  const groups = new Map<string, KalshiFeeChange[]>();
  for (const row of rows) {
    const reading = readModel(kalshiFeeChange, row);
    const ticker = fieldOf(row, key);
    if (!reading.ok || typeof ticker !== 'string') {
      throw new VenueError('kalshi', 'invalid_payload', 'a change of a fee is not readable', { retryable: true });
    }
    groups.set(ticker, [...(groups.get(ticker) ?? []), reading.value]);
  }
  return groups;
}
