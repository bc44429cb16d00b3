import type { MarketRecord } from '../../domain/markets/market.ts';
import { isComparable, volumeRuleOf } from '../../domain/markets/volume-witness.ts';
import { keepIdleTotals } from '../coverage/totals.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import type { SeenTotal } from './market-sightings.ts';

const INSERT_SAMPLES = sql(
  'insert_volume_samples',
  `INSERT INTO volume_sample (venue, market_id, made_at, volume)
   SELECT $1, market_id, made_at, volume FROM unnest($2::bigint[], $3::timestamptz[], $4::numeric[]) AS s (market_id, made_at, volume)
   ORDER BY market_id, made_at ON CONFLICT DO NOTHING`,
);

/**
 * Keeps the changed totals of a page until `compareTotals` compares them with the stored trades. `moved` holds the former totals of
 * the markets with a changed total; an unchanged total proves nothing new.
 */
export async function sampleTotals(
  tx: Tx,
  venue: string,
  markets: readonly MarketRecord[],
  { pkOf, moved, nowMs }: { pkOf: ReadonlyMap<string, bigint>; moved: ReadonlyMap<bigint, SeenTotal>; nowMs: number },
): Promise<void> {
  const rule = volumeRuleOf(venue);
  if (rule === undefined || moved.size === 0) return;
  const samples = markets.flatMap((market) => {
    const marketPk = pkOf.get(market.marketId);
    if (marketPk === undefined || !moved.has(marketPk) || !isComparable(rule, market)) return [];
    return [{ marketPk, madeAt: new Date(nowMs - (market.ageMs ?? 0)).toISOString(), volume: market.volume }];
  });
  if (samples.length === 0) return;
  await tx.query(INSERT_SAMPLES, [
    venue,
    samples.map(({ marketPk }) => marketPk),
    samples.map(({ madeAt }) => madeAt),
    samples.map(({ volume }) => volume),
  ]);
  const former = samples.flatMap(({ marketPk }) => {
    const { volume = null, seenAt = null } = moved.get(marketPk) ?? {};
    return volume === null || seenAt === null ? [] : [{ marketPk, volume, seenAt }];
  });
  await keepIdleTotals(tx, venue, former);
}

const PRUNE_SAMPLES = sql(
  'prune_volume_samples',
  `WITH pruned AS (DELETE FROM volume_sample WHERE made_at < clock_timestamp() - interval '1 day' RETURNING 1)
   SELECT count(*)::int AS pruned FROM pruned`,
);

/** Deletes the samples of venues that no job compares any more; returns their number. */
export async function pruneSamples(db: Queryable): Promise<number> {
  const [row] = await db.query<{ pruned: number }>(PRUNE_SAMPLES);
  return row?.pruned ?? 0;
}
