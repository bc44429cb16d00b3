import { isHttpStatus, mayBeOfMember, VenueError } from '../errors.ts';
import { observedAtMs } from '../http/age.ts';
import { readingSize } from '../http/answer-memory.ts';
import { withTime } from '../parsed-batch.ts';
import type { PriceSweep } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import type { Report } from '../report.ts';
import { parseVenueTimeMs } from '../venue-time.ts';
import type { KalshiClient, ListAnswer } from './client.ts';
import { fieldOf } from './models.ts';
import { parsePrices } from './parse-price.ts';
import {
  afterFailure,
  afterPage,
  afterRefusal,
  isHostFailing,
  isNarrowed,
  nextFilters,
  openParts,
  readPart,
  type Step,
} from './sweep-windows.ts';

export interface SweepSettings {
  /** The venue allows 1,000. */
  marketsPerPage: number;
  /** Requests in flight at once. */
  atOnce: number;
}

/** Prices of all open markets from `GET /markets`, in [windows](./sweep-windows.ts) that overlap. */
export function createPriceSweep(client: KalshiClient, settings: SweepSettings, report: Report): PriceSweep {
  return {
    atOnce: settings.atOnce,
    parts: openParts,
    async fetch(stored, { signal, now }) {
      const part = readPart(stored);
      const nothing = { records: [], rejected: [], markets: 0 };
      // The next sweep makes new parts.
      if (part === undefined) return { ...nothing, part: stored, more: false };
      const end = ({ part: next, more, cutShort }: Step) => {
        report.truncated('prices', cutShort && `${part.listing} of the price sweep: ${cutShort}`);
        return { part: next, more };
      };
      try {
        const parameters = { limit: settings.marketsPerPage, ...nextFilters(part) };
        // The last failure before the host is at fault counts for the breaker.
        const request = isHostFailing(part) ? undefined : { isPart: isNarrowed(part) };
        const answer = await client.readAllQuotes(parameters, signal, request, readQuotes);
        const { rows, nextCursor, created, prices } = answer.reading;
        const batch = report.counted('prices', rows, withTime(prices, observedAtMs(answer, now())), 2);
        const markets = part.listing === 'rest' ? 0 : rows;
        return { ...batch, markets, ...end(afterPage(part, nextCursor, created)) };
      } catch (error) {
        if (!(error instanceof VenueError) || signal.aborted) throw error;
        if (isHttpStatus(error, [400, 422]))
          return { ...nothing, ...end(afterRefusal(part, `HTTP ${error.statusCode}`)) };
        if (!mayBeOfMember(error) || isHostFailing(part)) throw error;
        const { skipped, ...step } = afterFailure(part, now(), error.message);
        if (skipped === undefined) return { ...nothing, ...end(step) };
        const { from, to } = part;
        const rejection = { reason: 'page_unavailable', detail: skipped };
        const rejected = [rejectRecord('prices', { from, to }, rejection, `created ${from}`)];
        return { ...nothing, ...report.counted('prices', 1, { records: [], rejected }), ...end(step) };
      }
    },
  };
}

/** A page, with the time of its answer at 0. */
function readQuotes({ rows, nextCursor }: ListAnswer) {
  const prices = parsePrices(rows, 0);
  const size = readingSize(rows.length, prices.rejected);
  return { size, rows: rows.length, nextCursor, created: rows.map(createdSecondOf), prices };
}

function createdSecondOf(row: unknown): number | undefined {
  const ms = parseVenueTimeMs(fieldOf(row, 'created_time'));
  return ms === undefined ? undefined : Math.floor(ms / 1000);
}
