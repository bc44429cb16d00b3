import { type Decimal, parseDecimal } from '../../domain/values/decimal.ts';
import { VenueError } from '../errors.ts';
import { isHttpStatus, KALSHI, type KalshiClient } from './client.ts';
import { isAbsent, readPrice } from './dollars.ts';
import { fieldOf } from './parse-market.ts';

/** Trades of a period as the venue sums them up, in dollars of YES and contracts. */
export interface Candlestick {
  /** Epoch seconds, `[start, end)`; `end` is what the venue names the period by. */
  start: number;
  end: number;
  /** Absent all four where nothing was traded. */
  open?: Decimal;
  high?: Decimal;
  low?: Decimal;
  close?: Decimal;
  volume: Decimal;
}

export type CandlestickMinutes = 1 | 60 | 1440;

interface CandlestickRequest {
  ticker: string;
  /** The series of the market's event; it is no part of the ticker that could be cut out. */
  seriesTicker: string;
  /** Candles that start in `[startSeconds, endSeconds)`. */
  startSeconds: number;
  endSeconds: number;
  periodMinutes: CandlestickMinutes;
}

const DAY_MINUTES = 1440;
const DAY_SECONDS = 86_400;
/** Days are days of New York: with the clocks they are 23 or 25 hours long. */
const CLOCK_CHANGE_SECONDS = 3_600;
/** Below what the venue puts into one answer, which ends inclusive on both sides. */
const PERIODS_PER_REQUEST = 4_000;
const FIELDS = ['open', 'high', 'low', 'close'] as const;

/**
 * Candlesticks of an answer, oldest first; pure. Reads the fixed-point keys (`open_dollars`, `volume_fp`), the shape of January
 * 2026 (cents beside dollars, null without trades), and the archive's, which has dollars as text without a suffix (venue
 * documentation section 2.7). A day starts where the day before it ends; of the first one, 24 hours before its own end.
 * @throws VenueError `invalid_payload` naming what is wrong: a candle left out would look like a period without trades.
 */
export function parseCandlesticks(rows: readonly unknown[], periodMinutes: CandlestickMinutes): Candlestick[] {
  const ends = new Map(rows.map((row) => [readEnd(row), row]));
  let previousEnd = Number.NEGATIVE_INFINITY;
  return [...ends]
    .sort(([a], [b]) => a - b)
    .map(([end, row]) => {
      const start = startOf(end, previousEnd, periodMinutes);
      previousEnd = end;
      return { start, end, ...readPrices(row, end), volume: readVolume(row, end) };
    });
}

function startOf(end: number, previousEnd: number, periodMinutes: CandlestickMinutes): number {
  const isNextDay = Math.abs(end - previousEnd - DAY_SECONDS) <= CLOCK_CHANGE_SECONDS;
  return periodMinutes === DAY_MINUTES && isNextDay ? previousEnd : end - periodMinutes * 60;
}

function readEnd(row: unknown): number {
  const end = fieldOf(row, 'end_period_ts');
  if (typeof end !== 'number' || !Number.isSafeInteger(end) || end <= 0) throw unreadable(`end_period_ts: ${end}`);
  return end;
}

function readPrices(row: unknown, end: number): Partial<Record<(typeof FIELDS)[number], Decimal>> {
  const price = fieldOf(row, 'price');
  const found: Partial<Record<(typeof FIELDS)[number], Decimal>> = {};
  for (const field of FIELDS) {
    const plain = fieldOf(price, field);
    const suffixed = fieldOf(price, `${field}_dollars`);
    // Without a suffix, text is dollars and a number is cents.
    const dollars = isAbsent(suffixed) && typeof plain === 'string' ? plain : suffixed;
    const reading = readPrice(`price.${field}`, dollars, plain);
    if (!reading.ok) throw unreadable(`candle ending ${end}, ${reading.refusal.detail}`);
    if (reading.value !== undefined) found[field] = reading.value;
  }
  const count = Object.keys(found).length;
  if (count !== 0 && count !== FIELDS.length) throw unreadable(`candle ending ${end}: a price is missing`);
  return found;
}

function readVolume(row: unknown, end: number): Decimal {
  const fixed = fieldOf(row, 'volume_fp');
  const volume = parseDecimal(isAbsent(fixed) ? fieldOf(row, 'volume') : fixed);
  if (volume === null || volume.startsWith('-')) throw unreadable(`candle ending ${end}: volume`);
  return volume;
}

/**
 * The venue's own candles of a market, oldest first: of the live route, or of the archive where that has none. Throws
 * VenueError.
 */
export async function fetchCandlesticks(
  client: Pick<KalshiClient, 'listCandlesticks'>,
  request: CandlestickRequest,
  signal: AbortSignal,
): Promise<Candlestick[]> {
  const { ticker, seriesTicker } = request;
  const live = await listUnless404(() => listRange(client, { ticker, seriesTicker }, request, signal));
  const rows = live?.length ? live : await listUnless404(() => listRange(client, { ticker }, request, signal));
  if (live === undefined && rows === undefined) {
    throw new VenueError(KALSHI, 'http_status', `no candlesticks of ${ticker}`, { retryable: false, statusCode: 404 });
  }
  const candles = parseCandlesticks(rows ?? [], request.periodMinutes);
  return candles.filter(({ start }) => start >= request.startSeconds && start < request.endSeconds);
}

async function listRange(
  client: Pick<KalshiClient, 'listCandlesticks'>,
  of: { ticker: string; seriesTicker?: string },
  { startSeconds, endSeconds, periodMinutes }: CandlestickRequest,
  signal: AbortSignal,
): Promise<unknown[]> {
  const periodSeconds = periodMinutes * 60;
  const isDays = periodMinutes === DAY_MINUTES;
  // The last candle ends a period after it starts; of the first day, the one before says where it starts.
  const first = startSeconds - (isDays ? DAY_SECONDS + CLOCK_CHANGE_SECONDS : 0);
  const last = endSeconds + periodSeconds + (isDays ? CLOCK_CHANGE_SECONDS : 0);
  const rows: unknown[] = [];
  for (let from = first; from < last; from += PERIODS_PER_REQUEST * periodSeconds) {
    const to = Math.min(last, from + PERIODS_PER_REQUEST * periodSeconds);
    const parameters = { start_ts: from, end_ts: to, period_interval: periodMinutes };
    rows.push(...(await client.listCandlesticks(of, parameters, signal)));
  }
  return rows;
}

async function listUnless404(list: () => Promise<unknown[]>): Promise<unknown[] | undefined> {
  try {
    return await list();
  } catch (error) {
    if (isHttpStatus(error, [404])) return undefined;
    throw error;
  }
}

function unreadable(what: string): VenueError {
  return new VenueError(KALSHI, 'invalid_payload', `candlesticks: ${what}`, { retryable: false });
}
