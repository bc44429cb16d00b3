import { asError } from '../../domain/values/errors.ts';
import { isHttpStatus, VenueError } from '../errors.ts';
import { readModel } from '../rejection.ts';
import { KALSHI, type KalshiClient, type ListAnswer, type Parameters } from './client.ts';
import { fieldOf, type KalshiSeries, kalshiSeries } from './models.ts';
import { isCombination } from './tickers.ts';

/** A full listing has megabytes, mostly legal text, and a series hardly ever changes. */
const FULL_EVERY_MS = 6 * 3_600_000;
const CHANGES_EVERY_MS = 30 * 60_000;
/** A new series appears with its first event: the changes are then read at once, but no more often than this. */
const UNKNOWN_EVERY_MS = 60_000;
/** The clocks of the venue and of this machine differ. */
const OVERLAP_SECONDS = 120;
/** Between attempts after a failure; doubles up to `CHANGES_EVERY_MS`. */
const RETRY_MS = 60_000;
/** The documented route has no pages; an answer with a cursor is followed this far. */
const MAX_PAGES = 100;

/** The series of markets by ticker: they have the category and the tags, which events no longer have. */
export interface SeriesDirectory {
  /**
   * The market rows with the facts of their series. A row is marked `is_summary` when its event is unknown, or when its series is unknown
   * because no listing of series has succeeded yet. It does not fail with the venue; it throws VenueError only when aborted.
   */
  complete(rows: readonly unknown[], nowMs: number, signal: AbortSignal): Promise<unknown[]>;
}

/** `onFailure` gets the reason of each failed listing. The series known so far stay in use. */
export function createSeriesDirectory(
  client: Pick<KalshiClient, 'listSeries'>,
  onFailure: (detail: string) => void,
): SeriesDirectory {
  const known = new Map<string, KalshiSeries>();
  /** Series that a listing did not have: they do not trigger another listing. */
  const unlisted = new Set<string>();
  let fullAtMs: number | undefined;
  let readAtMs: number | undefined;
  let failures = 0;
  let retryAtMs: number | undefined;
  let canListChanges = true;
  let inFlight: Promise<void> | undefined;

  function wanted(tickers: readonly string[], nowMs: number): 'full' | 'changes' | undefined {
    if (retryAtMs !== undefined && nowMs < retryAtMs && retryAtMs - nowMs <= CHANGES_EVERY_MS) return undefined;
    if (fullAtMs === undefined || readAtMs === undefined || isOlder(fullAtMs, nowMs, FULL_EVERY_MS)) return 'full';
    const hasUnknown = tickers.some((ticker) => !known.has(ticker) && !unlisted.has(ticker));
    if (!isOlder(readAtMs, nowMs, hasUnknown ? UNKNOWN_EVERY_MS : CHANGES_EVERY_MS)) return undefined;
    return canListChanges ? 'changes' : 'full';
  }

  async function read(scope: 'full' | 'changes', nowMs: number, signal: AbortSignal): Promise<void> {
    if (scope === 'full' || readAtMs === undefined) {
      const count = await learn({}, signal);
      if (count === 0) throw new VenueError(KALSHI, 'invalid_payload', 'no series is readable', { retryable: true });
      fullAtMs = nowMs;
      unlisted.clear();
      return;
    }
    try {
      await learn({ min_updated_ts: Math.floor(readAtMs / 1000) - OVERLAP_SECONDS }, signal);
    } catch (error) {
      if (!isHttpStatus(error, [400, 422])) throw error;
      canListChanges = false;
      await read('full', nowMs, signal);
    }
  }

  /** Returns the number of readable series. */
  async function learn(filter: Parameters, signal: AbortSignal): Promise<number> {
    let count = 0;
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const answer: ListAnswer = await client.listSeries({ ...filter, cursor }, signal);
      for (const row of answer.rows) {
        const reading = readModel(kalshiSeries, row);
        if (!reading.ok) continue;
        known.set(reading.value.ticker, reading.value);
        unlisted.delete(reading.value.ticker);
        count += 1;
      }
      if (answer.nextCursor === undefined || answer.nextCursor === cursor) return count;
      cursor = answer.nextCursor;
    }
    return count;
  }

  async function refresh(tickers: readonly string[], nowMs: number, signal: AbortSignal): Promise<void> {
    const scope = wanted(tickers, nowMs);
    if (scope === undefined) return;
    // Set first: the next call must not repeat an attempt that outlasted the deadline of this one.
    retryAtMs = nowMs + Math.min(RETRY_MS * 2 ** failures, CHANGES_EVERY_MS);
    failures += 1;
    try {
      await read(scope, nowMs, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      onFailure(`series: ${asError(error).message}`);
      return;
    }
    failures = 0;
    retryAtMs = undefined;
    readAtMs = nowMs;
    for (const ticker of tickers) if (!known.has(ticker)) unlisted.add(ticker);
  }

  function withSeries(row: unknown): unknown {
    if (row === null || typeof row !== 'object' || Array.isArray(row)) return row;
    const ticker = seriesTickerOf(row);
    const series = ticker === undefined ? undefined : known.get(ticker);
    const isUnread = ticker !== undefined && fullAtMs === undefined;
    const is_summary = series === undefined && (isUnread || fieldOf(row, 'event') === undefined);
    return { ...row, series, is_summary };
  }

  return {
    async complete(rows, nowMs, signal) {
      const tickers = rows.filter((row) => !isCombination(row)).map(seriesTickerOf);
      const asked = [...new Set(tickers.filter((ticker) => ticker !== undefined))];
      if (asked.length > 0) {
        inFlight ??= refresh(asked, nowMs, signal).finally(() => {
          inFlight = undefined;
        });
        await inFlight.catch((error: unknown) => {
          // The listing may belong to another call, which was aborted.
          if (signal.aborted) throw error;
        });
      }
      return rows.map(withSeries);
    },
  };
}

function seriesTickerOf(row: unknown): string | undefined {
  const ticker = fieldOf(fieldOf(row, 'event'), 'series_ticker');
  return typeof ticker === 'string' && ticker !== '' ? ticker : undefined;
}

/** After a clock was set back, every time counts as older. */
function isOlder(atMs: number, nowMs: number, ageMs: number): boolean {
  return nowMs < atMs || nowMs - atMs >= ageMs;
}
