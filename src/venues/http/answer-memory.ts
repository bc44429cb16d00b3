import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';

/** The reading of an answer. */
export interface AnswerReading {
  /** Its share of the memory: see `readingSize`. */
  readonly size: number;
}

/** Reads the answers of one route. */
export interface AnswerReader<R extends AnswerReading> {
  /**
   * Depends on nothing but the request, the body and, as far as `holds` judges it, the moment of the answer: see `VenueAnswer.observedAt`.
   * Nobody changes its result. Throws VenueError.
   */
  read(json: unknown, observedAt: number): R;
  /** Whether `read` would give the same result for an answer of this moment. Absent: always. */
  holds?(reading: R, observedAt: number): boolean;
}

/** Raw records of a host whose readings are kept, about half a kilobyte each with the prices of two outcomes. */
const MAX_ROWS = 25_000;

interface Entry {
  digest: string;
  /** Absent while the answer came once: most answers of a busy venue never come again. */
  reading?: AnswerReading;
}

/** The last answer to one request. */
interface LastAnswer<R extends AnswerReading> {
  /** Whether the reading of an answer with this digest is known, and holds at its moment. */
  isKnown(digest: string, observedAt: number): boolean;
  /** The reading of the answer that `isKnown` judged last: the known one, or that of the body. */
  readingOf(answer: { digest?: string; json: unknown; observedAt: number }): R;
}

/**
 * The readings of the last answers of a host by their bytes. An answer with the bytes of the last answer to the same request needs no
 * parsing. The second answer of a series is kept, and the third one is the first that is not read. It has `maxRows` raw records, and the
 * digests of as many requests, at most; what was used longest ago is forgotten first.
 */
export function createAnswerMemory(maxRows = MAX_ROWS) {
  const entries =
    maxRows > 0
      ? new LRUCache<string, Entry>({
          maxSize: maxRows,
          sizeCalculation: ({ reading }) => Math.max(1, reading?.size ?? 1),
        })
      : undefined;
  return {
    /** `request` has everything that the answer and its reading depend on. */
    last<R extends AnswerReading>(request: readonly string[], reader: AnswerReader<R>): LastAnswer<R> {
      const key = digestOf(request.join('\n'));
      const entry = entries?.get(key);
      const holds = (reading: R, observedAt: number) => reader.holds?.(reading, observedAt) ?? true;
      let known: R | undefined;
      return {
        isKnown(digest, observedAt) {
          const reading = entry?.digest === digest ? (entry.reading as R | undefined) : undefined;
          known = reading !== undefined && holds(reading, observedAt) ? reading : undefined;
          return known !== undefined;
        },
        readingOf({ digest = '', json, observedAt }) {
          if (known !== undefined) return known;
          const reading = reader.read(json, observedAt);
          const isKept = entry?.digest === digest && holds(reading, observedAt);
          entries?.set(key, { digest, ...(isKept && { reading }) });
          return reading;
        },
      };
    },
  };
}

/** Raw records of an answer. The sample of a rejected one takes the memory of eight others. */
export function readingSize(rows: number, rejected: readonly unknown[]): number {
  return rows + 8 * rejected.length;
}

/** A digest of bytes that nobody can forge. */
export function digestOf(...parts: readonly (string | Buffer)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('base64');
}
