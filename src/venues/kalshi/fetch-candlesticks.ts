import { type Decimal, parseDecimal } from '../../domain/values/decimal.ts';
import { isHttpStatus, VenueError } from '../errors.ts';
import { KALSHI, type KalshiClient } from './client.ts';
import { isAbsent, readPrice } from './dollars.ts';
import { fieldOf } from './models.ts';

/** The venue's summary of the trades of a period, in dollars of YES and contracts. */
export interface Candlestick {
  /** Epoch seconds, `[start, end)`; the venue names the period by its `end`. */
  start: number;
  end: number;
  /** All four are absent without trades. */
  open?: Decimal;
  high?: Decimal;
  low?: Decimal;
  close?: Decimal;
  volume: Decimal;
}

export type CandlestickMinutes = 1 | 60 | 1440;

interface CandlestickRequest {
  ticker: string;
  /** The series of the market's event. The ticker does not contain it in a form that could be cut out. */
  seriesTicker: string;
  /** Candles that start in `[startSeconds, endSeconds)`. */
  startSeconds: number;
  endSeconds: number;
  periodMinutes: CandlestickMinutes;
}

const DAY_MINUTES = 1440;
const DAY_SECONDS = 86_400;
/** Days are days of New York: at a clock change they last 23 or 25 hours. */
const CLOCK_CHANGE_SECONDS = 3_600;
/** Below the venue's limit of an answer, which includes both of its ends. */
const PERIODS_PER_REQUEST = 4_000;
const FIELDS = ['open', 'high', 'low', 'close'] as const;

/**
 * Candlesticks of an answer, oldest first; pure. Reads the fixed-point keys (`open_dollars`, `volume_fp`), the shape of January 2026 (cents
 * beside dollars, null without trades), and the shape of the archive (dollars as text without a suffix). A day starts at the end of the day
 * before; the first one starts 24 hours before its end.
 * @throws VenueError `invalid_payload` that names the fault: a skipped candle would look like a period without trades.
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
    // Without a suffix, a text is dollars and a number is cents.
    const dollars = isAbsent(suffixed) && typeof plain === 'string' ? plain : suffixed;
    const reading = readPrice(`price.${field}`, dollars, plain);
    if (!reading.ok) throw unreadable(`candle ending ${end}, ${reading.rejection.detail}`);
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
 * The venue's own candles of a market, oldest first: of the live route, or of the archive where the live route has none. Throws VenueError.
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
  // A candle is named by its end, a period after its start. The day before the first one gives the start of the first one.
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
