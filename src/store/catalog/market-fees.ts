import { createHash } from 'node:crypto';
import type { FeeStatement } from '../../domain/markets/fee.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { insertFactsSql } from '../marks/publish-marks.ts';
import { ONE_MARKET } from './market-reads.ts';

/** A statement about the fee of a stored market. */
export interface MarketFee {
  marketPk: bigint;
  statement: FeeStatement;
  /** The age of the oldest fact behind it, milliseconds. Default 0. */
  ageMs?: number;
  /** The venue's time of the record, epoch milliseconds. */
  statedAtMs?: number | undefined;
}

/** The digest of a statement, as hexadecimal text. */
export function feeDigest(statement: FeeStatement): string {
  return createHash('sha256').update(JSON.stringify(statement)).digest('hex');
}

/** In the order of the digests, so that two writers cannot deadlock. */
const KEEP_STATEMENTS = sql(
  'keep_fee_statements',
  `INSERT INTO fee_statement (hash, statement) SELECT decode(hash, 'hex'), statement FROM (
     SELECT DISTINCT ON (hash) hash, statement FROM unnest($1::text[], $2::jsonb[]) AS i (hash, statement) ORDER BY hash) i
   WHERE NOT EXISTS (SELECT FROM fee_statement s WHERE s.hash = decode(i.hash, 'hex')) ORDER BY hash
   ON CONFLICT (hash) DO NOTHING`,
);

/** SQL of the rule of a statement that applies now. */
const ruleNow = (statement: string) => `(
     SELECT p -> 'rule' FROM jsonb_array_elements(${statement} -> 'periods') WITH ORDINALITY AS e (p, place)
     WHERE coalesce((p ->> 'fromMs')::float8, 0) <= extract(epoch FROM clock_timestamp()) * 1000 ORDER BY place DESC LIMIT 1)`;

/**
 * The caller has locked the markets, so the times of the statements of a market are in the order of their commits. A statement is dropped
 * - when it is the last one, or its market has a result;
 * - when its facts are older than the last one, or the venue made its record earlier than the stored one;
 * - when it lacks announced changes that the last one knows, and its present rule is the same.
 */
const APPEND = sql(
  'append_market_fees',
  `WITH changed AS MATERIALIZED (
     SELECT m.id, s.id AS fee_id, l.known_at FROM unnest($1::bigint[], $2::text[], $3::float8[], $4::float8[]) AS i (id, hash, age_ms, stated_ms)
     JOIN market m USING (id) JOIN fee_statement s ON s.hash = decode(i.hash, 'hex')
     LEFT JOIN LATERAL (
       SELECT f.known_at, k.statement FROM market_fee f JOIN fee_statement k ON k.id = f.fee_id
       WHERE f.market_id = m.id ORDER BY f.known_at DESC LIMIT 1) l ON true
     WHERE m.fee_id IS DISTINCT FROM s.id AND m.status NOT IN ('resolved', 'settled')
       AND (l.known_at IS NULL OR i.age_ms = 0 OR l.known_at <= clock_timestamp() - i.age_ms * interval '1 millisecond')
       AND (i.stated_ms IS NULL OR m.stated_at IS NULL OR m.stated_at <= to_timestamp(i.stated_ms / 1000))
       AND NOT (s.statement ? 'isPresentOnly' AND l.statement IS NOT NULL AND NOT l.statement ? 'isPresentOnly'
         AND ${ruleNow('s.statement')} IS NOT DISTINCT FROM ${ruleNow('l.statement')})),
   clock AS MATERIALIZED (SELECT clock_timestamp() AS at),
   added AS (
     INSERT INTO market_fee (market_id, known_at, fee_id)
     SELECT c.id, greatest(clock.at, c.known_at + interval '1 microsecond'), c.fee_id FROM changed c CROSS JOIN clock),
   marked AS (${insertFactsSql('fees', 'SELECT id FROM changed')})
   UPDATE market m SET fee_id = c.fee_id FROM changed c WHERE m.id = c.id`,
);

/** Stores the statements that differ from the last stored one of their market. Each market appears once, and its row is locked. */
export async function appendFees(tx: Tx, fees: readonly MarketFee[]): Promise<void> {
  if (fees.length === 0) return;
  const hashes = fees.map(({ statement }) => feeDigest(statement));
  await tx.query(KEEP_STATEMENTS, [hashes, fees.map(({ statement }) => JSON.stringify(statement))]);
  await tx.query(APPEND, [
    fees.map(({ marketPk }) => marketPk),
    hashes,
    fees.map(({ ageMs = 0 }) => ageMs),
    fees.map(({ statedAtMs }) => statedAtMs ?? null),
  ]);
}

/** SQL of the last statement about the fee of a market that was known at a moment, as a relation of at most one row. */
export const feeKnownAt = (marketId: string, at: string) =>
  `(SELECT s.statement, f.known_at FROM market_fee f JOIN fee_statement s ON s.id = f.fee_id
     WHERE f.market_id = ${marketId} AND f.known_at <= ${at} ORDER BY f.known_at DESC LIMIT 1)`;

const FIND = sql(
  'find_market_fee',
  `SELECT m.id AS pk, f.statement, f.known_at FROM (SELECT * FROM market m WHERE ${ONE_MARKET}) m
   LEFT JOIN LATERAL ${feeKnownAt('m.id', `coalesce(to_timestamp($3::float8), 'infinity')`)} f ON true`,
);

/** The last known statement about the fee of a market. */
export interface KnownFee {
  pk: bigint;
  /** Null: none was read. */
  statement: FeeStatement | null;
  /** When oddswire stored it. */
  knownAt: Date | null;
}

/** The fee of a market as known at a moment (epoch seconds) or now; null without the market. */
export async function findFee(
  db: Queryable,
  venues: readonly string[],
  marketId: string,
  asOf?: number,
): Promise<KnownFee | null> {
  const [found] = await db.query<KnownFee>(FIND, [venues, marketId, asOf ?? null]);
  return found ?? null;
}
