import { MARKET_STATUSES, type MarketStatus } from '../../domain/markets/market.ts';
import type { Row } from '../../domain/wire/fields.ts';
import type { MARKET_EVENT } from '../../domain/wire/market-data.ts';
import { type Queryable, type Statement, sql, sqlPlannedPerCall } from '../db/tx.ts';
import { MAX_EVENT_ID_LENGTH } from './market-events.ts';
import { wordsQuery } from './market-search.ts';

/** An event with sums over its markets, `numeric` as text, unknown as null. */
export type StoredEvent = Row<typeof MARKET_EVENT> & { pk: bigint };

const EVENT_COLUMNS = `e.id AS pk, e.venue, e.event_id, e.title, e.category, e.status, e.url, a.market_count, a.created_at, a.open_at,
  a.close_at, a.volume, a.volume_24h, greatest(e.updated_at, a.updated_at) AS updated_at, t.tags`;
const MARKETS_OF_EVENT = `m.venue = e.venue AND m.event_id = e.event_id AND length(m.event_id) <= ${MAX_EVENT_ID_LENGTH}`;
/** The joins of EVENT_COLUMNS beside `market_event e`. */
const EVENT_PARTS = `CROSS JOIN LATERAL (
    SELECT count(*)::int AS market_count, min(m.created_at) AS created_at, min(m.open_at) AS open_at,
      max(m.close_at) AS close_at, max(m.updated_at) AS updated_at, sum(s.volume) AS volume, sum(s.volume_24h) AS volume_24h
    FROM market m LEFT JOIN market_stats s ON s.market_id = m.id WHERE ${MARKETS_OF_EVENT}) a
  CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(DISTINCT tag ORDER BY tag), '{}') AS tags
    FROM market m CROSS JOIN unnest(m.tags) AS tag WHERE ${MARKETS_OF_EVENT}) t`;

const FIND_EVENT = sql(
  'find_market_event',
  `SELECT ${EVENT_COLUMNS} FROM (
     SELECT * FROM market_event WHERE venue = ANY ($1::text[]) AND event_id = $2
     ORDER BY array_position($1::text[], venue) LIMIT 1) e ${EVENT_PARTS}`,
);

/** One event by the venue's own id, or null. When two venues use one id, the first listed venue wins. */
export async function findEvent(
  db: Queryable,
  venues: readonly string[],
  eventId: string,
): Promise<StoredEvent | null> {
  const [event] = await db.query<StoredEvent>(FIND_EVENT, [venues, eventId]);
  return event ?? null;
}

interface EventListQuery {
  venues: readonly string[];
  /** Default: every status. */
  statuses?: readonly MarketStatus[];
  /** At most 200 characters. */
  category?: string;
  /** Words of the title: trimmed, not empty, at most 200 characters. */
  text?: string;
  limit: number;
  /** Start after this event's key. */
  after?: string;
}

interface EventList {
  events: StoredEvent[];
  /** The key of the last event when more follow. */
  next?: string;
}

/**
 * One walk down an index per venue and status, then a merge, as in `listMarkets`; with words all events that match. By the immutable
 * key, the event that was stored last first.
 */
function listStatement({ category, text, after }: EventListQuery, values: unknown[]): Statement {
  const where: string[] = [];
  let name = 'list_market_events';
  if (category !== undefined) {
    where.push(`AND e.category = $${values.push(category)} AND length(e.category) <= 200`);
    name += '_category';
  }
  if (after !== undefined) {
    where.push(`AND e.id < $${values.push(after)}::bigint`);
    name += '_after';
  }
  const filters = where.join(' ');
  const withKeys = (keys: string) => `SELECT ${EVENT_COLUMNS} FROM (${keys} ORDER BY id DESC LIMIT $3) k
     JOIN market_event e ON e.venue = k.venue AND e.event_id = k.event_id ${EVENT_PARTS} ORDER BY e.id DESC`;
  if (text === undefined) {
    return sql(
      name,
      withKeys(`SELECT k.* FROM unnest($1::text[]) AS v (venue) CROSS JOIN unnest($2::text[]) AS s (status)
        CROSS JOIN LATERAL (
          SELECT e.venue, e.event_id, e.id FROM market_event e WHERE e.venue = v.venue AND e.status = s.status ${filters}
          ORDER BY e.id DESC LIMIT $3) k`),
    );
  }
  const words = text.split(/\s+/);
  const most = `$${values.push(words.slice(0, -1).join(' '))}`;
  const last = `$${values.push(words.at(-1))}`;
  return sqlPlannedPerCall(
    `${name}_text`,
    withKeys(`SELECT e.venue, e.event_id, e.id FROM market_event e
      WHERE e.venue = ANY ($1::text[]) AND e.status = ANY ($2::text[]) ${filters}
        AND to_tsvector('simple', left(e.title, 2000)) @@ ${wordsQuery(most, last)}`),
  );
}

/** A page of events, the one that was stored last first. Each event that matches throughout a walk is returned exactly once. */
export async function listEvents(db: Queryable, query: EventListQuery): Promise<EventList> {
  const { venues, statuses = MARKET_STATUSES, limit } = query;
  const values: unknown[] = [venues, statuses, limit + 1];
  const rows = await db.query<StoredEvent>(listStatement(query, values), values);
  const events = rows.slice(0, limit);
  const last = events.at(-1);
  return { events, ...(rows.length > limit && last && { next: String(last.pk) }) };
}
