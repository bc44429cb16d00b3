import type { Change, ChangeKind, FactKind } from '../../src/domain/live/change.ts';
import type { JournalStamp } from '../../src/store/journal/read-journal.ts';
import type { JournalBatch, JournalTail } from '../../src/store/journal/tail.ts';

/** Memory answers only while the journal was confirmed within this time; then the database does. */
export const MAX_STALE_MS = 1_000;
/** Markets whose last changes are remembered one by one. */
const MAX_NAMED = 50_000;

/** A kind of changes that answers depend on. */
export type NamedKind = Exclude<ChangeKind, 'facts'> | FactKind;

/** The market of a change or of an answer. An empty `marketId` stands for any market of the venue. */
export interface Subject {
  venue: string;
  marketId: string;
}

/** A change that may concern answers: a market, or with the empty id every market of the venue. */
export interface Named extends Subject {
  kind: NamedKind;
  seq: number;
  change: Change;
}

/** The facts of an answer: it stays valid until the journal names one of these kinds for one of these subjects. */
export interface Dependencies {
  subjects: readonly Subject[];
  kinds: ReadonlySet<NamedKind>;
}

type LastSeqs = Partial<Record<NamedKind, number>>;

/**
 * The journal from the side of reads: whether it is confirmed, and which answers it still allows.
 *
 * The race that `allows` excludes: a read begins before a change and ends after the change was named. Nothing names it again, so its answer
 * would stay. The answer therefore has the place in the journal of its own snapshot, and is kept only if no later number named its facts.
 */
export class JournalView {
  readonly #tail: Pick<JournalTail, 'on' | 'staleMs'>;
  readonly #now: () => number;
  readonly #maxNamed: number;
  readonly #stopListening: () => void;
  readonly #named: ((named: Named) => void)[] = [];
  readonly #resets: (() => void)[] = [];
  readonly #confirmations: ((checkedAt: Date) => void)[] = [];
  /** By `subjectKey`; the least recently named first. Entries of whole venues stay. */
  readonly #lastOf = new Map<string, LastSeqs>();
  readonly #lastOfVenue = new Map<string, LastSeqs>();
  #epoch: string | undefined;
  /** Changes up to this number may have named any subject that `#lastOf` lacks. */
  #floor = 0;
  /** When the journal was last known to be complete, on the clock of `now`. */
  #confirmedMs = Number.NEGATIVE_INFINITY;

  /** `now`: milliseconds of a monotonic clock. */
  constructor(
    tail: Pick<JournalTail, 'on' | 'staleMs'>,
    now: () => number = () => performance.now(),
    maxNamed: number = MAX_NAMED,
  ) {
    this.#tail = tail;
    this.#now = now;
    this.#maxNamed = maxNamed;
    this.#stopListening = tail.on((batch) => this.#receive(batch));
  }

  /** Whether every change that was committed more than a second ago was delivered to the listeners. */
  get isConfirmed(): boolean {
    return this.#now() - this.#confirmedMs <= MAX_STALE_MS;
  }

  /** Whether an answer of this snapshot contains every named change of its facts. */
  allows(stamp: JournalStamp, { subjects, kinds }: Dependencies): boolean {
    if (stamp.epoch !== this.#epoch) return false;
    return subjects.every((subject) => {
      const last =
        subject.marketId === '' ? this.#lastOfVenue.get(subject.venue) : this.#lastOf.get(subjectKey(subject));
      // All facts of a venue changed at once.
      const ofVenue = this.#lastOf.get(subjectKey({ ...subject, marketId: '' }));
      for (const kind of kinds) {
        if ((last?.[kind] ?? this.#floor) > stamp.seq || (ofVenue?.[kind] ?? 0) > stamp.seq) return false;
      }
      return true;
    });
  }

  /** Adds a listener for named subjects, in the order of `seq`. */
  onNamed(listener: (named: Named) => void): void {
    this.#named.push(listener);
  }

  /** Adds a listener for the loss of changes: nothing in memory is valid any more. */
  onReset(listener: () => void): void {
    this.#resets.push(listener);
  }

  /** Adds a listener for each confirmation of the journal: all changes that were committed before `checkedAt` were delivered. */
  onConfirmed(listener: (checkedAt: Date) => void): void {
    this.#confirmations.push(listener);
  }

  close(): void {
    this.#stopListening();
  }

  #receive({ changes, head, missed, upTo }: JournalBatch): void {
    if (this.#epoch !== head.epoch || missed) {
      // Until each listener is reset no answer is valid, and the next batch repeats a reset that failed.
      this.#epoch = undefined;
      this.#lastOf.clear();
      this.#lastOfVenue.clear();
      this.#floor = missed?.to ?? upTo;
      for (const listener of this.#resets) listener();
      this.#epoch = head.epoch;
    }
    for (const change of changes) this.#name(change);
    if (upTo < head.seq) return;
    this.#confirmedMs = this.#now() - this.#tail.staleMs();
    for (const listener of this.#confirmations) listener(head.checkedAt);
  }

  #name(change: Change): void {
    const { venue, seq } = change;
    const { kind, ids } = namedBy(change);
    const ofVenue = this.#lastOfVenue.get(venue) ?? {};
    ofVenue[kind] = seq;
    this.#lastOfVenue.set(venue, ofVenue);
    for (const marketId of ids) {
      const key = subjectKey({ venue, marketId });
      const last = this.#lastOf.get(key) ?? {};
      last[kind] = seq;
      this.#lastOf.delete(key);
      this.#lastOf.set(key, last);
      for (const listener of this.#named) listener({ venue, marketId, kind, seq, change });
    }
    this.#forgetOldest();
  }

  #forgetOldest(): void {
    for (const [key, last] of this.#lastOf) {
      if (this.#lastOf.size <= this.#maxNamed) return;
      this.#floor = Math.max(this.#floor, ...Object.values(last));
      this.#lastOf.delete(key);
    }
  }
}

/** The kind of a change, or of its facts, and the markets that it names. */
export function namedBy({ kind, marketId, body }: Change): { kind: NamedKind; ids: readonly string[] } {
  if (kind !== 'facts') return { kind, ids: [marketId] };
  return { kind: body['about'] as FactKind, ids: body['market_ids'] as readonly string[] };
}

export function subjectKey({ venue, marketId }: Subject): string {
  return `${venue}\n${marketId}`;
}

/** The facts of a fill: the book with its gaps, the status of the market, and its fee. */
export const FILL_KINDS: ReadonlySet<NamedKind> = new Set(['book', 'book-seen', 'market', 'gap', 'fees']);
