import { candlesSql, toArchivedRow } from '../../src/archive/candles.ts';
import type { TimeRange } from '../../src/domain/values/time-range.ts';
import { type ArchivedCandle, readPastCandles } from '../../src/store/archive/candles.ts';
import type { MarketTokens } from '../../src/store/catalog/market-reads.ts';
import type { Queryable } from '../../src/store/db/tx.ts';
import type { ArchiveReads } from './archive-reads.ts';

/** Candles of one length; without an outcome those of all outcomes of the market. The range is before the seam. */
export interface CandlesQuery {
  readonly outcomeId?: string | undefined;
  readonly seconds: number;
  readonly range: TimeRange;
}

/**
 * The candles of files, by their start. Postgres has those that changed since their file was made, and those that it did not drop yet: they
 * stand in for the ones of a file.
 * @throws ApiError `archive_unavailable`
 */
export async function readArchivedCandles(
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
    const paths = await reads.pathsOf(files);
    const rows = await reads.rows(candlesSql({ files: paths, marketId: market.marketId, outcomeIds, ...times }));
    for (const row of rows) add(toArchivedRow(row));
  }
  for (const candle of present) add(candle);
  return [...candles.values()].sort((one, other) => one.bucket - other.bucket);
}
