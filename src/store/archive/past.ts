import { seamOf } from '../db/partitions.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { CATALOG_FILE, CATALOG_FILE_JSON, type CatalogFile } from './file-list.ts';

/** A file with the version of its schema. */
export interface PastFile extends CatalogFile {
  readonly schemaVersion: number;
}

/** A trade that a file of its day may lack. */
export interface Correction {
  readonly tokenId: string;
  readonly atMicros: string;
  readonly tradeId: string;
  readonly price: string;
  readonly size: string;
  readonly side: number | null;
  readonly ordinal: number;
  /** When oddswire stored it, epoch seconds. */
  readonly receivedSeconds: number | null;
}

/** What the archive has of the trades of a time, as of one snapshot. */
interface PastTrades {
  /** Oldest first. Days without a trade of these outcomes are omitted. */
  readonly files: readonly PastFile[];
  /** Oldest first. */
  readonly corrections: readonly Correction[];
}

/** More corrections of one market wait for the next revision of their files, and no page of them is read before. */
const MAX_CORRECTIONS = 20_000;

const DAY = (moment: string) => `(${moment} AT TIME ZONE 'UTC')::date`;

/** Candles of a day say whether it has trades; Postgres keeps them. $1 venue, $2 token keys, $3 and $4 epoch seconds. */
const PAST_TRADES = sql(
  'read_past_trades',
  `WITH bounds AS MATERIALIZED (
     SELECT coalesce(to_timestamp($3::float8), '-infinity') AS from_at,
       least(coalesce(to_timestamp($4::float8), 'infinity'), ${seamOf('trades')}) AS until_at),
   day AS MATERIALIZED (
     SELECT DISTINCT ${DAY('to_timestamp(c.bucket)')} AS date FROM candle c, bounds b
     WHERE c.token_id = ANY ($2::bigint[]) AND c.interval_seconds = 86400 AND to_timestamp(c.bucket) < b.until_at
       AND to_timestamp(c.bucket) > b.from_at - interval '1 day')
   SELECT
     (SELECT coalesce(json_agg(json_build_object(${CATALOG_FILE_JSON}) ORDER BY f.date), '[]')
      FROM archive_file f JOIN day d ON d.date = f.date
      WHERE f.kind = 'trades' AND f.venue = $1 AND f.superseded_at IS NULL AND f.file IS NOT NULL) AS files,
     (SELECT coalesce(json_agg(json_build_object('tokenId', c.token_id::text, 'atMicros', (extract(epoch FROM c.ts) * 1000000)::bigint::text,
          'tradeId', c.trade_id, 'price', c.price::text, 'size', c.size::text, 'side', c.side, 'ordinal', c.ordinal,
          'receivedSeconds', floor(extract(epoch FROM c.received_at))) ORDER BY c.ts), '[]')
      FROM (SELECT c.* FROM archive_correction c, bounds b
            WHERE c.token_id = ANY ($2::bigint[]) AND c.ts >= b.from_at AND c.ts < b.until_at LIMIT ${MAX_CORRECTIONS + 1}) c) AS corrections`,
);

/** The files and corrections of trades of these outcomes in a range, epoch seconds; null while too many corrections wait. */
export async function readPastTrades(
  db: Queryable,
  { venue, tokenIds, from, until }: { venue: string; tokenIds: readonly bigint[]; from?: number; until?: number },
): Promise<PastTrades | null> {
  const [row] = await db.query<PastTrades>(PAST_TRADES, [venue, tokenIds, from ?? null, until ?? null]);
  if (row === undefined || row.corrections.length > MAX_CORRECTIONS) return null;
  return row;
}

/** $1 kind, $2 venue, $3 the latest day, $4 a number of files. */
const FILES_BEFORE = sql(
  'read_archive_files_before',
  `SELECT ${CATALOG_FILE} FROM archive_file f WHERE kind = $1 AND venue = $2 AND date <= $3::date AND file IS NOT NULL AND superseded_at IS NULL
     AND date >= (SELECT coalesce(min(t.created_at) AT TIME ZONE 'UTC', '-infinity')::date FROM token t WHERE t.mint = ANY ($5::text[])) - 1
   ORDER BY f.date DESC LIMIT $4`,
);

/** The files of a day and before it, latest first, since the first of these outcomes was known. */
export function readFilesBefore(
  db: Queryable,
  day: { kind: 'prices' | 'books'; venue: string; date: string; outcomeIds: readonly string[] },
  limit: number,
): Promise<PastFile[]> {
  const { kind, venue, date, outcomeIds } = day;
  return db.query(FILES_BEFORE, [kind, venue, date, limit, outcomeIds]);
}
