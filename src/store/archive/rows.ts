import { escapeLiteral } from 'pg';
import type { ArchiveDay } from '../../domain/archive/file.ts';
import { ARCHIVE_KINDS, type ArchiveKind, type ColumnType, fileColumns } from '../../domain/archive/kinds.ts';

/** The part of a file's rows that each kind reads, as SQL literals: the venue, and the first moment of the day and of the next day. */
interface Place {
  readonly venue: string;
  readonly from: string;
  readonly until: string;
  /** The table of trades. */
  readonly trades: TradeTable;
}

/** Trades of days that Postgres has, and trades that a file of a day without rows in Postgres may lack. */
type TradeTable = 'trade' | 'archive_correction';

/** Outcomes of a venue, as `k (id, mint, market_id, is_over)`. Solana has tokens without markets. */
const tokensOf = ({ venue, from }: Place) => `(
  SELECT t.id, t.mint, m.venue_market_id AS market_id,
    ((m.status IN ('resolved', 'settled') AND m.updated_at < ${from}) OR m.gone_at < ${from}) IS TRUE AS is_over
  FROM market m JOIN outcome o ON o.market_id = m.id JOIN token t ON t.id = o.token_id WHERE m.venue = ${venue}
  UNION ALL
  SELECT t.id, t.mint, NULL, false FROM token t
  WHERE ${venue} = 'solana' AND NOT EXISTS (SELECT FROM outcome o WHERE o.token_id = t.id)) k`;

/** The changes of a day, after the last one before it of each outcome that is not over. */
const historyOf = (table: string, columns: string) => (place: Place) =>
  `
  SELECT k.market_id, k.mint AS outcome_id, h.received_at, h.as_of, ${columns}, false AS in_effect
  FROM ${tokensOf(place)} JOIN ${table} h ON h.token_id = k.id AND h.received_at >= ${place.from} AND h.received_at < ${place.until}
  UNION ALL
  SELECT k.market_id, k.mint, h.received_at, h.as_of, ${columns}, true
  FROM ${tokensOf(place)} CROSS JOIN LATERAL (
    SELECT * FROM ${table} h WHERE h.token_id = k.id AND h.received_at < ${place.from} ORDER BY h.received_at DESC LIMIT 1) h
  WHERE NOT k.is_over`;

/** The columns of each kind, in the order of `ARCHIVE_KINDS`. */
const ROWS: Record<ArchiveKind, (place: Place) => string> = {
  trades: (place) => `
    SELECT k.market_id, k.mint AS outcome_id, t.ts, t.trade_id, t.price, t.size, t.price * t.size AS notional,
      CASE t.side WHEN 1 THEN 'buy' WHEN -1 THEN 'sell' END AS side, t.ordinal, t.received_at
    FROM ${tokensOf(place)} JOIN ${place.trades} t ON t.token_id = k.id AND t.ts >= ${place.from} AND t.ts < ${place.until}`,
  candles: (place) => `
    SELECT k.market_id, k.mint AS outcome_id, c.interval_seconds, to_timestamp(c.bucket) AS start,
      c.open, c.high, c.low, c.close, c.volume, c.notional, c.trades
    FROM ${tokensOf(place)} JOIN candle c ON c.token_id = k.id AND c.interval_seconds IN (60, 300)
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
};

/** The column whose range a file states. */
const TIME: Record<ArchiveKind, string> = {
  trades: 'ts',
  candles: 'start',
  prices: 'received_at',
  books: 'received_at',
  markets: 'known_from',
  resolutions: 'received_at',
};

/** Whether a decimal has at most 20 digits before its point and 18 behind it. */
const fits = (value: string) => `${value} = round(${value}, 18) AND abs(${value}) < 1e20`;

const RENDERED: Record<Exclude<ColumnType, 'decimal'>, (value: string) => string> = {
  text: (value) => value,
  time: (value) => `(extract(epoch FROM ${value}) * 1000000)::bigint::text`,
  integer: (value) => `${value}::text`,
  boolean: (value) => `${value}::text`,
  json: (value) => `${value}::text`,
};

/** The rows of a day with each column as text, as the digest of a row reads it; times are microseconds since 1970. */
function renderedRows({ kind, venue, date }: ArchiveDay, order = '', trades: TradeTable = 'trade'): string {
  const from = `(${escapeLiteral(date)}::date::timestamp AT TIME ZONE 'UTC')`;
  const place = { venue: escapeLiteral(venue), from, until: `(${from} + interval '24 hours')`, trades };
  const columns = ARCHIVE_KINDS[kind].columns.flatMap(({ name, type }) => {
    const value = `r.${name}`;
    if (type !== 'decimal') return [`${RENDERED[type](value)} AS ${name}`];
    return [
      `CASE WHEN ${fits(value)} THEN ${value}::numeric(38, 18)::text END AS ${name}`,
      `CASE WHEN NOT (${fits(value)}) THEN trim_scale(${value})::text END AS ${name}_text`,
    ];
  });
  // OFFSET 0 keeps Postgres from computing a value again for each use of it.
  return `SELECT ${columns.join(', ')} FROM (${ROWS[kind](place)} OFFSET 0) r ${order} OFFSET 0`;
}

/** SQL that copies the rows of a day as CSV in the order of its file, every value quoted, null unquoted and empty. */
export function copySql(day: ArchiveDay): string {
  const order = ARCHIVE_KINDS[day.kind].order.map((name) => {
    const isText = ARCHIVE_KINDS[day.kind].columns.some((column) => column.name === name && column.type === 'text');
    return `r.${name}${isText ? ' COLLATE "C"' : ''} NULLS FIRST`;
  });
  return `COPY (${renderedRows(day, `ORDER BY ${order.join(', ')}`)}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)`;
}

const half = (digest: string, from: number) => `('x' || substr(${digest}, ${from}, 16))::bit(64)::bigint`;
/** A sum of unsigned numbers, which Postgres reads as signed. */
const unsignedSum = (name: string) =>
  `(coalesce(sum(${name}), 0) + count(*) FILTER (WHERE ${name} < 0) * 18446744073709551616)`;

/** SQL of the md5 of the text of a rendered row `r`. */
const digestOf = (kind: ArchiveKind) =>
  `md5(${fileColumns(kind)
    .map(({ name }) => `coalesce(octet_length(r.${name}) || ':' || r.${name}, '-')`)
    .join(' || ')})`;

/** SQL that copies the corrections of a day of trades as CSV: the columns of its file, and the digest of each row. */
export function copyCorrectionsSql(day: ArchiveDay): string {
  const rows = renderedRows(day, '', 'archive_correction');
  return `COPY (SELECT r.*, ${digestOf(day.kind)} FROM (${rows}) r) TO STDOUT (FORMAT csv, FORCE_QUOTE *)`;
}

/** SQL of the summary of these rows: their number, time range and checksum. */
export function summarySql(day: ArchiveDay): string {
  const { kind } = day;
  const hasInEffect = fileColumns(kind).some(({ name }) => name === 'in_effect');
  const inEffect = hasInEffect ? `(r.in_effect = 'true')` : 'false';
  return `SELECT count(*)::float8 AS rows, (count(*) FILTER (WHERE in_effect))::float8 AS in_effect,
      min(us) FILTER (WHERE NOT in_effect)::float8 / 1000 AS start_ms, max(us) FILTER (WHERE NOT in_effect)::float8 / 1000 AS end_ms,
      ${unsignedSum('high')} || '.' || ${unsignedSum('low')} AS checksum
    FROM (SELECT us, in_effect, ${half('d', 1)} AS high, ${half('d', 17)} AS low FROM (
      SELECT r.${TIME[kind]}::bigint AS us, ${inEffect} AS in_effect, ${digestOf(kind)} AS d FROM (${renderedRows(day)}) r OFFSET 0) h OFFSET 0) s`;
}
