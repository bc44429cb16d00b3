import { readFile } from 'node:fs/promises';
import { ARCHIVED_INTERVALS } from '../../src/domain/archive/kinds.ts';
import { compareCandles } from '../../src/domain/markets/candle.ts';
import { decimal } from '../../src/domain/values/decimal.ts';
import { asError, OddswireError } from '../../src/domain/values/errors.ts';
import { findMarket, findMarketTokens } from '../../src/store/catalog/market-reads.ts';
import { readSeam } from '../../src/store/db/partitions.ts';
import { readCandles } from '../../src/store/series/reads.ts';
import { createKalshiClient } from '../../src/venues/kalshi/client.ts';
import {
  type Candlestick,
  type CandlestickMinutes,
  fetchCandlesticks,
  parseCandlesticks,
} from '../../src/venues/kalshi/fetch-candlesticks.ts';
import type { CommandContext } from '../operator-command.ts';
import {
  type AuditOptions,
  auditExitCode,
  createAuditOutput,
  describeDisagreement,
  NOTHING_COMPARED,
} from './output.ts';

const MINUTE_SECONDS = 60;
/** Minutes are compared in ranges up to this long, hours in any. */
const MINUTES_WITHIN_SECONDS = 3 * 86_400;
const VENUE_TIME_LIMIT_MS = 120_000;

interface Source {
  minutes: CandlestickMinutes;
  candles: Candlestick[];
}

/**
 * Compares our candles of one Kalshi market (of its Yes outcome, which stores all of its trades) with the venue's own.
 * Days are skipped, because the venue's days are days of New York. Returns the exit code.
 */
export async function compareWithVenue(
  options: AuditOptions,
  against: string,
  { db, config }: CommandContext,
): Promise<number> {
  const { venue, range } = options;
  const marketId = options.marketId ?? '';
  const output = createAuditOutput(options);
  const market = await findMarket(db, [venue], marketId);
  if (market === null) throw new OddswireError('market_not_found', `${venue} has no market ${marketId}`);
  const sources =
    against === 'venue'
      ? await askVenue(config.venueUrls.kalshi, market, range)
      : [await readRecorded(against, marketId)];
  const yes = (await findMarketTokens(db, [venue], marketId))?.outcomes[0]?.tokenId;
  const seam = Math.ceil(((await readSeam(db, 'candles')) ?? 0) / 1000);
  if (seam > range.start) {
    process.stderr.write(
      `finer candles before ${new Date(seam * 1000).toISOString()} are in files of the archive: not compared\n`,
    );
  }
  let compared = 0;
  for (const { minutes, candles } of sources) {
    const seconds = minutes * MINUTE_SECONDS;
    const from = ARCHIVED_INTERVALS.includes(seconds) ? Math.max(range.start, seam) : range.start;
    const within = candles.filter(({ start }) => start >= from && start < range.end);
    const ours = yes === undefined ? [] : await readCandles(db, yes, seconds, rangeOf(within, seconds));
    const disagreements = compareCandles(
      ours.map(({ bucket, open, high, low, close, volume }) => ({
        start: bucket,
        open: decimal(open),
        high: decimal(high),
        low: decimal(low),
        close: decimal(close),
        volume: decimal(volume),
      })),
      within,
    );
    for (const each of disagreements) {
      await output.difference(
        () => `${marketId} ${minutes} min ${describeDisagreement(each)}`,
        () => ({ market_id: marketId, minutes, ...each }),
      );
    }
    compared += within.length;
    process.stderr.write(
      `${within.length} candles of ${minutes} min compared, ${disagreements.length} fields differ\n`,
    );
  }
  if (compared === 0) process.stderr.write(`${NOTHING_COMPARED}: the venue has no candles in this range\n`);
  await output.end({ compared });
  return auditExitCode({ compared, differences: output.found });
}

/** The range of the compared candles: the venue has no candles outside of it. */
function rangeOf(candles: readonly Candlestick[], seconds: number): { start: number; end: number } {
  const start = candles[0]?.start ?? 0;
  return { start, end: (candles.at(-1)?.start ?? start) + seconds };
}

async function askVenue(
  url: string,
  market: { marketId: string; eventId: string | null },
  range: { start: number; end: number },
): Promise<Source[]> {
  const client = createKalshiClient({ url });
  const signal = AbortSignal.timeout(VENUE_TIME_LIMIT_MS);
  try {
    const event = (await client.getEvent(market.eventId ?? market.marketId, signal)) as
      | { series_ticker?: unknown }
      | undefined;
    if (typeof event?.series_ticker !== 'string') {
      throw new OddswireError('no_series', `the venue does not say which series ${market.marketId} belongs to`);
    }
    const request = {
      ticker: market.marketId,
      seriesTicker: event.series_ticker,
      startSeconds: Math.ceil(range.start / 3_600) * 3_600,
      endSeconds: Math.floor(range.end / 3_600) * 3_600,
    };
    const periods: CandlestickMinutes[] = range.end - range.start <= MINUTES_WITHIN_SECONDS ? [1, 60] : [60];
    const sources: Source[] = [];
    for (const minutes of periods) {
      const candles = await fetchCandlesticks(client, { ...request, periodMinutes: minutes }, signal);
      sources.push({ minutes, candles });
    }
    return sources;
  } finally {
    await client.close();
  }
}

/** A recorded answer: the list `candlesticks` of the ticker, at any depth, or the only such list. */
async function readRecorded(path: string, ticker: string): Promise<Source> {
  let json: unknown;
  try {
    json = JSON.parse(await readFile(path, 'utf8'));
  } catch (error) {
    throw new OddswireError('unreadable_file', `${path}: ${asError(error).message}`);
  }
  const lists = listsIn(json);
  const named = lists.find((list) => list.ticker === ticker) ?? (lists.length === 1 ? lists[0] : undefined);
  if (!named) throw new OddswireError('unreadable_file', `${path} contains no candlesticks of ${ticker}`);
  const ends = named.rows
    .map((row) => Number((row as { end_period_ts?: unknown }).end_period_ts))
    .sort((a, b) => a - b);
  const gaps = ends.slice(1).map((end, index) => end - (ends[index] ?? end));
  const minutes = [1, 60, 1440].find((each) => gaps.includes(each * MINUTE_SECONDS)) as CandlestickMinutes | undefined;
  if (minutes === undefined || minutes === 1440) {
    throw new OddswireError('unreadable_file', `${path} contains no candlesticks of a minute or an hour`);
  }
  return { minutes, candles: parseCandlesticks(named.rows, minutes) };
}

function listsIn(json: unknown, inherited?: string): { ticker?: string; rows: unknown[] }[] {
  if (Array.isArray(json)) return json.flatMap((item) => listsIn(item, inherited));
  if (json === null || typeof json !== 'object') return [];
  const { ticker, market_ticker, candlesticks } = json as Record<string, unknown>;
  const name = [ticker, market_ticker, inherited].find((each) => typeof each === 'string') as string | undefined;
  const own = Array.isArray(candlesticks) ? [{ rows: candlesticks, ...(name !== undefined && { ticker: name }) }] : [];
  const rest = Object.values(json).filter((value) => value !== candlesticks);
  return [...own, ...rest.flatMap((value) => listsIn(value, name))];
}
