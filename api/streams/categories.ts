import type { Change } from '../../src/domain/live/change.ts';
import { boundedCache } from '../../src/domain/values/caches.ts';
import { readCategories } from '../../src/store/catalog/market-categories.ts';
import type { Queryable } from '../../src/store/db/tx.ts';

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
    for (const key of missing.keys()) this.#known.set(key, { category: byKey.get(key) ?? null });
  }
}

function keyOf(venue: string, marketId: string): string {
  return `${venue}\n${marketId}`;
}
