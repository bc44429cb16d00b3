import { LRUCache } from 'lru-cache';
import { boundedCache } from '../../src/domain/values/caches.ts';
import type { JournalStamp } from '../../src/store/journal/read-journal.ts';
import { type Dependencies, type JournalView, type Named, subjectKey } from './journal-view.ts';

/** How long the client may cache an answer. */
export type Freshness = 'latest' | 'history';

/** An answer of a market route, ready to send: JSON texts and header values. */
export interface PreparedAnswer {
  /** JSON text of `data`. */
  data: string;
  /** JSON text of the `meta` fields besides request id and timestamp, without braces; may be empty. */
  meta: string;
  /** The UTF-8 bytes of both texts minus their characters, so that the length of an answer needs no scan. */
  extraBytes: number;
  /** Weak, over data and meta. */
  etag: string;
  freshness: Freshness;
}

/** How long an answer stays valid beyond a second. */
export interface Validity extends Dependencies {
  /** The place in the journal of the answer's first statement. */
  stamp: JournalStamp;
  /** The time until the answer changes without a change of its facts, milliseconds since its load began. */
  forMs?: number;
}

export interface LoadedAnswer {
  answer: PreparedAnswer;
  /** Absent: the answer is valid for a second. */
  validity?: Validity | undefined;
}

/**
 * Keeps prepared answers of market routes: while the journal names none of their facts, otherwise for a second. A hit costs no SQL, no
 * serialization and no hash. Concurrent requests share one load. All waiting requests get its error, and errors are not kept.
 */
export interface AnswerCache {
  /** The kept answer of `key`, otherwise the result of `load`. The key must contain every dependency of the answer except time. */
  fetch(key: string, load: () => Promise<LoadedAnswer>): Promise<PreparedAnswer>;
  /** Records that a GET of this request target got the answer of `key` from this route (its pattern). */
  remember(target: string, place: AnswerPlace): void;
  /**
   * The kept answer of a GET of this exact target, which saves routing and parsing. A caller that sends it must call `used`, which
   * counts the hit.
   */
  recent(target: string): RecentAnswer | undefined;
  /** Kept answers, and their approximate size. */
  readonly size: { entries: number; bytes: number };
}

export interface RecentAnswer {
  answer: PreparedAnswer;
  route: string;
  used(): void;
}

interface AnswerPlace {
  key: string;
  route: string;
}

/** The source of an answer: the cache, a load in flight, or a new load. */
type Lookup = 'hit' | 'shared' | 'miss';

interface AnswerCacheOptions {
  onLookup?: (lookup: Lookup) => void;
  /** Absent: every answer is valid for `ttlMs`. */
  journal?: JournalView;
  /** The lifetime of an answer without the journal, since the start of its load. 0: loads are shared, but nothing is kept. */
  ttlMs?: number;
  maxBytes?: number;
  /** Milliseconds of a monotonic clock. */
  now?: () => number;
}

interface Entry extends LoadedAnswer {
  begunMs: number;
  bytes: number;
}

const TTL_MS = 1_000;
/** The limit of an answer that the journal keeps valid: an error in a dependency heals by itself. */
const MAX_AGE_MS = 60_000;
const MAX_BYTES = 64 * 1024 * 1024;
/** From this share of the bytes on, the cache counts as full. */
const FULL_SHARE = 0.9;
/** The approximate size of an entry without its texts. */
const ENTRY_OVERHEAD_BYTES = 700;
/** Longer request targets are rare and always routed. */
const MAX_TARGET_LENGTH = 512;
const MAX_TARGETS = 100_000;

/** The memory of an answer's texts: ASCII alone has one byte per character, other texts have at most two. */
export function textBytes({ data, meta, extraBytes }: PreparedAnswer): number {
  return (extraBytes === 0 ? 1 : 2) * (data.length + meta.length);
}

/** A bounded cache that evicts the least recently used answers first. */
export function createAnswerCache(options: AnswerCacheOptions = {}): AnswerCache {
  const { journal, ttlMs = TTL_MS, maxBytes = MAX_BYTES, now = () => performance.now() } = options;
  const { onLookup = () => undefined } = options;
  const used = () => onLookup('hit');
  const inFlight = new Map<string, Promise<PreparedAnswer>>();
  /** The keys of kept answers by their subjects. */
  const keysOf = new Map<string, Set<string>>();
  const admission = new Admission();
  const places = boundedCache<AnswerPlace>(MAX_TARGETS);
  const cache = new LRUCache<string, Entry>({
    maxSize: maxBytes,
    // A list of a thousand markets must not evict all other answers.
    maxEntrySize: Math.max(1, Math.floor(maxBytes / 8)),
    sizeCalculation: ({ bytes }) => bytes,
    dispose: ({ validity }, key) => {
      for (const subject of validity?.subjects ?? []) {
        const keys = keysOf.get(subjectKey(subject));
        keys?.delete(key);
        if (keys?.size === 0) keysOf.delete(subjectKey(subject));
      }
    },
  });
  journal?.onReset(() => cache.clear());
  journal?.onNamed((named) => {
    dropOf(subjectKey(named), named);
    if (named.marketId !== '') dropOf(subjectKey({ venue: named.venue, marketId: '' }), named);
  });

  function dropOf(subject: string, { kind, seq }: Pick<Named, 'kind' | 'seq'>): void {
    for (const key of keysOf.get(subject) ?? []) {
      const validity = cache.peek(key)?.validity;
      if (validity?.kinds.has(kind) && validity.stamp.seq < seq) cache.delete(key);
    }
  }

  function isValid({ begunMs, validity }: Entry): boolean {
    const isJournaled = validity !== undefined && journal?.isConfirmed === true;
    return now() - begunMs < (isJournaled ? Math.min(MAX_AGE_MS, validity.forMs ?? MAX_AGE_MS) : ttlMs);
  }

  /** Whether another answer would evict a valid one. */
  function isFull(): boolean {
    if ((cache.calculatedSize ?? 0) < FULL_SHARE * maxBytes) return false;
    const oldest = cache.peek(cache.rkeys().next().value ?? '');
    return oldest !== undefined && isValid(oldest);
  }

  function keep(key: string, entry: Entry): void {
    if (!cache.has(key) && !admission.admits(isFull())) return;
    cache.set(key, entry);
    if (!entry.validity || !cache.has(key)) return;
    for (const subject of entry.validity.subjects) {
      const keys = keysOf.get(subjectKey(subject)) ?? new Set();
      keysOf.set(subjectKey(subject), keys.add(key));
    }
  }

  function valid(key: string): PreparedAnswer | undefined {
    const entry = ttlMs === 0 ? undefined : cache.get(key);
    return entry && isValid(entry) ? entry.answer : undefined;
  }

  async function loaded(key: string, load: () => Promise<LoadedAnswer>): Promise<PreparedAnswer> {
    const begunMs = now();
    const { answer, validity } = await load();
    if (ttlMs === 0) return answer;
    const bytes = textBytes(answer) + 2 * key.length + ENTRY_OVERHEAD_BYTES;
    const isAllowed = validity !== undefined && journal?.allows(validity.stamp, validity) === true;
    // A change was named during the load: the next request reads it.
    if (validity && !isAllowed && journal?.isConfirmed) return answer;
    keep(key, { answer, begunMs, bytes, ...(isAllowed && { validity }) });
    return answer;
  }

  return {
    remember(target, place) {
      if (target.length <= MAX_TARGET_LENGTH && !places.has(target)) places.set(target, place);
    },
    recent(target) {
      const place = places.get(target);
      const answer = place && valid(place.key);
      return place && answer && { answer, route: place.route, used };
    },
    async fetch(key, load) {
      const kept = valid(key);
      if (kept) {
        onLookup('hit');
        return kept;
      }
      const shared = inFlight.get(key);
      onLookup(shared ? 'shared' : 'miss');
      if (shared) return shared;
      const loading = loaded(key, load).finally(() => inFlight.delete(key));
      inFlight.set(key, loading);
      return loading;
    },
    get size() {
      return { entries: cache.size, bytes: cache.calculatedSize ?? 0 };
    },
  };
}

/**
 * Records get their timestamp before their transaction commits, so a recent moment may still gain records. Answers for such a moment
 * must not be cached like history.
 */
const SETTLED_AFTER_MS = 10_000;

/** How long an answer for a moment (epoch seconds, absent for now) may be cached. */
export function freshnessAt(asOf: number | undefined, nowMs: number): Freshness {
  return asOf !== undefined && asOf * 1000 <= nowMs - SETTLED_AFTER_MS ? 'history' : 'latest';
}

/** One of so many first reads takes the place of another entry of a full memory. */
const ADMIT_EVERY = 16;

/**
 * Which first reads a memory of limited size keeps. When it is full, each would evict an entry: reads of more entries in turn than it takes
 * would evict every entry before its next read.
 */
export class Admission {
  #refused = 0;

  admits(isFull: boolean): boolean {
    this.#refused = isFull ? (this.#refused + 1) % ADMIT_EVERY : 0;
    return this.#refused === 0;
  }
}
