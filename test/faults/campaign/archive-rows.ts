import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { type ArchiveDay, folderOf } from '../../../src/domain/archive/file.ts';
import { ARCHIVE_KINDS, type ArchiveKind, type ColumnType } from '../../../src/domain/archive/kinds.ts';
import { readPresentFile } from '../../../src/store/archive/catalog.ts';
import { type Database, sql } from '../../../src/store/db/tx.ts';
import { readFiles } from './archive-reads.ts';

const OUTCOMES = 'token t JOIN outcome o ON o.token_id = t.id JOIN market m ON m.id = o.market_id';
const FROM = `$1::date::timestamp AT TIME ZONE 'UTC'`;
const UNTIL = `($1::date + 1)::timestamp AT TIME ZONE 'UTC'`;

const history = (table: string, columns: string) => `
  SELECT m.venue_market_id AS market_id, t.mint AS outcome_id, h.received_at, h.as_of, ${columns}, false AS in_effect
  FROM ${OUTCOMES} JOIN ${table} h ON h.token_id = t.id WHERE h.received_at >= ${FROM} AND h.received_at < ${UNTIL}
  UNION ALL (
  SELECT DISTINCT ON (t.id) m.venue_market_id, t.mint, h.received_at, h.as_of, ${columns}, true
  FROM ${OUTCOMES} JOIN ${table} h ON h.token_id = t.id WHERE h.received_at < ${FROM} ORDER BY t.id, h.received_at DESC)`;

/** The rows of a day in Postgres, of one venue. */
const ROWS: Record<ArchiveKind, string> = {
  trades: `
    SELECT m.venue_market_id AS market_id, t.mint AS outcome_id, r.ts, r.trade_id, r.price, r.size, r.price * r.size AS notional,
      CASE r.side WHEN 1 THEN 'buy' WHEN -1 THEN 'sell' END AS side, r.ordinal, r.received_at
    FROM ${OUTCOMES} JOIN trade r ON r.token_id = t.id WHERE r.ts >= ${FROM} AND r.ts < ${UNTIL}`,
  candles: `
    SELECT m.venue_market_id AS market_id, t.mint AS outcome_id, c.interval_seconds, to_timestamp(c.bucket) AS start, c.open, c.high, c.low,
      c.close, c.volume, c.notional, c.trades
    FROM ${OUTCOMES} JOIN candle c ON c.token_id = t.id
    WHERE c.interval_seconds < 900 AND to_timestamp(c.bucket) >= ${FROM} AND to_timestamp(c.bucket) < ${UNTIL}`,
  prices: history('price_history', 'h.price, h.bid, h.ask'),
  books: history('book_history', 'h.bids, h.asks'),
  markets: `
    SELECT m.venue_market_id AS market_id, v.known_from, v.facts ->> 'event_id' AS event_id, v.facts ->> 'title' AS title,
      v.facts ->> 'status' AS status, v.facts
    FROM market m JOIN market_version v ON v.market_id = m.id WHERE v.known_from >= ${FROM} AND v.known_from < ${UNTIL}
    UNION ALL
    SELECT m.venue_market_id, m.updated_at, m.event_id, m.title, m.status, jsonb_build_object('outcomes', (
      SELECT jsonb_agg(jsonb_build_array(t.mint, o.label) ORDER BY o.ordinal)
      FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = m.id))
    FROM market m WHERE m.updated_at >= ${FROM} AND m.updated_at < ${UNTIL}`,
  resolutions: `
    SELECT m.venue_market_id AS market_id, r.n, r.transition, r.state, r.round, r.at AS venue_at, r.received_at, r.payouts, r.reason, r.source,
      r.facts
    FROM market_resolution r JOIN market m ON m.id = r.market_id WHERE r.received_at >= ${FROM} AND r.received_at < ${UNTIL}`,
  coverage: `
    SELECT NULL AS market_id, c.kind, c.hour AS start, c.class, c.stored, c.total, c.missing, c.tolerance, c.cause, c.reason,
      c.pause_ms::numeric / 1000 AS longest_pause, c.from_at, c.to_at, c.markets, c.markets_gap, c.markets_unknown, c.checked_at
    FROM coverage c WHERE c.hour >= ${FROM} AND c.hour < ${UNTIL}`,
};

const IN_POSTGRES: Record<ColumnType, (name: string) => string> = {
  text: (name) => `q.${name}::text`,
  json: (name) => `q.${name}::text`,
  decimal: (name) => `trim_scale(q.${name})::text`,
  time: (name) => `(extract(epoch FROM q.${name}) * 1000000)::bigint::text`,
  integer: (name) => `q.${name}::text`,
  boolean: (name) => `q.${name}::text`,
};
const IN_FILE: Record<ColumnType, (name: string) => string> = {
  ...IN_POSTGRES,
  text: (name) => name,
  json: (name) => `CAST(${name} AS VARCHAR)`,
  decimal: (name) => `coalesce(${name}_text, CAST(${name} AS VARCHAR))`,
  time: (name) => `CAST(epoch_us(${name}) AS VARCHAR)`,
  integer: (name) => `CAST(${name} AS VARCHAR)`,
  boolean: (name) => `CAST(${name} AS VARCHAR)`,
};

type Rows = Record<string, unknown>[];

const columnsOf = (kind: ArchiveKind): readonly { name: string; type: ColumnType }[] => ARCHIVE_KINDS[kind].columns;
const selected = (kind: ArchiveKind, render: typeof IN_FILE) =>
  columnsOf(kind)
    .map(({ name, type }) => `${render[type](name)} AS "${name}"`)
    .join(', ');

/** Rows in an order of their own, with one text for each value. */
function normal(kind: ArchiveKind, rows: Rows): string[] {
  const textOf = (type: ColumnType, value: unknown) => {
    if (value === null) return null;
    if (type === 'decimal')
      return String(value)
        .replace(/(\.\d*?)0+$/, '$1')
        .replace(/\.$/, '');
    return type === 'json' ? JSON.parse(String(value)) : String(value);
  };
  return rows.map((row) => JSON.stringify(columnsOf(kind).map(({ name, type }) => textOf(type, row[name])))).sort();
}

/** The facts of the present version have more keys than the test names. */
function reduced(rows: Rows): Rows {
  return rows.map((row) => ({
    ...row,
    facts: JSON.stringify({ outcomes: JSON.parse(String(row['facts'])).outcomes }),
  }));
}

/**
 * Asserts that the folder of a day has the file of the catalog, its manifest and nothing else, and that each row of Postgres is in the file,
 * and no other row. Returns their number. A file whose rows Postgres dropped is not compared with them.
 */
export async function expectWhole(db: Database, dir: string, day: ArchiveDay, { isDropped = false } = {}) {
  const { kind, date } = day;
  const present = await readPresentFile(db, day);
  const folder = join(dir, folderOf(day));
  expect((await readdir(folder)).sort()).toEqual(['manifest.json', present?.file].sort());
  const path = join(folder, String(present?.file));
  const bytes = await readFile(path);
  expect(createHash('sha256').update(bytes).digest('hex')).toBe(present?.sha256);
  const manifest = JSON.parse(await readFile(join(folder, 'manifest.json'), 'utf8'));
  const { file, rows, sha256, checksum, revision } = present ?? {};
  expect(manifest).toMatchObject({ ...day, files: [{ file, rows, sha256, checksum, revision, bytes: bytes.length }] });
  expect(manifest.files).toHaveLength(1);
  if (isDropped) return rows ?? 0;
  const statement = sql(`test_rows_of_${kind}`, `SELECT ${selected(kind, IN_POSTGRES)} FROM (${ROWS[kind]}) q`);
  const inFile = await readFiles(
    `SELECT ${selected(kind, IN_FILE)} FROM read_parquet('${path}', hive_partitioning = false)`,
  );
  const inPostgres = await db.query<Record<string, unknown>>(statement, [date]);
  const [one, other] = [inFile, inPostgres.map((row) => named(kind, row))];
  const isMarkets = kind === 'markets';
  expect(normal(kind, isMarkets ? reduced(one) : one)).toEqual(normal(kind, isMarkets ? reduced(other) : other));
  expect(inFile).toHaveLength(rows ?? -1);
  return inFile.length;
}

/** The driver names columns as properties. */
function named(kind: ArchiveKind, row: Record<string, unknown>): Record<string, unknown> {
  const propertyOf = (name: string) => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return Object.fromEntries(columnsOf(kind).map(({ name }) => [name, row[propertyOf(name)]]));
}
