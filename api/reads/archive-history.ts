import { access } from 'node:fs/promises';
import { candlesSql, toArchivedRow } from '../../src/archive/candles.ts';
import { tradesSql, valuesAtSql } from '../../src/archive/history.ts';
import type { ArchiveReader } from '../../src/archive/reader.ts';
import { SCHEMA_VERSION } from '../../src/domain/archive/kinds.ts';
import type { TimeRange } from '../../src/domain/values/time-range.ts';
import { logLimited } from '../../src/observe/limited-lines.ts';
import type { Logger } from '../../src/observe/logger.ts';
import { type ArchivedCandle, readPastCandles } from '../../src/store/archive/candles.ts';
import { type PastFile, readFilesBefore, readPastTrades } from '../../src/store/archive/past.ts';
import type { MarketTokens } from '../../src/store/catalog/market-reads.ts';
import { readSeam } from '../../src/store/db/partitions.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import type { StoredBook, StoredLevel } from '../../src/store/series/book-reads.ts';
import type { MarketPrices } from '../../src/store/series/price-reads.ts';
import type { TradePlace, TradeRow } from '../../src/store/series/reads.ts';
import { type ArchiveFolder, archiveUnavailable } from './archive-folder.ts';

/** Days of a read whose first day has too few rows; each later read takes more. */
const FIRST_DAYS = 1;
const MAX_DAYS = 64;
/** The files of a day are large enough that a read for one market uses few of their groups. */
const MORE_DAYS = 4;

interface TradesQuery {
  range: Partial<TimeRange>;
  direction: 'asc' | 'desc';
  limit: number;
  after?: TradePlace | undefined;
}

/** The part of the history that Postgres dropped because files of the archive have it. */
export class ArchiveHistory {
  readonly #db: Queryable;
  readonly #reads: ArchiveReads;

  /** Without a folder, reads of this part are refused. */
  constructor(options: { db: Queryable; folder?: ArchiveFolder; reader?: ArchiveReader; log: Logger }) {
    this.#db = options.db;
    this.#reads = new ArchiveReads(options);
  }

  /**
   * The rows of a page of trades, one more than the page has when more follow: those that Postgres has, with those before `seamMs`, the moment
   * before which files alone have trades in the snapshot of `rows`.
   * @throws ApiError `archive_unavailable`
   */
  async withPast(
    { market, rows, seamMs }: { market: MarketTokens; rows: readonly TradeRow[]; seamMs: number | null },
    { outcomeId, ...query }: TradesQuery & { outcomeId: string | undefined },
  ): Promise<readonly TradeRow[]> {
    const wanted = query.limit + 1;
    if (seamMs === null || (query.range.start ?? 0) * 1000 >= seamMs) return rows;
    const outcomes = market.outcomes.filter((outcome) => outcomeId === undefined || outcome.outcomeId === outcomeId);
    if (query.direction === 'desc') {
      if (rows.length >= wanted) return rows;
      const past = await this.#trades(market, outcomes, query, { seamMs, wanted: wanted - rows.length });
      return past.length === 0 ? rows : [...rows, ...past];
    }
    if (query.after && Number(query.after.atMicros) / 1000 >= seamMs) return rows;
    const past = await this.#trades(market, outcomes, query, { seamMs, wanted });
    return past.length === 0 ? rows : [...past, ...rows].slice(0, wanted);
  }

  async #trades(
    market: MarketTokens,
    outcomes: MarketTokens['outcomes'],
    { range, direction, after }: TradesQuery,
    { seamMs, wanted }: { seamMs: number; wanted: number },
  ): Promise<TradeRow[]> {
    const fromMs = (range.start ?? 0) * 1000;
    const untilMs = Math.min(range.end === undefined ? seamMs : range.end * 1000, seamMs);
    // The place of the last trade, which is on the same day as the next one or before it.
    const afterMs = after && Math.floor(Number(after.atMicros) / 1000);
    const [firstMs, lastMs] =
      direction === 'asc'
        ? [Math.max(fromMs, afterMs ?? fromMs), untilMs]
        : [fromMs, Math.min(untilMs, afterMs === undefined ? untilMs : afterMs + 1)];
    if (firstMs >= lastMs || outcomes.length === 0) return [];
    const past = await readPastTrades(this.#db, {
      venue: market.venue,
      tokenIds: outcomes.map(({ tokenId }) => tokenId),
      from: firstMs / 1000,
      until: lastMs / 1000,
    });
    if (past === null) throw archiveUnavailable('merging');
    const dateOf = ({ atMicros }: { atMicros: string }) => new Date(Number(atMicros) / 1000).toISOString().slice(0, 10);
    const dates = [...new Set([...past.files.map(({ date }) => date), ...past.corrections.map(dateOf)])].sort();
    if (direction === 'desc') dates.reverse();
    const rows: TradeRow[] = [];
    for (let [from, days] = [0, FIRST_DAYS]; from < dates.length && rows.length < wanted; ) {
      const chosen = new Set(dates.slice(from, from + days));
      const query = {
        corrections: past.corrections.filter((correction) => chosen.has(dateOf(correction))),
        marketId: market.marketId,
        outcomes,
        fromMicros: BigInt(Math.ceil(firstMs * 1000)),
        untilMicros: BigInt(Math.ceil(lastMs * 1000)),
        direction,
        limit: wanted - rows.length,
        after,
      };
      const files = past.files.filter(({ date }) => chosen.has(date));
      for (const row of named(await this.#reads.rows(files, (paths) => tradesSql({ ...query, files: paths })))) {
        rows.push({ ...(row as unknown as TradeRow & { tokenId: string }), tokenId: BigInt(String(row['tokenId'])) });
      }
      from += days;
      days = Math.min(days * MORE_DAYS, MAX_DAYS);
    }
    return rows;
  }

  /**
   * The candles before the seam of outcomes of a market.
   * @throws ApiError `archive_unavailable`
   */
  candles(market: MarketTokens, query: CandlesQuery): Promise<ArchivedCandle[]> {
    return readArchivedCandles(this.#db, this.#reads, market, query);
  }

  /**
   * The prices with those that files alone have: of the outcomes without a price. Postgres keeps no value of a market that was over when its
   * partition was dropped, so a later moment can need the files too.
   * @throws ApiError `archive_unavailable`
   */
  async withPastPrices(markets: readonly MarketPrices[], at: number): Promise<MarketPrices[]> {
    const lacking = markets.filter(({ outcomes }) => outcomes.some(({ price }) => price === null));
    const seamMs = lacking.length === 0 ? undefined : await readSeam(this.#db, 'prices');
    if (seamMs === undefined) return [...markets];
    const past = lacking.filter(({ isOver }) => isOver || at * 1000 < seamMs);
    const found = new Map<string, Record<string, unknown>>();
    for (const venue of new Set(past.map((market) => market.venue))) {
      const ofVenue = past.filter((market) => market.venue === venue);
      const marketIds = ofVenue.map(({ marketId }) => marketId);
      const outcomeIds = ofVenue.flatMap(({ outcomes }) =>
        outcomes.filter(({ price }) => price === null).map(({ outcomeId }) => outcomeId),
      );
      const values = await this.#valuesAt('prices', { venue, marketIds, outcomeIds }, at, seamMs);
      for (const [outcomeId, value] of values) found.set(outcomeId, value);
    }
    return markets.map((market) => ({
      ...market,
      outcomes: market.outcomes.map((outcome) => {
        const value = outcome.price === null ? found.get(outcome.outcomeId) : undefined;
        if (value === undefined) return outcome;
        const [price, bid, ask] = ['price', 'bid', 'ask'].map((name) => value[name] as string | null);
        return { ...outcome, price: price ?? null, bid: bid ?? null, ask: ask ?? null, asOf: timeOf(value) };
      }),
    }));
  }

  /**
   * The book of an outcome at a moment of which Postgres has none; null when the files have none either.
   * @throws ApiError `archive_unavailable`
   */
  async bookAt(
    { venue, marketId }: Pick<MarketTokens, 'venue' | 'marketId'>,
    outcomeId: string,
    at: number,
  ): Promise<StoredBook | null> {
    const seamMs = await readSeam(this.#db, 'books');
    if (seamMs === undefined) return null;
    const target = { venue, marketIds: [marketId], outcomeIds: [outcomeId] };
    const value = (await this.#valuesAt('books', target, at, seamMs)).get(outcomeId);
    if (value === undefined) return null;
    const [bids, asks] = ['bids', 'asks'].map((side) => JSON.parse(String(value[side])) as StoredLevel[]);
    return { asOf: timeOf(value), bids: bids ?? [], asks: asks ?? [] };
  }

  /** The last values by a moment, before the seam. The file of a day begins with the values in effect, except those of markets that were over. */
  async #valuesAt(
    kind: 'prices' | 'books',
    target: { venue: string; marketIds: readonly string[]; outcomeIds: readonly string[] },
    at: number,
    seamMs: number,
  ): Promise<Map<string, Record<string, unknown>>> {
    const { venue, marketIds, outcomeIds } = target;
    const found = new Map<string, Record<string, unknown>>();
    const lastMs = Math.min(at * 1000, seamMs - 1);
    const atMicros = BigInt(at * 1000 < seamMs ? Math.floor(at * 1_000_000) : seamMs * 1000 - 1);
    let date = new Date(lastMs).toISOString().slice(0, 10);
    for (let days = FIRST_DAYS; ; days = Math.min(days * MORE_DAYS, MAX_DAYS)) {
      const missing = outcomeIds.filter((id) => !found.has(id));
      if (missing.length === 0) return found;
      const files = await readFilesBefore(this.#db, { kind, venue, date, outcomeIds: missing }, days);
      const last = files.at(-1);
      if (last === undefined) return found;
      const query = { marketIds, outcomeIds: missing, atMicros };
      for (const row of named(await this.#reads.rows(files, (paths) => valuesAtSql(kind, { ...query, files: paths }))))
        found.set(String(row['outcomeId']), row);
      if (files.length < days) return found;
      date = new Date(Date.parse(last.date) - 86_400_000).toISOString().slice(0, 10);
    }
  }
}

/** Rows with names in camel case. */
function named(rows: readonly Record<string, unknown>[]): Record<string, unknown>[] {
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [camelCase(name), value])));
}

function camelCase(name: string): string {
  return name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

function timeOf(value: Record<string, unknown>): Date {
  return new Date(Number(value['asOfMicros']) / 1000);
}

/** Candles of one length; without an outcome those of all outcomes of the market. The range is before the seam. */
interface CandlesQuery {
  readonly outcomeId?: string | undefined;
  readonly seconds: number;
  readonly range: TimeRange;
}

/**
 * The candles of files, by their start. Postgres has those that changed since their file was made, and those that it did not drop yet: they
 * stand in for the ones of a file.
 * @throws ApiError `archive_unavailable`
 */
async function readArchivedCandles(
  db: Queryable,
  reads: ArchiveReads,
  market: MarketTokens,
  { outcomeId, seconds, range }: CandlesQuery,
): Promise<ArchivedCandle[]> {
  const outcomes = market.outcomes.filter((outcome) => outcomeId === undefined || outcome.outcomeId === outcomeId);
  if (outcomes.length === 0 || range.start >= range.end) return [];
  const times = { seconds, from: range.start, until: range.end };
  const tokenIds = outcomes.map(({ tokenId }) => tokenId);
  const { files, present } = await readPastCandles(db, { venue: market.venue, tokenIds, ...times });
  const candles = new Map<string, ArchivedCandle>();
  const add = (candle: ArchivedCandle) => candles.set(`${candle.bucket} ${candle.outcomeId}`, candle);
  if (files.length > 0) {
    const outcomeIds = outcomes.map((outcome) => outcome.outcomeId);
    const query = { marketId: market.marketId, outcomeIds, ...times };
    const rows = await reads.rows(files, (paths) => candlesSql({ ...query, files: paths }));
    for (const row of rows) add(toArchivedRow(row));
  }
  for (const candle of present) add(candle);
  return [...candles.values()].sort((one, other) => one.bucket - other.bucket);
}

/** For the files of a read, before it begins. */
const MAX_WAIT_MS = 10_000;
/** A file moves once; other files of a read can move while it is repeated. */
const MAX_MOVES = 3;

async function isAnyGone(paths: readonly string[]): Promise<boolean> {
  const found = await Promise.allSettled(paths.map((path) => access(path)));
  return found.some(({ status }) => status === 'rejected');
}

/** Statements over files of the archive; without a folder they are refused. */
class ArchiveReads {
  readonly #folder: ArchiveFolder | undefined;
  readonly #reader: ArchiveReader | undefined;
  readonly #log: Logger;

  constructor(options: { folder?: ArchiveFolder; reader?: ArchiveReader; log: Logger }) {
    this.#folder = options.folder;
    this.#reader = options.reader;
    this.#log = options.log;
  }

  /**
   * The first read of a file compares all its bytes: a request does not wait longer for that than for a read, and the comparison goes on.
   * @throws ApiError `archive_unavailable`
   */
  async #pathsOf(files: readonly PastFile[]): Promise<string[]> {
    const folder = this.#folder;
    if (folder === undefined) {
      if (files.length === 0) return [];
      throw archiveUnavailable('off');
    }
    if (files.some(({ schemaVersion }) => schemaVersion > SCHEMA_VERSION)) throw archiveUnavailable('newer_schema');
    const paths = Promise.all(files.map((file) => folder.pathOf(file)));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(archiveUnavailable('busy')), MAX_WAIT_MS);
    });
    try {
      return await Promise.race([paths, late]);
    } finally {
      clearTimeout(timer);
      paths.catch(() => undefined);
    }
  }

  /**
   * The rows of a statement over the paths of files. A later revision can move a file while the read waits for its turn: then the read is
   * repeated with the new path.
   * @throws ApiError `archive_unavailable`
   */
  async rows(
    files: readonly PastFile[],
    statementOf: (paths: string[]) => string,
    movesLeft = MAX_MOVES,
  ): Promise<readonly Record<string, unknown>[]> {
    const paths = await this.#pathsOf(files);
    if (this.#reader === undefined) throw archiveUnavailable('off');
    try {
      return await this.#reader.run(statementOf(paths));
    } catch (error) {
      if (movesLeft > 0 && (await isAnyGone(paths))) return this.rows(files, statementOf, movesLeft - 1);
      const fault = (error as { code?: unknown }).code === 'archive_busy' ? 'busy' : 'read_failed';
      const fields = { cause: fault, err: error };
      logLimited(this.#log, { level: 'error', fields, message: 'read of the archive failed', kind: fault });
      throw archiveUnavailable(fault, error);
    }
  }
}
