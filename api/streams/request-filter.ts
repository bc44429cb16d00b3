import type { Channel } from '../../src/domain/live/channels.ts';
import { isKnownCategory, knownMarketIds, knownOutcomeIds } from '../../src/store/catalog/market-categories.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import { ApiError, invalidRequest } from '../errors.ts';
import type { Filter } from './filter.ts';

/** The checked fields of a request for a stream. */
export interface FilterRequest {
  channels?: readonly Channel[] | undefined;
  market_ids?: readonly string[] | undefined;
  outcome_ids?: readonly string[] | undefined;
  category?: string | undefined;
  snapshot?: boolean | undefined;
}

/**
 * The filter of a request.
 * @throws ApiError `market_not_found` or `invalid_request` that names unknown ids or the unknown category: a stream of them would look like
 *   a quiet market
 */
export async function filterOf(
  db: Queryable,
  scope: { name: string; venues: readonly string[] },
  request: FilterRequest,
): Promise<Filter> {
  const { channels = ['prices'], market_ids, outcome_ids, category, snapshot } = request;
  if (snapshot && (market_ids === undefined || !channels.includes('prices'))) {
    throw invalidRequest([{ path: 'snapshot', message: 'needs market_ids and the channel prices' }]);
  }
  if (market_ids !== undefined) {
    const known = await knownMarketIds(db, scope.venues, market_ids);
    const unknown = listed(market_ids.filter((id) => !known.has(id)));
    if (unknown !== undefined) throw new ApiError('market_not_found', `no such market: ${unknown}`);
  }
  if (outcome_ids !== undefined) {
    const known = await knownOutcomeIds(db, scope.venues, outcome_ids);
    const unknown = listed(outcome_ids.filter((id) => !known.has(id)));
    if (unknown !== undefined) throw invalidRequest([{ path: 'outcome_ids', message: `no such outcome: ${unknown}` }]);
  }
  if (category !== undefined && !(await isKnownCategory(db, scope.venues, category))) {
    throw invalidRequest([{ path: 'category', message: 'no market of the venue has this category' }]);
  }
  return {
    channels,
    venue: scope.name,
    venues: scope.venues,
    ...(market_ids !== undefined && { marketIds: new Set(market_ids) }),
    ...(outcome_ids !== undefined && { outcomeIds: new Set(outcome_ids) }),
    ...(category !== undefined && { category }),
  };
}

/** The first names of a list; undefined when it is empty. */
function listed(names: readonly string[]): string | undefined {
  if (names.length === 0) return undefined;
  return `${names.slice(0, 5).join(', ')}${names.length > 5 ? ', …' : ''}`;
}
