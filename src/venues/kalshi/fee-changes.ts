import type { z } from 'zod';
import { asError } from '../../domain/values/errors.ts';
import { VenueError } from '../errors.ts';
import { readModel } from '../rejection.ts';
import { KALSHI, type KalshiClient, type ListAnswer } from './client.ts';
import type { FeeChanges } from './fees.ts';
import { eventFeeChange, fieldOf, type KalshiFeeChange, seriesFeeChange } from './models.ts';
import { isCombination } from './tickers.ts';

/** Changes are announced days before. */
const EVERY_MS = 30 * 60_000;
/** After a failure. */
const RETRY_MS = 5 * 60_000;
const PAGE_SIZE = 200;
const MAX_PAGES = 50;
/** The last changes of one series or event. */
const MAX_CHANGES = 50;
/** The route of events lists no past change, and the facts of an event may be so old. */
const KEEP_PAST_MS = 12 * 3_600_000;

type ByTicker = Map<string, KalshiFeeChange[]>;

/** The changes of fees that the venue states. */
export interface FeeChangeDirectory {
  /**
   * The market rows with the changes of their series and event as `fee_changes`, absent while they could not be read. It does not fail with
   * the venue; it throws VenueError only when aborted.
   */
  complete(rows: readonly unknown[], nowMs: number, signal: AbortSignal): Promise<unknown[]>;
}

/** `onFailure` gets the reason of each failed read. The changes known so far stay in use for an hour. */
export function createFeeChangeDirectory(
  client: Pick<KalshiClient, 'listSeriesFeeChanges' | 'listEventFeeChanges'>,
  onFailure: (detail: string) => void,
): FeeChangeDirectory {
  let known: { series: ByTicker; events: ByTicker; atMs: number } | undefined;
  let triedAtMs: number | undefined;
  let inFlight: Promise<void> | undefined;

  async function read(nowMs: number, signal: AbortSignal): Promise<void> {
    triedAtMs = nowMs;
    try {
      const series = grouped(await client.listSeriesFeeChanges(signal), 'series_ticker', seriesFeeChange);
      const events = grouped(await listEventChanges(signal), 'event_ticker', eventFeeChange);
      for (const [ticker, before] of known?.events ?? []) {
        const past = before.filter(({ atMs }) => atMs <= nowMs && atMs > nowMs - KEEP_PAST_MS);
        if (past.length > 0) events.set(ticker, [...past, ...(events.get(ticker) ?? [])]);
      }
      known = { series, events, atMs: nowMs };
    } catch (error) {
      if (signal.aborted) throw error;
      if (known !== undefined && nowMs - known.atMs > 2 * EVERY_MS) known = undefined;
      onFailure(`changes of fees: ${asError(error).message}`);
    }
  }

  async function listEventChanges(signal: AbortSignal): Promise<unknown[]> {
    const rows: unknown[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const answer: ListAnswer = await client.listEventFeeChanges({ limit: PAGE_SIZE, cursor }, signal);
      rows.push(...answer.rows);
      if (answer.nextCursor === undefined) return rows;
      cursor = answer.nextCursor;
    }
    throw new VenueError(KALSHI, 'invalid_payload', `more than ${MAX_PAGES} pages of events`, { retryable: true });
  }

  const isDue = (nowMs: number) => {
    if (triedAtMs === undefined || nowMs < triedAtMs) return true;
    return nowMs - triedAtMs >= (known?.atMs === triedAtMs ? EVERY_MS : RETRY_MS);
  };

  return {
    async complete(rows, nowMs, signal) {
      const needsChanges = rows.some((row) => !isCombination(row));
      if (needsChanges && (inFlight !== undefined || isDue(nowMs))) {
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
        const fee_changes: FeeChanges = {
          readAtMs: known.atMs,
          ofSeries: known.series.get(String(fieldOf(fieldOf(row, 'event'), 'series_ticker'))) ?? [],
          ofEvent: known.events.get(String(fieldOf(row, 'event_ticker'))) ?? [],
        };
        return { ...row, fee_changes };
      });
    },
  };
}

/**
 * The changes by ticker, the last ones, in the order of their times.
 * @throws VenueError when a change is unreadable: without it the list would look complete
 */
function grouped(rows: readonly unknown[], key: string, model: z.ZodType<KalshiFeeChange>): ByTicker {
  const groups: ByTicker = new Map();
  for (const row of rows) {
    const reading = readModel(model, row);
    const ticker = fieldOf(row, key);
    if (!reading.ok || typeof ticker !== 'string') {
      throw new VenueError(KALSHI, 'invalid_payload', 'a change of a fee is not readable', { retryable: true });
    }
    const group = groups.get(ticker);
    if (group) group.push(reading.value);
    else groups.set(ticker, [reading.value]);
  }
  for (const [ticker, group] of groups) {
    group.sort((a, b) => a.atMs - b.atMs);
    groups.set(ticker, group.slice(-MAX_CHANGES));
  }
  return groups;
}
