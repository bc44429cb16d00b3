import { EVENT_STATUS_ORDER } from '../../domain/markets/market.ts';
import { type Database, sql, type Tx } from '../db/tx.ts';

/** An event of a venue. Ids longer than MAX_EVENT_ID_LENGTH are ignored. */
interface EventKey {
  venue: string;
  eventId: string;
}

/** The maximum length of an event's id, a condition of the index market_by_event. */
export const MAX_EVENT_ID_LENGTH = 200;

const ORDER = `ARRAY[${EVENT_STATUS_ORDER.map((status) => `'${status}'`).join(', ')}]`;
const HAS_EVENT = `length(m.event_id) <= ${MAX_EVENT_ID_LENGTH}`;

/**
 * The facts of an event from the rows `m` of its markets: the most active status, the most frequent category and the latest title.
 * An event without remaining markets is closed.
 */
const STATUS = `coalesce((${ORDER})[min(array_position(${ORDER}, m.status))], 'closed')`;
const CATEGORY = `mode() WITHIN GROUP (ORDER BY m.category)`;
const TITLE = `(array_agg(m.event_title ORDER BY m.updated_at DESC, m.id DESC) FILTER (WHERE m.event_title IS NOT NULL))[1]`;

/** $1, $2, $3: venues, ids and pages of events. */
const DERIVED = `SELECT r.venue, r.event_id, r.url, d.status, d.category, d.title
   FROM unnest($1::text[], $2::text[], $3::text[]) AS r (venue, event_id, url)
   CROSS JOIN LATERAL (
     SELECT ${STATUS} AS status, ${CATEGORY} AS category, ${TITLE} AS title
     FROM market m WHERE m.venue = r.venue AND m.event_id = r.event_id AND ${HAS_EVENT}) d
   WHERE length(r.event_id) <= ${MAX_EVENT_ID_LENGTH}`;

const INSERT_EVENTS = sql(
  'insert_market_events',
  `INSERT INTO market_event (venue, event_id, status, category, title, url, updated_at)
   SELECT n.venue, n.event_id, n.status, n.category, n.title, n.url, clock_timestamp() FROM (${DERIVED}) n
   WHERE NOT EXISTS (SELECT FROM market_event e WHERE e.venue = n.venue AND e.event_id = n.event_id)
   ORDER BY n.venue, n.event_id ON CONFLICT DO NOTHING RETURNING venue, event_id`,
);

const LOCK_EVENTS = sql(
  'lock_market_events',
  `SELECT FROM market_event WHERE (venue, event_id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
   ORDER BY venue, event_id FOR NO KEY UPDATE`,
);

const UPDATE_EVENTS = sql(
  'update_market_events',
  `UPDATE market_event e SET status = n.status, category = n.category, title = coalesce(n.title, e.title),
     url = coalesce(n.url, e.url), updated_at = clock_timestamp()
   FROM (${DERIVED}) n WHERE e.venue = n.venue AND e.event_id = n.event_id
     AND (e.status, e.category, e.title, e.url) IS DISTINCT FROM
       (n.status, n.category, coalesce(n.title, e.title), coalesce(n.url, e.url))`,
);

/**
 * Updates events from their markets, which the caller has written in the same transaction. An unchanged event is not rewritten. Writers
 * of an event wait for each other and derive after the wait, so the last one sees all markets.
 */
export async function refreshEvents(tx: Tx, events: readonly (EventKey & { url?: string })[]): Promise<void> {
  const byKey = new Map<string, (typeof events)[number]>();
  for (const event of events) {
    const key = JSON.stringify([event.venue, event.eventId]);
    if (event.url !== undefined || !byKey.has(key)) byKey.set(key, event);
  }
  if (byKey.size === 0) return;
  const inserted = await tx.query<{ venue: string; eventId: string }>(INSERT_EVENTS, columnsOf([...byKey.values()]));
  for (const row of inserted) byKey.delete(JSON.stringify([row.venue, row.eventId]));
  if (byKey.size === 0) return;
  const existing = columnsOf([...byKey.values()]);
  await tx.query(LOCK_EVENTS, existing.slice(0, 2));
  await tx.query(UPDATE_EVENTS, existing);
}

function columnsOf(events: readonly (EventKey & { url?: string })[]): (string | null)[][] {
  return [events.map(({ venue }) => venue), events.map(({ eventId }) => eventId), events.map(({ url }) => url ?? null)];
}

const FIND_STALE = sql(
  'find_stale_market_events',
  `SELECT d.venue, d.event_id FROM (
     SELECT m.venue, m.event_id, ${STATUS} AS status, ${CATEGORY} AS category FROM market m
     WHERE ${HAS_EVENT} GROUP BY m.venue, m.event_id) d
   LEFT JOIN market_event e ON e.venue = d.venue AND e.event_id = d.event_id
   WHERE (e.status, e.category) IS DISTINCT FROM (d.status, d.category) ORDER BY d.venue, d.event_id`,
);

/** Events per transaction. */
const BATCH = 500;

/**
 * Refreshes events that differ from their markets, because the markets are older than the table or an older release wrote them.
 * Starts no further batch after the abort of `signal`. Returns the number of refreshed events.
 */
export async function reconcileEvents(db: Database, signal?: AbortSignal): Promise<number> {
  const stale = await db.query<{ venue: string; eventId: string }>(FIND_STALE);
  let refreshed = 0;
  for (let from = 0; from < stale.length && !signal?.aborted; from += BATCH) {
    const batch = stale.slice(from, from + BATCH).map(({ venue, eventId }) => ({ venue, eventId }));
    await db.transaction((tx) => refreshEvents(tx, batch));
    refreshed += batch.length;
  }
  return refreshed;
}
