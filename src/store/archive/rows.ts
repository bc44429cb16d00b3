import { escapeLiteral } from 'pg';
import type { ArchiveDay } from '../../domain/archive/file.ts';
import { ARCHIVE_KINDS, ARCHIVED_INTERVALS, type ArchiveKind, type ColumnType } from '../../domain/archive/kinds.ts';

/** The part of the rows that each kind reads, as SQL: the venue, the first moment and the one behind the last, of a file those of its day. */
interface Place {
  readonly venue: string;
  /** One market only. */
  readonly marketId?: string;
  readonly hasOutsideMarkets: boolean;
  readonly from: string;
  readonly until: string;
  readonly trades: TradeTable;
  /** Lengths of candles, seconds. */
  readonly intervals: readonly number[];
  /** Whether histories begin with the values in effect at the first moment. */
  readonly hasInEffect: boolean;
}

/** Trades of days that Postgres has, and trades that a file of a day without rows in Postgres may lack. */
export type TradeTable = 'trade' | 'archive_correction';

const OUTSIDE_MARKETS = `
  UNION ALL
  SELECT t.id, t.mint, NULL, false FROM token t WHERE NOT EXISTS (SELECT FROM outcome o WHERE o.token_id = t.id)`;

/**
 * Outcomes of a venue, as `k (id, mint, market_id, is_over)`. Solana has tokens without markets; without that part Postgres can read the
 * markets in their order, and sorts the rows of one market at a time.
 */
const tokensOf = ({ venue, marketId, from, hasOutsideMarkets }: Place) => `(
  SELECT t.id, t.mint, m.venue_market_id AS market_id,
    ((m.status IN ('resolved', 'settled') AND m.updated_at < ${from}) OR m.gone_at < ${from}) IS TRUE AS is_over
  FROM market m JOIN outcome o ON o.market_id = m.id JOIN token t ON t.id = o.token_id WHERE m.venue = ${venue}${
    marketId === undefined ? '' : ` AND m.venue_market_id = ${marketId}`
  }${hasOutsideMarkets ? OUTSIDE_MARKETS : ''}) k`;

/** The changes of a day, after the last one before it of each outcome that is not over. */
const historyOf = (table: string, columns: string) => (place: Place) =>
  `
  SELECT k.market_id, k.mint AS outcome_id, h.received_at, h.as_of, ${columns}, false AS in_effect
  FROM ${tokensOf(place)} JOIN ${table} h ON h.token_id = k.id AND h.received_at >= ${place.from} AND h.received_at < ${place.until}${
    place.hasInEffect
      ? `
  UNION ALL
  SELECT k.market_id, k.mint, h.received_at, h.as_of, ${columns}, true
  FROM ${tokensOf(place)} CROSS JOIN LATERAL (
    SELECT * FROM ${table} h WHERE h.token_id = k.id AND h.received_at < ${place.from} ORDER BY h.received_at DESC LIMIT 1) h
  WHERE NOT k.is_over`
      : ''
  }`;

/** The columns of each kind, in the order of `ARCHIVE_KINDS`. */
const ROWS: Record<ArchiveKind, (place: Place) => string> = {
  trades: (place) => `
    SELECT k.market_id, k.mint AS outcome_id, t.ts, t.trade_id, t.price, t.size, t.price * t.size AS notional,
      CASE t.side WHEN 1 THEN 'buy' WHEN -1 THEN 'sell' END AS side, t.ordinal, t.received_at
    FROM ${tokensOf(place)} JOIN ${place.trades} t ON t.token_id = k.id AND t.ts >= ${place.from} AND t.ts < ${place.until}`,
  candles: (place) => `
    SELECT k.market_id, k.mint AS outcome_id, c.interval_seconds, to_timestamp(c.bucket) AS start,
      c.open, c.high, c.low, c.close, c.volume, c.notional, c.trades
    FROM ${tokensOf(place)} JOIN candle c ON c.token_id = k.id AND c.interval_seconds IN (${place.intervals.join(', ')})
      AND c.bucket >= extract(epoch FROM ${place.from})::bigint AND c.bucket < extract(epoch FROM ${place.until})::bigint`,
  prices: historyOf('price_history', 'h.price, h.bid, h.ask'),
  books: historyOf('book_history', 'h.bids, h.asks'),
  markets: ({ venue, from, until }) => `
    SELECT m.venue_market_id AS market_id, v.known_from, v.facts ->> 'event_id' AS event_id, v.facts ->> 'title' AS title,
      v.facts ->> 'status' AS status, v.facts
    FROM market m CROSS JOIN LATERAL (
      SELECT v.known_from, v.facts FROM market_version v WHERE v.market_id = m.id
      UNION ALL
      SELECT m.updated_at, to_jsonb(m) - ARRAY['id', 'venue', 'venue_market_id', 'content_hash', 'updated_at', 'search', 'resolution_turn',
          'gone_at', 'fee_id']
        || jsonb_build_object('outcomes', coalesce((
             SELECT jsonb_agg(jsonb_build_array(t.mint, o.label) ORDER BY o.ordinal)
             FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = m.id), '[]'),
           'payouts', coalesce((
             SELECT jsonb_agg(jsonb_build_array(t.mint, o.payout::text) ORDER BY o.ordinal)
             FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = m.id AND o.payout IS NOT NULL), '[]'))) v
    WHERE m.venue = ${venue} AND v.known_from >= ${from} AND v.known_from < ${until}`,
  resolutions: ({ venue, from, until }) => `
    SELECT m.venue_market_id AS market_id, r.n, r.transition, r.state, r.round, r.at AS venue_at, r.received_at, r.payouts, r.reason, r.source, r.facts
    FROM market_resolution r JOIN market m ON m.id = r.market_id
    WHERE m.venue = ${venue} AND r.received_at >= ${from} AND r.received_at < ${until}`,
  coverage: ({ venue, from, until }) => `
    SELECT m.venue_market_id AS market_id, c.kind, c.hour AS start, c.class, c.stored, c.total, c.missing, c.tolerance, c.cause, c.reason,
      c.pause_ms::numeric / 1000 AS longest_pause, c.from_at, c.to_at, c.markets, c.markets_gap, c.markets_unknown, c.checked_at
    FROM coverage c LEFT JOIN market m ON m.id = c.market_id AND c.market_id > 0
    WHERE c.venue = ${venue} AND c.hour >= ${from} AND c.hour < ${until} AND c.checked_at IS NOT NULL AND (c.market_id = 0 OR m.id IS NOT NULL)`,
};

/** The column whose range a file states. */
export const TIME_COLUMN: Record<ArchiveKind, string> = {
  trades: 'ts',
  candles: 'start',
  prices: 'received_at',
  books: 'received_at',
  markets: 'known_from',
  resolutions: 'received_at',
  coverage: 'start',
};

/** Whether a decimal has at most 20 digits before its point and 18 behind it. The scale decides nearly always, and costs least. */
const fits = (value: string) =>
  `${value} < 1e20 AND ${value} > -1e20 AND (scale(${value}) <= 18 OR ${value} = round(${value}, 18))`;

/** The values of a column of a file as SQL: of a decimal two, because its digits beyond the type of the file are text. */
function rendered(name: string, type: ColumnType): string[] {
  const value = `r.${name}`;
  // It has six digits behind its point.
  if (type === 'time') return [`extract(epoch FROM ${value})`];
  // COPY writes `t` and `f`; the text of a row has `true` and `false`.
  if (type === 'boolean') return [`${value}::text`];
  if (type !== 'decimal') return [value];
  return [
    `CASE WHEN ${fits(value)} THEN CASE WHEN scale(${value}) <= 18 THEN ${value} ELSE round(${value}, 18) END END`,
    `CASE WHEN ${fits(value)} THEN NULL ELSE trim_scale(${value}) END`,
  ];
}

/** SQL that copies the rows of a day as CSV in the order of its file, as `CsvRows` reads it. */
export function copySql({ kind, venue, date }: ArchiveDay, trades: TradeTable): string {
  const from = `(${escapeLiteral(date)}::date::timestamp AT TIME ZONE 'UTC')`;
  const columns: readonly { name: string; type: ColumnType }[] = ARCHIVE_KINDS[kind].columns;
  const order = ARCHIVE_KINDS[kind].order.map((name) => {
    const isText = columns.some((column) => column.name === name && column.type === 'text');
    return `q.${name}${isText ? ' COLLATE "C"' : ''} NULLS FIRST`;
  });
  const rows = ROWS[kind]({
    venue: escapeLiteral(venue),
    hasOutsideMarkets: venue === 'solana',
    from,
    until: `(${from} + interval '24 hours')`,
    trades,
    intervals: ARCHIVED_INTERVALS,
    hasInEffect: true,
  });
  // OFFSET 0 keeps Postgres from computing a value again for each use of it.
  return copyOf(kind, `SELECT * FROM (${rows}) q ORDER BY ${order.join(', ')} OFFSET 0`);
}

/** Rows of a venue or a market of `[from, until)`, epoch microseconds. */
export interface CopiedSpan {
  readonly kind: ArchiveKind;
  readonly venue: string;
  readonly marketId?: string | undefined;
  readonly from: bigint;
  readonly until: bigint;
  readonly intervals?: readonly number[];
}

/** SQL that copies the rows of the markets of a venue as CSV with the columns of a file, in no order and without values in effect. */
export function copySpanSql(span: CopiedSpan, trades: TradeTable): string {
  const { kind, venue, marketId, from, until, intervals = ARCHIVED_INTERVALS } = span;
  const moment = (micros: bigint) => `(timestamptz 'epoch' + ${micros} * interval '1 microsecond')`;
  const rows = ROWS[kind]({
    venue: escapeLiteral(venue),
    hasOutsideMarkets: false,
    from: moment(from),
    until: moment(until),
    trades,
    intervals,
    hasInEffect: false,
    ...(marketId !== undefined && { marketId: escapeLiteral(marketId) }),
  });
  return copyOf(kind, `SELECT * FROM (${rows}) q OFFSET 0`);
}

function copyOf(kind: ArchiveKind, rows: string): string {
  const values = ARCHIVE_KINDS[kind].columns.flatMap(({ name, type }) => rendered(name, type));
  return `COPY (SELECT ${values.join(', ')} FROM (${rows}) r) TO STDOUT (FORMAT csv, FORCE_QUOTE *)`;
}
