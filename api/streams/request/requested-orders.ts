import type { Channel } from '../../../src/domain/live/change.ts';
import { ORDER_SIDES, type OrderSide } from '../../../src/domain/markets/executable.ts';
import { VENUES, type VenueName, type VenueProfile } from '../../../src/domain/markets/venue.ts';
import { type Decimal, scaleOf } from '../../../src/domain/values/decimal.ts';
import { type NamedOutcome, readOutcomesOf } from '../../../src/store/catalog/market-categories.ts';
import type { Queryable } from '../../../src/store/db/tx.ts';
import { type ErrorDetail, invalidRequest } from '../../errors.ts';
import { mayTrade } from '../../reads/cold-read.ts';
import type { WatchedOrders } from '../executable/orders.ts';
import { listed } from './listed.ts';

const MAX_OUTCOMES = 100;

interface OrdersRequest {
  channels?: readonly Channel[] | undefined;
  market_ids?: readonly string[] | undefined;
  /** Those that the request names. */
  outcomes?: readonly NamedOutcome[] | undefined;
  sizes?: readonly Decimal[] | undefined;
  side?: OrderSide | undefined;
}

/**
 * The orders of a request with the channel `executable`; undefined without it.
 * @throws ApiError `invalid_request` that names each field that is missing, or excludes every value
 */
export async function ordersOf(
  db: Queryable,
  { venues }: { venues: readonly string[] },
  request: OrdersRequest,
): Promise<WatchedOrders | undefined> {
  const { channels = [], market_ids, sizes, side } = request;
  if (!channels.includes('executable')) {
    const alone = Object.entries({ sizes, side }).flatMap(([path, value]) => (value === undefined ? [] : [path]));
    if (alone.length === 0) return undefined;
    throw invalidRequest(alone.map((path) => ({ path, message: 'needs the channel executable' })));
  }
  const missing: ErrorDetail[] = [];
  if (sizes === undefined) missing.push({ path: 'sizes', message: 'is required with the channel executable' });
  if (market_ids === undefined && request.outcomes === undefined)
    missing.push({ path: 'market_ids', message: 'or outcome_ids is required with the channel executable' });
  if (sizes === undefined || missing.length > 0) throw invalidRequest(missing);
  const outcomes = request.outcomes ?? (await readOutcomesOf(db, venues, market_ids ?? [], MAX_OUTCOMES + 1));
  const path = request.outcomes === undefined ? 'market_ids' : 'outcome_ids';
  const faults = faultsOf(outcomes, sizes, path);
  if (faults.length > 0) throw invalidRequest(faults);
  return { outcomes, sizes: [...new Set(sizes)], sides: side === undefined ? ORDER_SIDES : [side] };
}

function faultsOf(outcomes: readonly NamedOutcome[], sizes: readonly Decimal[], path: string): ErrorDetail[] {
  if (outcomes.length > MAX_OUTCOMES)
    return [{ path, message: `the channel executable takes at most ${MAX_OUTCOMES} outcomes` }];
  const withoutBook = outcomes.filter(
    (outcome) => digitsOf(outcome) === undefined || (mayTrade(outcome) && !outcome.hasBook),
  );
  const ids = withoutBook.map(({ marketId, outcomeId }) => (path === 'market_ids' ? marketId : outcomeId));
  const names = listed([...new Set(ids)]);
  if (names !== undefined) return [{ path, message: `without an orderbook: ${names}` }];
  const digits = Math.min(...outcomes.map((outcome) => digitsOf(outcome) ?? 0));
  const isTooFine = sizes.some((size) => scaleOf(size) > digits);
  return isTooFine ? [{ path: 'sizes', message: `must have at most ${digits} digits after the point` }] : [];
}

function digitsOf({ venue }: NamedOutcome): number | undefined {
  const profile: VenueProfile = VENUES[venue as VenueName];
  return profile.sizeDigits;
}
