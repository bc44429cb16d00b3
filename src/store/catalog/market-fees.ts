import { createHash } from 'node:crypto';
import type { FeeStatement } from '../../domain/markets/fee.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { insertFactsSql } from '../marks/publish-marks.ts';
import { ONE_MARKET } from './market-reads.ts';

/** A statement about the fee of a stored market. */
export interface MarketFee {
  marketPk: bigint;
  statement: FeeStatement;
}

/** The digest that `market.fee_hash` holds, as hexadecimal text. */
export function feeDigest(statement: FeeStatement): string {
  return createHash('sha256').update(JSON.stringify(statement)).digest('hex');
}

/**
 * The caller has locked the markets, so the times of the statements of a market are in the order of their commits, and the hash is the
 * present one.
 */
const APPEND = sql(
  'append_market_fees',
  `WITH input AS MATERIALIZED (
     SELECT id, statement, decode(hash, 'hex') AS hash FROM unnest($1::bigint[], $2::jsonb[], $3::text[]) AS i (id, statement, hash)),
   changed AS MATERIALIZED (
     SELECT i.* FROM input i JOIN market m USING (id) WHERE m.fee_hash IS DISTINCT FROM i.hash),
   clock AS MATERIALIZED (SELECT clock_timestamp() AS at),
   added AS (
     INSERT INTO market_fee (market_id, known_at, statement)
     SELECT c.id, greatest(clock.at, l.known_at + interval '1 microsecond'), c.statement FROM changed c CROSS JOIN clock
     LEFT JOIN LATERAL (SELECT known_at FROM market_fee f WHERE f.market_id = c.id ORDER BY known_at DESC LIMIT 1) l ON true),
   marked AS (${insertFactsSql('fees', 'SELECT id FROM changed')})
   UPDATE market m SET fee_hash = c.hash FROM changed c WHERE m.id = c.id`,
);

/** Stores the statements that differ from the last stored one of their market. Each market appears once, and its row is locked. */
export async function appendFees(tx: Tx, fees: readonly MarketFee[]): Promise<void> {
  if (fees.length === 0) return;
  await tx.query(APPEND, [
    fees.map(({ marketPk }) => marketPk),
    fees.map(({ statement }) => JSON.stringify(statement)),
    fees.map(({ statement }) => feeDigest(statement)),
  ]);
}

/** SQL of the last statement about the fee of a market that was known at a moment, as a relation of at most one row. */
export const feeKnownAt = (marketId: string, at: string) =>
  `(SELECT f.statement, f.known_at FROM market_fee f WHERE f.market_id = ${marketId} AND f.known_at <= ${at} ORDER BY f.known_at DESC LIMIT 1)`;

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
