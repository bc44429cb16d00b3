import { mayBeOfMember, VenueError } from '../errors.ts';
import type { BatchRequest } from './http.ts';

/** So many sizes of a page failing in a row may be the fault of the host: the reader asks for something else before it narrows further. */
const PROBE_AFTER = 3;

interface PageRead<A> {
  /** Rows of a whole page. */
  size: number;
  /** The page that begins a listing is asked for in whole. */
  isFirst: boolean;
  read(limit: number, batch: BatchRequest | undefined): Promise<A>;
  /** Another page of the same route. When it fails too, the host is at fault. */
  probe(batch: BatchRequest): Promise<unknown>;
}

type PageResult<A> = { answer: A; isNarrowed: boolean } | { failure: VenueError };

/**
 * Reads the pages of a listing whose cursor only the page itself names. A page that may fail for one of its rows is halved, without
 * retries, so that the rows above the bad one are read. Pages then stay small until the bad row is alone or was read. The result is a
 * failure when the next row alone fails and the probe succeeds.
 *
 * Its knowledge of the next page is in memory only: a process that starts finds the bad row again with a few requests.
 */
export function createPageReader(): <A>(page: PageRead<A>) => Promise<PageResult<A>> {
  /** The bad row is among the next so many rows. */
  let within: number | undefined;
  return async ({ size, isFirst, read, probe }) => {
    let rows = isFirst ? undefined : within;
    let limit = rows === undefined ? size : Math.min(size, Math.ceil(rows / 2));
    within = undefined;
    for (let failures = 1; ; failures += 1) {
      const isNarrowed = limit < size;
      try {
        const answer = await read(limit, isNarrowed ? { isPart: true } : undefined);
        if (rows !== undefined && rows > limit) within = rows - limit;
        return { answer, isNarrowed };
      } catch (error) {
        if (!isOfRow(error)) throw error;
        if (failures === PROBE_AFTER || (limit === 1 && failures < PROBE_AFTER)) {
          await probe({ isPart: true }).catch(() => Promise.reject(error));
        }
        if (limit === 1) return { failure: error };
        rows = limit;
        limit = Math.ceil(rows / 2);
      }
    }
  };
}

/** Whether one row of a page may have caused its failure. A 4xx is about the request: its cursor, its order or its filter. */
export function isOfRow(error: unknown): error is VenueError {
  return error instanceof VenueError && mayBeOfMember(error) && (error.statusCode ?? 500) >= 500;
}
