import type { BookRecord, PriceRecord } from '../../src/domain/markets/market.ts';
import { priceOfBook } from '../../src/domain/markets/quoted-price.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { type Database, isContentRefused, type Tx } from '../../src/store/db/tx.ts';
import { shardsOf } from '../../src/store/marks/marks.ts';
import { type ConfirmedPrice, confirmPrices } from '../../src/store/prices/checks.ts';
import { comparePrices, type EqualPrice, sweepPrices, type TokenPrice } from '../../src/store/prices/prices.ts';
import { writeBooks } from '../../src/store/series/books.ts';
import type { Batch } from '../../src/venues/port.ts';
import { bookMemoryOf } from './book-memory.ts';
import type { IngestDeps, PageStore, Written } from './store-page.ts';

/** A write touches most blocks of a venue, whether it confirms a hundred prices or ten thousand. */
const EVERY_MS = 5_000;

/** A quote that no sweep reads for as long as this, or twice as long, is forgotten: its market has ended. */
const KNOWN_FOR_MS = 600_000;

interface KnownQuote {
  text: string;
  storedAsOf: Date;
}

/**
 * The confirmations of the pages of a process, or of one tick, written every 5 s and at the end. They need no lease: the store compares each
 * with its quote. A process that dies, or a write that fails, loses them, and these prices look older than they are until the next sweep.
 *
 * A quote that was equal to the stored one is known, and confirmed without a comparison in the database when it comes again. Another process
 * may have changed the stored one meanwhile. Then the next write of confirmations finds it, and the next price of this outcome is compared
 * again: so such a price is stored at most 5 s and a sweep late, while the database answers.
 */
export class PriceConfirmations {
  readonly #context: { readonly db: Database; readonly log: Logger };
  #pending = new Map<bigint, ConfirmedPrice>();
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #known = new Map<bigint, KnownQuote>();
  /** The quotes of the time before. */
  #knownBefore = new Map<bigint, KnownQuote>();
  #knownSinceMs = performance.now();

  constructor(context: { readonly db: Database; readonly log: Logger }) {
    this.#context = context;
  }

  /** Confirms the prices whose quotes are known, and returns the others. */
  confirmKnown<P extends TokenPrice>(prices: readonly P[]): P[] {
    return prices.filter((price) => {
      const known = this.#known.get(price.tokenId) ?? this.#knownBefore.get(price.tokenId);
      // A price that is not later than the stored one leads to no confirmation, whose write would find another stored quote.
      const { asOfMs, seenAtMs = asOfMs } = price;
      if (known?.text !== textOf(price) || asOfMs < known.storedAsOf.getTime()) return true;
      if (seenAtMs <= known.storedAsOf.getTime()) return true;
      this.#confirm(price, known);
      return false;
    });
  }

  /** Confirms prices that the database found equal to the stored ones, and knows their quotes from now on. */
  confirm(equal: readonly EqualPrice[]): void {
    for (const { price, storedAsOf } of equal) this.#confirm(price, { text: textOf(price), storedAsOf });
  }

  /** The next prices of these outcomes are compared with the database. */
  forget(tokenIds: readonly bigint[]): void {
    for (const tokenId of tokenIds) {
      this.#known.delete(tokenId);
      this.#knownBefore.delete(tokenId);
    }
  }

  #confirm({ tokenId, asOfMs, seenAtMs = asOfMs }: TokenPrice, known: KnownQuote): void {
    this.#known.set(tokenId, known);
    const { storedAsOf } = known;
    if (seenAtMs > storedAsOf.getTime()) this.add([{ tokenId, asOfMs: seenAtMs, storedAsOf }]);
  }

  /** Adds the confirmations of a committed page, in any order of pages. */
  add(confirmed: readonly ConfirmedPrice[]): void {
    for (const one of confirmed) {
      const known = this.#pending.get(one.tokenId);
      if (known === undefined || known.asOfMs <= one.asOfMs) this.#pending.set(one.tokenId, one);
    }
    if (confirmed.length > 0) this.#timer ??= setTimeout(() => void this.flush(), EVERY_MS).unref();
  }

  /** Writes everything added so far. Never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write());
    return this.#writing;
  }

  async #write(): Promise<void> {
    const { db, log } = this.#context;
    const confirmed = [...this.#pending.values()];
    this.#pending = new Map();
    this.#forgetUnread();
    if (confirmed.length === 0) return;
    try {
      this.forget(await confirmPrices(db, confirmed));
    } catch (error) {
      log.warn({ err: error, prices: confirmed.length }, 'price confirmations not stored');
    }
  }

  #forgetUnread(): void {
    const nowMs = performance.now();
    if (nowMs - this.#knownSinceMs < KNOWN_FOR_MS) return;
    this.#knownSinceMs = nowMs;
    this.#knownBefore = this.#known;
    this.#known = new Map();
  }
}

function textOf({ price, bid, ask }: TokenPrice): string {
  return `${price} ${bid ?? ''} ${ask ?? ''}`;
}

/** Prices or books of certain outcomes. Records of other outcomes are not stored. */
export interface OutcomesBatch<R> extends Batch<R> {
  /** Our keys of these outcomes, by the ids of the venue. */
  tokenIdOf: ReadonlyMap<string, bigint>;
}

interface WrittenPrices extends Written {
  /** Outcomes whose price moved. */
  movedTokenIds: readonly bigint[];
}

export interface SweptPrices extends WrittenPrices {
  /** Outcomes whose stored price is still the venue's. */
  confirmed: readonly ConfirmedPrice[];
}

interface PriceDeps extends Pick<IngestDeps, 'db' | 'log' | 'partitions' | 'producer'> {
  /** The confirmations of all ticks of the process. Absent: each tick writes its own. */
  readonly confirmations?: PriceConfirmations;
}

/** The confirmations of the process, or of one walk, which ends with their write. */
function confirmationsOf(deps: Pick<PriceDeps, 'db' | 'log' | 'confirmations'>) {
  const { confirmations: shared } = deps;
  const confirmations = shared ?? new PriceConfirmations(deps);
  return {
    confirmations,
    endConfirmations: async () => {
      if (shared === undefined) await confirmations.flush();
    },
  };
}

/** Stores the changed prices of a tick, wakes their alerts, and confirms the others. Each tick needs a store of its own. */
export function priceStore(deps: PriceDeps) {
  const { confirmations, endConfirmations } = confirmationsOf(deps);
  let isMostlyNew = false;
  return {
    kind: 'prices',
    async news(records, { tokenIdOf }) {
      const unknown = confirmations.confirmKnown(withTokenIds(records, tokenIdOf));
      if (isMostlyNew || unknown.length === 0) {
        isMostlyNew = false;
        return unknown;
      }
      const compared = await comparePrices(deps.db, unknown).catch((error: unknown) => {
        if (isContentRefused(error)) return undefined;
        throw error;
      });
      if (compared === undefined) return unknown;
      const { news, equal } = compared;
      // The next page of the tick is probably like this one. Writing compares too.
      isMostlyNew = news.length * 2 > records.length;
      confirmations.confirm(equal);
      return news;
    },
    prepare: () => prepareForPrices(deps),
    async write(tx, records, { tokenIdOf }) {
      const { newer, movedTokenIds, confirmed } = await sweepPrices(tx, withTokenIds(records, tokenIdOf));
      return { written: newer, movedTokenIds, confirmed };
    },
    wake(parts) {
      wakeAlerts(deps, parts);
      confirmations.add(parts.flatMap(({ confirmed }) => confirmed));
      const moved = parts.flatMap(({ movedTokenIds }) => movedTokenIds);
      confirmations.forget(moved);
      bookMemoryOf(deps.db).forget(moved);
    },
    end: endConfirmations,
  } satisfies PageStore<PriceRecord, SweptPrices, OutcomesBatch<PriceRecord>>;
}

interface SweptBooks extends SweptPrices {
  /** Outcomes whose stored book is the given one. */
  appliedTokenIds: readonly bigint[];
}

/** Stores books and their prices, and wakes the alerts on these. Each walk needs a store of its own. */
export function bookStore(deps: PriceDeps & Pick<IngestDeps, 'now'>) {
  const { confirmations, endConfirmations } = confirmationsOf(deps);
  return {
    kind: 'books',
    async prepare() {
      await deps.partitions.ensureAroundNow('book_history');
      await prepareForPrices(deps);
    },
    write: writeBookPage,
    wake(parts, page) {
      wakeAlerts(deps, parts);
      confirmations.add(parts.flatMap(({ confirmed }) => confirmed));
      confirmations.forget(parts.flatMap(({ movedTokenIds }) => movedTokenIds));
      const appliedTokenIds = parts.flatMap((part) => part.appliedTokenIds);
      bookMemoryOf(deps.db).applied(page, appliedTokenIds, deps.now());
    },
    end: endConfirmations,
  } satisfies PageStore<BookRecord, SweptBooks, OutcomesBatch<BookRecord>>;
}

async function prepareForPrices({ partitions }: Pick<IngestDeps, 'partitions'>): Promise<void> {
  await partitions.ensureAroundNow('price_history');
  await partitions.ensureAroundNow('observation');
}

function wakeAlerts({ producer }: Pick<IngestDeps, 'producer'>, parts: readonly WrittenPrices[]): void {
  producer.wakeStage('evaluate-alerts', shardsOf(parts.flatMap(({ movedTokenIds }) => movedTokenIds)));
}

/** Writes books. Each is a price observation too; an unchanged price is confirmed like that of a sweep. */
async function writeBookPage(
  tx: Tx,
  records: readonly BookRecord[],
  { tokenIdOf }: Pick<OutcomesBatch<BookRecord>, 'tokenIdOf'>,
): Promise<SweptBooks> {
  const known = withTokenIds(records, tokenIdOf);
  const prices = known.flatMap((book) => {
    const price = priceOfBook(book);
    return price === undefined ? [] : [{ ...price, tokenId: book.tokenId }];
  });
  const { newer, appliedTokenIds } = await writeBooks(tx, known);
  const { movedTokenIds, confirmed } = await sweepPrices(tx, prices);
  return { written: newer, appliedTokenIds, movedTokenIds, confirmed };
}

export function withTokenIds<R extends { outcomeId: string }>(
  records: readonly R[],
  tokenIdOf: ReadonlyMap<string, bigint>,
) {
  return records.flatMap((record) => {
    const tokenId = tokenIdOf.get(record.outcomeId);
    return tokenId === undefined ? [] : [{ ...record, tokenId }];
  });
}
