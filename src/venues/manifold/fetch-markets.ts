import { VenueError } from '../errors.ts';
import type { RejectedRecord } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import type { ManifoldClient } from './client.ts';

/** Market pages in flight at once: few, so that prices and trades get their share of the budget. */
const PAGES_AT_ONCE = 2;

interface MarketPages {
  rows: unknown[];
  /** Contracts that the venue does not know. */
  unknown: string[];
  /** Contracts whose pages the venue cannot serve. */
  failed: RejectedRecord[];
}

/**
 * The pages of these markets. A market whose page fails is rejected, so it never delays the catalog. When every page fails, the fault is
 * the venue's: VenueError is thrown.
 */
export async function readMarketPages(
  client: Pick<ManifoldClient, 'getMarket'>,
  contractIds: readonly string[],
  signal: AbortSignal,
): Promise<MarketPages> {
  const pages: MarketPages = { rows: [], unknown: [], failed: [] };
  const waiting = [...contractIds];
  let lastError: VenueError | undefined;
  const work = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        pages.rows.push(await client.getMarket(id, signal));
      } catch (error) {
        if (!(error instanceof VenueError) || !isOfOnePage(error)) {
          waiting.length = 0;
          throw error;
        }
        if (error.statusCode === 404) {
          pages.unknown.push(id);
          continue;
        }
        lastError = error;
        pages.failed.push(unavailable(id, error.message));
      }
    }
  };
  await Promise.all(Array.from({ length: PAGES_AT_ONCE }, work));
  if (pages.rows.length === 0 && lastError !== undefined) throw lastError;
  return pages;
}

/** The rejection of a listed market without a readable page. */
export function unavailable(id: string, detail: string): RejectedRecord {
  return rejectRecord('markets', { id }, { reason: 'page_unavailable', detail }, id);
}

function isOfOnePage(error: VenueError): boolean {
  return ['http_status', 'invalid_payload', 'response_too_large'].includes(error.code);
}
