import { IS_READ } from '../catalog/market-heat.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { hasSpecifiedAlert } from './candidates.ts';
import { HAS_SCOPES, IS_IN_SCOPE, KEYS_OF_MARKET } from './scopes.ts';

const HAS_ALERT = `EXISTS (SELECT FROM outcome o WHERE o.market_id = m.id AND (${hasSpecifiedAlert('o.token_id')} OR EXISTS (
     SELECT FROM alert a WHERE a.token_id = o.token_id AND a.status = 'active' AND a.probe IS NOT NULL OFFSET 0)
     OR EXISTS (SELECT FROM alert_book b WHERE b.token_id = o.token_id OFFSET 0)))`;

const FOLLOWED = sql(
  'followed_markets',
  `SELECT m.id FROM unnest($1::bigint[]) AS i (id) JOIN market m USING (id)
   WHERE ${IS_READ} OR ${HAS_ALERT} OR ${HAS_SCOPES} AND EXISTS (
     SELECT FROM ${KEYS_OF_MARKET} k JOIN alert a ON a.scope_key = k.key
     WHERE a.status = 'active' AND a.scope_key IS NOT NULL AND ${IS_IN_SCOPE})`,
);

/**
 * The followed markets among these: an active alert names one of their outcomes, also as the second one, or has them in its scope, a client read them within the
 * last minute, or a stream sends their books.
 */
export async function followedMarkets(db: Queryable, marketPks: readonly bigint[]): Promise<bigint[]> {
  return (await db.query<{ id: bigint }>(FOLLOWED, [marketPks])).map(({ id }) => id);
}
