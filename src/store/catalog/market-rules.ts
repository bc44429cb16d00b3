import { type RulesState, type RulesVersion, rulesVersions } from '../../domain/markets/rules.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { ONE_MARKET } from './market-reads.ts';

/**
 * The states of markets whose rules differ from the state before. The versions of rules derive from the versions of the market, which
 * every release writes in the transaction of the change and which are permanent: a table of their own would miss the changes that a
 * process of the former release stores. A version of that release has no key for the source. OFFSET 0 decompresses the facts once.
 */
const RULE_STATES = sql(
  'market_rule_states',
  `SELECT s.market_id, floor(extract(epoch FROM s.at) * 1000)::float8 AS at_ms, s.text, s.source, s.has_source
   FROM (
     SELECT s.*, lag(ROW (s.text, s.source, s.has_source)) OVER (PARTITION BY s.market_id ORDER BY s.at) AS former
     FROM (
       SELECT v.market_id, v.known_from AS at, f.facts ->> 'resolution_criteria' AS text, f.facts ->> 'settlement_source' AS source,
         f.facts ? 'settlement_source' AS has_source
       FROM market_version v CROSS JOIN LATERAL (SELECT v.facts - 'description' AS facts OFFSET 0) f WHERE v.market_id = ANY ($1::bigint[])
       UNION ALL
       SELECT m.id, m.updated_at, m.resolution_criteria, m.settlement_source, true FROM market m WHERE m.id = ANY ($1::bigint[])) s
     WHERE s.at <= coalesce(to_timestamp($2::float8), 'infinity')) s
   WHERE ROW (s.text, s.source, s.has_source) IS DISTINCT FROM s.former
   ORDER BY s.market_id, s.at`,
);

interface StateRow {
  marketId: bigint;
  atMs: number;
  text: string | null;
  source: string | null;
  hasSource: boolean;
}

/** The versions of the rules of each market, oldest first, as known at a moment (epoch seconds) or now. */
export async function readRules(
  db: Queryable,
  marketPks: readonly bigint[],
  asOf?: number,
): Promise<Map<bigint, RulesVersion[]>> {
  const statesOf = new Map<bigint, RulesState[]>(marketPks.map((pk) => [pk, []]));
  const rows = await db.query<StateRow>(RULE_STATES, [marketPks, asOf ?? null]);
  for (const { marketId, atMs, text, source, hasSource } of rows) {
    statesOf.get(marketId)?.push({ atMs, text, settlementSource: hasSource ? source : undefined });
  }
  return new Map([...statesOf].map(([pk, states]) => [pk, rulesVersions(states)]));
}

const FIND = sql(
  'find_market_of_rules',
  `SELECT m.id AS pk, floor(extract(epoch FROM s.full_seen_at) * 1000)::float8 AS read_ms
   FROM market m LEFT JOIN market_stats s ON s.market_id = m.id WHERE ${ONE_MARKET}`,
);

interface MarketRules {
  /** When the venue last sent these rules, epoch milliseconds: at this moment or later. */
  readMs: number;
  /** Oldest first; empty while no rules are known. */
  versions: RulesVersion[];
}

/** The rules of a market, or null without the market. `asOf` in epoch seconds, absent for now. */
export async function findRules(
  db: Queryable,
  venues: readonly string[],
  marketId: string,
  asOf?: number,
): Promise<MarketRules | null> {
  const [market] = await db.query<{ pk: bigint; readMs: number | null }>(FIND, [venues, marketId]);
  if (!market) return null;
  const versions = (await readRules(db, [market.pk], asOf)).get(market.pk) ?? [];
  // A lookup of one market stores changed rules, but no unchanged volumes and so no sighting.
  return { readMs: Math.max(market.readMs ?? 0, versions.at(-1)?.sinceMs ?? 0), versions };
}
