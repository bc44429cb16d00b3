import type { OpenOutcome, WatchedOutcome } from '../../src/store/catalog/watched-outcomes.ts';
import { oncePerVenue } from '../../src/store/db/batcher.ts';

/** Another process that stores markets of the venue has its effect here after this time. */
const KNOWN_FOR_MS = 60_000;
/** Outcomes of a venue, about 200 bytes each. Those above it are read each time. */
const MAX_OUTCOMES = 50_000;

/** What was read since the last change of the catalog. */
interface Known {
  readonly bornMs: number;
  outcomes: number;
  readonly pages: Map<string, readonly OpenOutcome[]>;
  /** Keys of tradable outcomes; null of any other id. */
  readonly tokenIds: Map<string, bigint | null>;
}

/**
 * The tradable outcomes of a venue, as this process read them since it last stored a change of the catalog. So a sweep over prices that stay
 * asks the database for no outcomes. The process that polls the prices of a venue polls its catalog too; one that does not, for example
 * beside a look-up of another process, sees a change after a minute at the latest.
 */
class CatalogMemory {
  #known = nothing();

  /** A page of the outcomes in the order of their keys. `key` names it; `read` asks the database. */
  async page(key: string, read: () => Promise<readonly OpenOutcome[]>): Promise<readonly OpenOutcome[]> {
    const known = this.#current();
    const found = known.pages.get(key);
    if (found !== undefined) return found;
    const outcomes = await read();
    if (this.#keeps(known, outcomes.length)) known.pages.set(key, outcomes);
    return outcomes;
  }

  /** The keys of the tradable ones among these outcomes, by the ids of the venue. `read` asks the database for the unknown ones. */
  async tokenIds(
    outcomeIds: readonly string[],
    read: (unknown: readonly string[]) => Promise<readonly WatchedOutcome[]>,
  ): Promise<ReadonlyMap<string, bigint>> {
    const known = this.#current();
    const unknown = outcomeIds.filter((id) => !known.tokenIds.has(id));
    const found = unknown.length > 0 ? await read(unknown) : [];
    const tokenIdOf = new Map(found.map(({ outcomeId, tokenId }) => [outcomeId, tokenId]));
    if (unknown.length > 0 && this.#keeps(known, unknown.length)) {
      for (const id of unknown) known.tokenIds.set(id, tokenIdOf.get(id) ?? null);
    }
    for (const id of outcomeIds) {
      const tokenId = known.tokenIds.get(id);
      if (tokenId) tokenIdOf.set(id, tokenId);
    }
    return tokenIdOf;
  }

  /** This process has stored a change of the catalog. What a statement reads that began before it is not kept. */
  forget(): void {
    this.#known = nothing();
  }

  #current(): Known {
    if (performance.now() - this.#known.bornMs >= KNOWN_FOR_MS) this.forget();
    return this.#known;
  }

  #keeps(known: Known, outcomes: number): boolean {
    if (known !== this.#known || known.outcomes + outcomes > MAX_OUTCOMES) return false;
    known.outcomes += outcomes;
    return true;
  }
}

function nothing(): Known {
  return { bornMs: performance.now(), outcomes: 0, pages: new Map(), tokenIds: new Map() };
}

/** The memory of the catalog of a venue, one per process, which its metrics stand for. */
export const catalogMemoryOf = oncePerVenue(() => new CatalogMemory());
