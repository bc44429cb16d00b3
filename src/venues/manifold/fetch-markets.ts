import { VenueError } from '../errors.ts';
import type { Asked } from '../http/member-batches.ts';
import type { RejectedRecord } from '../port.ts';
import { rejectRecord } from '../rejection.ts';
import type { ManifoldClient } from './client.ts';

/** Market pages in flight at once: few, so that prices and trades get their share of the budget. */
const PAGES_AT_ONCE = 2;

interface MarketPages extends Pick<Asked<unknown>, 'unread' | 'fault'> {
  rows: unknown[];
  /** Contracts that the venue does not know. */
  unknown: string[];
  /** Contracts whose pages the venue cannot serve. */
  failed: RejectedRecord[];
}

type ReadMarketPages = (contractIds: readonly string[], signal: AbortSignal) => Promise<MarketPages>;

/** The pages of markets. One whose page fails is rejected, so it never delays the catalog. Throws VenueError when every page fails. */
export function createMarketPages(client: Pick<ManifoldClient, 'getMarket' | 'members'>): ReadMarketPages {
  const pages = client.members('market');
  return async (contractIds, signal) => {
    const { answers, refused, ...rest } = await pages.ask(
      contractIds,
      async ([id = ''], request) => {
        try {
          return { row: await client.getMarket(id, signal, request) };
        } catch (error) {
          if (error instanceof VenueError && error.statusCode === 404) return undefined;
          throw error;
        }
      },
      { size: 1, atOnce: PAGES_AT_ONCE },
    );
    return {
      rows: answers.flatMap(({ answer }) => (answer ? [answer.row] : [])),
      unknown: answers.flatMap(({ members, answer }) => (answer ? [] : members)),
      failed: refused.map(({ member, reason }) => unavailable(member, reason)),
      ...rest,
    };
  };
}

/** The rejection of a listed market without a readable page. */
export function unavailable(id: string, detail: string): RejectedRecord {
  return rejectRecord('markets', { id }, { reason: 'page_unavailable', detail }, id);
}
