import type { VenueHttpOptions } from '../../../src/venues/http/http.ts';
import type { Batch, RecordKind, VenueAdapter } from '../../../src/venues/port.ts';

/** The polls of an adapter, and so the kinds of market records. */
export type PollKind = Exclude<RecordKind, 'wallets' | 'tokens'>;

/** One recorded file, divided into the records of one answer of the venue. */
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
  /** Recorded files that this adapter does not read, with the reason: a file in neither list fails the suite. */
  unread: ReadonlyMap<string, string>;
}

/** A trade in the venue's own ledger. */
export interface LedgerTrade {
  outcomeId: string;
  /** Whole epoch seconds. */
  second: number;
  price: string;
  size: string;
  side?: 'buy' | 'sell';
}

export type LiveFault = 'server_errors' | 'rate_limit' | 'truncated_json' | 'renamed_field' | 'slow';

/** The adapter's own timeouts unless a test waits for one. */
export type Timeouts = Pick<VenueHttpOptions, 'attemptTimeoutMs' | 'callTimeoutMs'>;

/** A venue that answers over HTTP, with known truth. */
export interface LiveVenue {
  /** A fresh adapter, with no state except its positions. */
  createAdapter(timeouts?: Timeouts): VenueAdapter;
  /** The venue's clock, epoch milliseconds. */
  now(): number;
  /** Every market that a full walk must return. */
  marketIds(): Promise<string[]>;
  /** A well-formed id of no market; any other text for a venue without a form. */
  unknownMarketId?: string;
  /** Outcomes that have a book with two sides. */
  outcomeIds(): Promise<string[]>;
  /** Every trade since the venue started, in any order. */
  ledger(): Promise<LedgerTrade[]>;
  /** Advances time and trading. */
  trade(): Promise<void>;
  /** Advances time without trading until every trade is final. */
  rest(): Promise<void>;
  /** Every request fails in this way until `heal`. */
  break(fault: LiveFault): Promise<void>;
  heal(): Promise<void>;
  close(): Promise<void>;
}

/** The result of a parser. `skipped` has a reason for each sound record that is not read, if the venue has such records. */
export type ParsedRecords = Batch<unknown> & { skipped?: readonly string[] };

/** The description of a venue for the conformance suite. */
export interface VenueUnderTest {
  name: string;
  /** Undefined when the recorded payloads are absent. */
  recordings: () => Recordings | undefined;
  /** The adapter's pure parsers by kind of record. */
  parse: Readonly<Record<PollKind, (records: readonly unknown[], nowMs: number) => ParsedRecords>>;
  /**
   * The minimum and maximum number of records of one accepted row, by kind, if it is not exactly one: a market object may contain the
   * prices of all its outcomes.
   */
  recordsPerRow?: Readonly<Partial<Record<PollKind, readonly [least: number, most: number]>>>;
  live: readonly { name: string; start: () => Promise<LiveVenue> }[];
}
