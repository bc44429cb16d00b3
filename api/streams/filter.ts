import type { Channel } from '../../src/domain/live/change.ts';
import type { WatchedOrders } from './executable/value.ts';
import type { Frame } from './frame.ts';

/** The changes that a subscription gets. An absent list means all. */
export interface Filter {
  readonly channels: readonly Channel[];
  /** The name in the address: a venue, or `all`. */
  readonly venue: string;
  readonly venues: readonly string[];
  readonly marketIds?: ReadonlySet<string>;
  readonly outcomeIds?: ReadonlySet<string>;
  readonly category?: string;
  /** Of the channel `executable`. */
  readonly orders?: WatchedOrders;
}

/** The category of a stored market; undefined when it has none. */
type CategoryOf = (venue: string, marketId: string) => string | undefined;

/** Whether a subscription gets a change. A change without a market or an outcome concerns all of them. */
export function matches(filter: Filter, frame: Frame, categoryOf: CategoryOf): boolean {
  const { channels, venues, marketIds, outcomeIds, category } = filter;
  if (!frame.channels.some((channel) => channels.includes(channel))) return false;
  if (!venues.includes(frame.venue)) return false;
  if (frame.marketId === '') return true;
  if (marketIds !== undefined && !marketIds.has(frame.marketId)) return false;
  if (outcomeIds !== undefined && frame.outcomeId !== undefined && !outcomeIds.has(frame.outcomeId)) return false;
  return category === undefined || categoryOf(frame.venue, frame.marketId) === category;
}
