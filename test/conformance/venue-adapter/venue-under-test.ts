import type { Batch, PollKind, VenueAdapter } from '../../../src/venues/port.ts';

/** One recorded file, cut into the records that one answer of the venue holds. */
export interface RecordedFile {
  /** Path below the venue's folder. */
  file: string;
  kind: PollKind;
  /** The clock at which it is replayed. */
  nowMs: number;
  records: readonly unknown[];
}

export interface Recordings {
  files: RecordedFile[];
  /** Recorded files that hold nothing this adapter reads, with the reason: a file in neither list fails the suite. */
  unread: ReadonlyMap<string, string>;
}

/** A print as the venue's own ledger has it. */
export interface LedgerTrade {
  outcomeId: string;
  /** Whole epoch seconds. */
  second: number;
  price: string;
  size: string;
  side?: 'buy' | 'sell';
}

export type LiveFault = 'server_errors' | 'rate_limit' | 'truncated_json' | 'renamed_field' | 'slow';

/** A venue that answers over HTTP, with its truth at hand. */
export interface LiveVenue {
  /** A fresh adapter, with short timeouts and no state but what its positions carry. */
  createAdapter(): VenueAdapter;
  /** The venue's clock, epoch milliseconds. */
  now(): number;
  /** Every market that a full walk must bring. */
  marketIds(): Promise<string[]>;
  /** An id in the venue's own form that no market has; any other text where the venue has no form. */
  unknownMarketId?: string;
  /** Outcomes that have a book with two sides. */
  outcomeIds(): Promise<string[]>;
  /** Every print since the venue started, in any order. */
  ledger(): Promise<LedgerTrade[]>;
  /** Lets time pass and trading go on. */
  trade(): Promise<void>;
  /** Lets time pass without trading until every print so far is final. */
  rest(): Promise<void>;
  /** Every request fails in this way until `heal`. */
  break(fault: LiveFault): Promise<void>;
  heal(): Promise<void>;
  close(): Promise<void>;
}

/** What a parser makes of records. `skipped` has a reason for each that is sound and yet not read, where a venue has such. */
export type ParsedRecords = Batch<unknown> & { skipped?: readonly string[] };

/** What a venue brings to the conformance suite. */
export interface VenueUnderTest {
  name: string;
  /** Undefined when the recorded payloads are absent. */
  recordings: () => Recordings | undefined;
  /** The adapter's pure parsers by kind of record. */
  parse: Readonly<Record<PollKind, (records: readonly unknown[], nowMs: number) => ParsedRecords>>;
  /**
   * How few and how many records one accepted row becomes, by kind, where it is not exactly one: a market object may hold the
   * prices of all its outcomes.
   */
  recordsPerRow?: Readonly<Partial<Record<PollKind, readonly [least: number, most: number]>>>;
  live: readonly { name: string; start: () => Promise<LiveVenue> }[];
}
