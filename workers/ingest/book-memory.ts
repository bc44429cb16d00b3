import type { BookRecord } from '../../src/domain/markets/market.ts';
import { oncePerOwner } from '../../src/store/db/batcher.ts';
import { bookDigest, SIGHTING_EVERY_MS } from '../../src/store/series/books.ts';
import type { Batch } from '../../src/venues/port.ts';

/** Books of certain outcomes, with our keys of these. */
interface BookBatch extends Batch<BookRecord> {
  tokenIdOf: ReadonlyMap<string, bigint>;
}

interface Sighting {
  digest: string;
  atMs: number;
}

/**
 * The books that this process stored or confirmed lately. An unchanged book does not reach the database again before the time in which its
 * sighting has an effect there. Nothing is known for longer than that: after it, the database compares the book with the stored one, also
 * when another process stored that. A process that dies loses nothing but this knowledge.
 */
class BookMemory {
  /** The oldest first. */
  readonly #seen = new Map<bigint, Sighting>();

  /** The books that must be compared with the stored ones. */
  news({ records, tokenIdOf }: BookBatch, nowMs: number): BookRecord[] {
    this.#expire(nowMs);
    return records.filter((book) => {
      const tokenId = tokenIdOf.get(book.outcomeId);
      const seen = tokenId === undefined ? undefined : this.#seen.get(tokenId);
      return seen === undefined || seen.digest !== bookDigest(book);
    });
  }

  /** Books of a committed batch that are now the stored ones. */
  applied({ records, tokenIdOf }: BookBatch, tokenIds: readonly bigint[], nowMs: number): void {
    const applied = new Set(tokenIds);
    for (const book of records) {
      const tokenId = tokenIdOf.get(book.outcomeId);
      if (tokenId === undefined || !applied.has(tokenId)) continue;
      this.#seen.delete(tokenId);
      this.#seen.set(tokenId, { digest: bookDigest(book), atMs: nowMs });
    }
  }

  /** The next book of these outcomes is compared with the database: another source moved their prices. */
  forget(tokenIds: readonly bigint[]): void {
    for (const tokenId of tokenIds) this.#seen.delete(tokenId);
  }

  /** A clock that was set back makes a sighting late, never early. */
  #expire(nowMs: number): void {
    for (const [tokenId, { atMs }] of this.#seen) {
      if (nowMs >= atMs && nowMs - atMs < SIGHTING_EVERY_MS) return;
      this.#seen.delete(tokenId);
    }
  }
}

/** The memory of a process, for its pools of all venues. */
export const bookMemoryOf = oncePerOwner((_db: object) => new BookMemory());
