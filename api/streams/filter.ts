import type { Change, Channel } from '../../src/domain/live/change.ts';
import { boundedCache } from '../../src/domain/values/caches.ts';
import { readCategories } from '../../src/store/catalog/market-categories.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
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

type OfMarket = Pick<Change, 'venue' | 'marketId'>;

const MAX_MARKETS = 200_000;

/** The categories of markets, which changes of the journal do not name. One statement per batch serves all clients. */
export class Categories {
  readonly #db: Queryable;
  /** Null: the market has none. */
  readonly #known = boundedCache<{ category: string | null }>(MAX_MARKETS);

  constructor(db: Queryable) {
    this.#db = db;
  }

  readonly of = (venue: string, marketId: string): string | undefined =>
    this.#known.get(keyOf(venue, marketId))?.category ?? undefined;

  /** Takes the categories of changed markets, so that no other read is needed. */
  learn({ kind, venue, marketId, body }: Change): void {
    if (kind !== 'market') return;
    const category = typeof body['category'] === 'string' ? body['category'] : null;
    this.#known.set(keyOf(venue, marketId), { category });
  }

  /** Whether `load` would read. */
  lacks(changes: readonly OfMarket[]): boolean {
    return changes.some(({ venue, marketId }) => marketId !== '' && !this.#known.has(keyOf(venue, marketId)));
  }

  /** Reads the unknown categories of these markets. */
  async load(changes: readonly OfMarket[]): Promise<void> {
    const missing = new Map<string, { venue: string; marketId: string }>();
    for (const { venue, marketId } of changes) {
      const key = keyOf(venue, marketId);
      if (marketId !== '' && !this.#known.has(key)) missing.set(key, { venue, marketId });
    }
    if (missing.size === 0) return;
    const markets = [...missing.values()];
    const found = await readCategories(this.#db, markets);
    const byKey = new Map(found.map((row) => [keyOf(row.venue, row.marketId), row.category]));
    for (const key of missing.keys()) {
      // A change that arrived during the read is the newer one.
      if (!this.#known.has(key)) this.#known.set(key, { category: byKey.get(key) ?? null });
    }
  }
}

function keyOf(venue: string, marketId: string): string {
  return `${venue}\n${marketId}`;
}
