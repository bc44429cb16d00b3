import type { BroadcastEvent } from '../../domain/webhooks/event.ts';
import type { EventFilter } from '../../domain/webhooks/filter.ts';
import { type Queryable, sql } from '../db/tx.ts';
import { LISTENS } from '../marks/listeners.ts';
import { wholeMs } from './rule-rows.ts';

/** A webhook that lists broadcasts. */
export interface Listener {
  pk: bigint;
  accountId: bigint;
  events: readonly string[];
  filter: EventFilter | null;
  /** A paused webhook gets no delivery. The stored event allows a recovery. */
  isActive: boolean;
  /** The creation, rounded down: the precision of observations. Epoch milliseconds. */
  startMs: bigint;
}

/** SQL of whether a condition `c` of a filter names one of the touched ids. */
const names = (column: string) => `(c ->> 'equal' IN (SELECT t.${column} FROM touched t)
       OR EXISTS (SELECT FROM jsonb_array_elements_text(c -> 'in') v WHERE v IN (SELECT t.${column} FROM touched t)))`;

/**
 * The webhooks that list one of $1, and the ones that list trades whose filter may let a trade of the tokens $2 pass. The index has no rows
 * without such webhooks, and then the markets of the tokens are not read.
 */
const LISTENERS = sql(
  'broadcast_listeners',
  `WITH touched AS MATERIALIZED (
     SELECT DISTINCT m.venue_market_id AS market_id, m.event_id
     FROM unnest($2::bigint[]) AS k (token_id) JOIN outcome o ON o.token_id = k.token_id JOIN market m ON m.id = o.market_id)
   SELECT w.pk, w.account_id, w.events, w.filter, w.status = 'active' AS is_active, ${wholeMs('w.created_at')} AS start_ms
   FROM webhook_subscription w
   WHERE ${LISTENS} AND (w.events && $1::text[] OR (cardinality($2::bigint[]) > 0 AND 'trade' = ANY (w.events) AND EXISTS (
     SELECT FROM jsonb_array_elements(w.filter) c WHERE CASE c ->> 'field'
       WHEN 'data.marketId' THEN ${names('market_id')}
       WHEN 'data.eventId' THEN ${names('event_id')}
       ELSE c ->> 'field' = 'data.notional' END)))
   ORDER BY w.pk`,
);

/** The webhooks for broadcasts of these types, and for trades of these tokens. */
export async function readListeners(
  db: Queryable,
  types: readonly BroadcastEvent[],
  tradedTokens: readonly bigint[],
): Promise<Listener[]> {
  if (types.length === 0 && tradedTokens.length === 0) return [];
  return db.query<Listener>(LISTENERS, [types, tradedTokens]);
}
