import { LRUCache } from 'lru-cache';
import type { ChangeBody } from '../../src/domain/live/change.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import type { MarketPrices } from '../../src/store/series/price-reads.ts';
import {
  type Quote,
  type QuotedMarket,
  readOpenMarkets,
  readQuotedMarkets,
} from '../../src/store/series/quoted-markets.ts';
import { Admission, type PreparedAnswer, textBytes } from './answer-cache.ts';
import { type JournalView, type NamedKind, type Subject, subjectKey } from './journal-view.ts';
import type { QuoteChecks } from './quote-checks.ts';

/** Markets per statement: some milliseconds of the database and of this process. */
const PAGE = 200;
/** The background load leaves this share of the memory to markets that clients read. */
const LOADED_SHARE = 0.9;
/** All open markets are read again after this time, so that an error in memory heals by itself. */
const RELOAD_MS = 600_000;
/** Measured sizes of a market and of a quote with their prepared prices, without the text of the market. */
const MARKET_BYTES = 800;
const QUOTE_BYTES = 350;

/** The facts of a market in memory: a change of one of them drops it. Changes of quotes are applied instead. */
const KINDS: ReadonlySet<NamedKind> = new Set(['market', 'volumes', 'coverage', 'quote-age']);
const STORED_WITH: ReadonlySet<NamedKind> = new Set([...KINDS, 'price']);

interface MarketMemoryOptions {
  db: Queryable;
  journal: JournalView;
  checks: QuoteChecks;
  log: Logger;
  /** The venues whose open markets are loaded. */
  venues: readonly string[];
  maxBytes: number;
  /** The answers of the routes; undefined for a market without a price. */
  prepareMarket(market: QuotedMarket): PreparedAnswer;
  preparePrices(prices: MarketPrices): PreparedAnswer | undefined;
  /** An answer from memory was sent. */
  onUsed(marketPks: readonly bigint[]): void;
}

interface Row {
  subject: Subject;
  pks: readonly [bigint];
  seq: number;
  quotes: Quote[];
  market: PreparedAnswer;
  /** The prepared prices, and the `as_of` that they have; undefined after a change. */
  prices: { answer: PreparedAnswer | undefined; asOfMs: number | null } | undefined;
  bytes: number;
}

/** An answer from memory, and the keys of its markets. */
export interface MemoryAnswer {
  answer: PreparedAnswer;
  pks: readonly bigint[];
}

/**
 * The market rows and latest quotes of open markets, as answers. It loads them in the background, and follows the journal: a changed quote
 * is applied, another change drops the market and reads it again, together with others.
 */
export class MarketMemory {
  readonly #options: MarketMemoryOptions;
  readonly #rows: LRUCache<string, Row>;
  /** Markets to read again. */
  readonly #wanted = new Map<string, Subject>();
  #isReading = false;
  #after: bigint | undefined = 0n;
  #isClosed = false;
  #reload: NodeJS.Timeout | undefined;
  #generation = 0;
  readonly #admission = new Admission();

  constructor(options: MarketMemoryOptions) {
    this.#options = options;
    this.#rows = new LRUCache<string, Row>({ maxSize: options.maxBytes, sizeCalculation: ({ bytes }) => bytes });
    const { journal } = options;
    journal.onReset(() => this.#forget());
    journal.onNamed(({ kind, seq, change, ...subject }) => {
      const key = subjectKey(subject);
      const row = this.#rows.peek(key);
      if (row && row.seq < seq && kind === 'price') this.#applyQuote(key, row, change.body);
      else if (row && row.seq < seq && KINDS.has(kind)) this.#drop(key, row);
      else if (!row && kind === 'market' && !this.#isFull) this.#want(subject);
    });
    journal.onConfirmed(() => void this.#read());
  }

  /** The market, or undefined when it is not in memory or memory is not confirmed. */
  market(subject: Subject): MemoryAnswer | undefined {
    const row = this.#find(subject);
    return row && { answer: row.market, pks: row.pks };
  }

  /** The latest prices of a market, or undefined when they are not in memory, or without a price. */
  prices(subject: Subject): MemoryAnswer | undefined {
    const row = this.#find(subject);
    if (!row) return undefined;
    const asOfMs = this.#asOfOf(row);
    if (row.prices?.asOfMs !== asOfMs)
      row.prices = { asOfMs, answer: this.#options.preparePrices(this.#toPrices(row)) };
    return row.prices.answer && { answer: row.prices.answer, pks: row.pks };
  }

  /** Counts a sent answer. */
  used({ pks }: Pick<MemoryAnswer, 'pks'>): void {
    this.#options.onUsed(pks);
  }

  /** The prices of all of these markets of a venue, or undefined when one is not in memory. */
  pricesOf(venue: string, marketIds: readonly string[]): MarketPrices[] | undefined {
    const found: MarketPrices[] = [];
    for (const marketId of marketIds) {
      const row = this.#find({ venue, marketId });
      if (!row) return undefined;
      found.push(this.#toPrices(row));
    }
    return found;
  }

  /** Reads this market into memory soon, because a client read it. */
  want(subject: Subject): void {
    if (this.#admission.admits(this.#isFull)) this.#want(subject);
  }

  #want(subject: Subject): void {
    const key = subjectKey(subject);
    if (this.#isClosed || this.#wanted.has(key)) return;
    this.#wanted.set(key, { venue: subject.venue, marketId: subject.marketId });
    void this.#read();
  }

  get size(): { entries: number; bytes: number } {
    return { entries: this.#rows.size, bytes: (this.#rows.calculatedSize ?? 0) + this.#options.checks.bytes };
  }

  /** Whether the background load has read every open market, or as many as the memory takes. */
  get isLoaded(): boolean {
    return this.#after === undefined;
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#reload);
  }

  get #isFull(): boolean {
    return (this.#rows.calculatedSize ?? 0) > this.#options.maxBytes * LOADED_SHARE;
  }

  #find(subject: Subject): Row | undefined {
    return this.#options.journal.isConfirmed ? this.#rows.get(subjectKey(subject)) : undefined;
  }

  #forget(): void {
    this.#generation += 1;
    this.#rows.clear();
    this.#wanted.clear();
    this.#after = 0n;
  }

  #drop(key: string, { subject }: Row): void {
    this.#rows.delete(key);
    this.#want(subject);
  }

  /** A row can be newer than a change that is named later: a quote never becomes older. */
  #applyQuote(key: string, row: Row, body: ChangeBody): void {
    const quote = row.quotes.find(({ outcomeId }) => outcomeId === body['outcome_id']);
    const asOf = body['as_of'];
    if (!quote || typeof asOf !== 'number') {
      this.#drop(key, row);
      return;
    }
    if (quote.asOfMs !== null && asOf < Math.floor(quote.asOfMs / 1_000)) return;
    quote.price = textOf(body['price']);
    quote.bid = textOf(body['best_bid']);
    quote.ask = textOf(body['best_ask']);
    quote.asOfMs = asOf * 1_000;
    row.prices = undefined;
  }

  #asOfOf({ quotes }: Row): number | null {
    let latest: number | null = null;
    for (const quote of quotes) {
      const asOfMs = this.#quoteTime(quote);
      if (asOfMs !== null && (latest === null || asOfMs > latest)) latest = asOfMs;
    }
    return latest;
  }

  #quoteTime({ asOfMs, checked, tokenId }: Quote): number | null {
    return asOfMs === null ? null : Math.max(asOfMs, checked * 1_000, this.#options.checks.of(tokenId) * 1_000);
  }

  #toPrices(row: Row): MarketPrices {
    return {
      pk: row.pks[0],
      venue: row.subject.venue,
      marketId: row.subject.marketId,
      outcomes: row.quotes.map((quote) => {
        const asOfMs = this.#quoteTime(quote);
        const { outcomeId, price, bid, ask } = quote;
        return { outcomeId, price, bid, ask, asOf: asOfMs === null ? null : new Date(asOfMs) };
      }),
    };
  }

  /** Reads wanted markets, then the next page of open ones, one statement at a time, while the journal is confirmed. */
  async #read(): Promise<void> {
    const { journal, log } = this.#options;
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (!this.#isClosed && journal.isConfirmed && (await this.#readSome()));
    } catch (error) {
      // The next confirmation of the journal, which the same database answers, continues.
      log.debug({ err: error }, 'markets not read into memory; will retry');
    } finally {
      this.#isReading = false;
    }
  }

  /** False when there is nothing to read. */
  async #readSome(): Promise<boolean> {
    const { db, venues } = this.#options;
    const generation = this.#generation;
    const wanted = this.#takeWanted();
    if (wanted) {
      try {
        const read = await readQuotedMarkets(db, wanted.venue, wanted.marketIds);
        // Otherwise all of them were named since: the next confirmation of the journal repeats the read.
        return this.#store(read, generation) > 0 || read.length === 0;
      } catch (error) {
        for (const marketId of wanted.marketIds)
          this.#wanted.set(subjectKey({ ...wanted, marketId }), { ...wanted, marketId });
        throw error;
      }
    }
    if (this.#after === undefined) return false;
    const after = this.#after;
    const page = await readOpenMarkets(db, { venues, after, limit: PAGE });
    this.#store(page, generation);
    if (generation !== this.#generation) return true;
    const last = page.at(-1);
    this.#after = page.length < PAGE || !last || this.#isFull ? undefined : last.market.pk;
    if (this.#after === undefined) this.#reloadLater();
    return true;
  }

  #reloadLater(): void {
    clearTimeout(this.#reload);
    this.#reload = setTimeout(() => {
      this.#after = 0n;
    }, RELOAD_MS);
    this.#reload.unref();
  }

  #takeWanted(): { venue: string; marketIds: string[] } | undefined {
    const [first] = this.#wanted.values();
    if (!first) return undefined;
    const marketIds: string[] = [];
    for (const [key, { venue, marketId }] of this.#wanted) {
      if (venue !== first.venue) continue;
      marketIds.push(marketId);
      this.#wanted.delete(key);
      if (marketIds.length === PAGE) break;
    }
    return { venue: first.venue, marketIds };
  }

  #store(markets: readonly QuotedMarket[], generation: number): number {
    let stored = 0;
    if (generation !== this.#generation) return stored;
    for (const read of markets) {
      const { venue, marketId, pk } = read.market;
      const subject = { venue, marketId };
      if (!this.#options.journal.allows(read.stamp, { subjects: [subject], kinds: STORED_WITH })) {
        this.#wanted.set(subjectKey(subject), subject);
        continue;
      }
      const market = this.#options.prepareMarket(read);
      const bytes = MARKET_BYTES + textBytes(market) + read.quotes.length * QUOTE_BYTES;
      const row: Row = {
        subject,
        pks: [pk],
        seq: read.stamp.seq,
        quotes: read.quotes,
        market,
        prices: undefined,
        bytes,
      };
      this.#rows.set(subjectKey(subject), row);
      stored += 1;
    }
    return stored;
  }
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
