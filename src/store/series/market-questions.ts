import type { MarketStatus } from '../../domain/markets/market.ts';
import { MAX_EVENT_ID_LENGTH } from '../catalog/market-events.ts';
import { type Queryable, type Statement, sql, sqlPlannedPerCall } from '../db/tx.ts';
import { DAY_SECONDS, LEADER_FIRST } from './market-trends.ts';

/** The orders of questions. Volumes compare within a currency only, so their venues have one. */
export const QUESTION_SORTS = ['volume_24h', 'move', 'close_at', 'created'] as const;
type QuestionSort = (typeof QUESTION_SORTS)[number];

interface QuestionQuery {
  venues: readonly string[];
  statuses: readonly MarketStatus[];
  /** At most 200 characters. */
  category?: string;
  sort: QuestionSort;
  limit: number;
  /** Start after this question: `next` of the page before, with the same order and filters. */
  after?: readonly string[];
}

/** A market of a question with its first or leading outcome, `numeric` text. */
export interface QuestionMarket {
  venue: string;
  marketId: string;
  title: string;
  siblingLabel: string | null;
  category: string | null;
  status: MarketStatus;
  closeAt: Date | null;
  volume24h: string | null;
  /** The number of its outcomes. */
  outcomes: number;
  /** Null without an outcome. */
  outcomeId: string | null;
  label: string | null;
  price: string | null;
}

/** A row of the list: an event with its markets that match the filters, or a market without an event. */
export interface ListedQuestion {
  venue: string;
  eventId: string | null;
  title: string;
  /** The market that gives the question its place in the order. */
  place: QuestionMarket;
  /** The markets with the highest prices first, at most MAX_LISTED_MARKETS. */
  markets: QuestionMarket[];
  /** The number of all markets that match. */
  marketCount: number;
}

interface QuestionPage {
  questions: ListedQuestion[];
  /** The position of the last question when more follow. */
  next?: readonly string[];
}

/** A move is looked for among this many markets with the largest volume. */
const MOVE_CANDIDATES = 500;
/** The markets of an event in a list. */
const MAX_LISTED_MARKETS = 20;

interface Place {
  id: bigint;
  sortKey: string;
}

/** The indexes have these keys. */
const WALKS = {
  close_at: { key: (m: string) => `coalesce(${m}.close_at, 'infinity'::timestamptz)`, way: 'ASC' },
  created: { key: (m: string) => `coalesce(${m}.created_at, '-infinity'::timestamptz)`, way: 'DESC' },
} as const;

const WITHOUT_VOLUME = 'without volume';
/** Before every market without volume. */
const START_WITHOUT_VOLUME = ['infinity', String(2n ** 63n - 1n), WITHOUT_VOLUME] as const;

/** $1 venues, $2 statuses; a category is $4. */
const OF_EVENT = `b.venue = m.venue AND b.event_id = m.event_id AND length(b.event_id) <= ${MAX_EVENT_ID_LENGTH} AND b.status = ANY ($2::text[])`;
const inCategory = (query: QuestionQuery, m: string) =>
  query.category === undefined ? '' : ` AND ${m}.category = $4 AND length(${m}.category) <= 200`;
const firstValues = ({ venues, statuses, category, limit }: QuestionQuery): unknown[] =>
  category === undefined ? [venues, statuses, limit + 1] : [venues, statuses, limit + 1, category];
const nameOf = (name: string, { category, after }: QuestionQuery) =>
  `questions_${name}${category === undefined ? '' : '_category'}${after === undefined ? '' : '_after'}`;

/**
 * The first market of each event stands for it. `first` is a subquery of the event alone, so that Postgres reads it once per event of a walk
 * and not once per market. Of a CASE the planner assumes that half of the rows pass; of an equality that almost none does, so that it would
 * read everything.
 */
const IS_FIRST = `CASE WHEN first.id IS NULL THEN true ELSE first.id = m.id END`;

function byVolume(query: QuestionQuery): [Statement, unknown[]] {
  const values = firstValues(query);
  const behind = query.after
    ? `AND (s.volume_24h, s.market_id) < ($${values.push(query.after[0])}::numeric, $${values.push(query.after[1])}::bigint)`
    : '';
  const text = `SELECT s.market_id AS id, s.volume_24h::text AS sort_key
    FROM market_stats s JOIN market m ON m.id = s.market_id
    LEFT JOIN LATERAL (
      SELECT b.id FROM market b JOIN market_stats t ON t.market_id = b.id
      WHERE ${OF_EVENT}${inCategory(query, 'b')} AND t.volume_24h > 0
      ORDER BY t.volume_24h DESC, b.id DESC LIMIT 1) first ON true
    WHERE s.volume_24h > 0 AND m.venue = ANY ($1::text[]) AND m.status = ANY ($2::text[])${inCategory(query, 'm')}
      AND ${IS_FIRST} ${behind}
    ORDER BY s.volume_24h DESC, s.market_id DESC LIMIT $3`;
  return [sqlPlannedPerCall(nameOf('volume', query), text), values];
}

/** One walk down an index per venue and status, then a merge. With `isUntraded` only questions without a market with volume. */
function byWalk(sort: keyof typeof WALKS, query: QuestionQuery, isUntraded = false): [Statement, unknown[]] {
  const { key, way } = WALKS[sort];
  const values = firstValues(query);
  const behind = query.after
    ? `AND (${key('m')}, m.id) ${way === 'ASC' ? '>' : '<'} ($${values.push(query.after[0])}::timestamptz, $${values.push(query.after[1])}::bigint)`
    : '';
  const volume = (m: string) => `EXISTS (SELECT FROM market_stats s WHERE s.market_id = ${m}.id AND s.volume_24h > 0)`;
  const tradedFirst = isUntraded ? `${volume('b')} DESC, ` : '';
  const text = `SELECT k.id, k.sort_key::text AS sort_key
    FROM unnest($1::text[]) AS v (venue) CROSS JOIN unnest($2::text[]) AS s (status)
    CROSS JOIN LATERAL (
      SELECT m.id, ${key('m')} AS sort_key FROM market m
      LEFT JOIN LATERAL (
        SELECT b.id FROM market b WHERE ${OF_EVENT}${inCategory(query, 'b')}
        ORDER BY ${tradedFirst}${key('b')} ${way}, b.id ${way} LIMIT 1) first ON true
      WHERE m.venue = v.venue AND m.status = s.status${inCategory(query, 'm')}
        ${isUntraded ? `AND NOT ${volume('m')}` : ''} AND ${IS_FIRST} ${behind}
      ORDER BY ${key('m')} ${way}, m.id ${way} LIMIT $3) k
    ORDER BY k.sort_key ${way}, k.id ${way} LIMIT $3`;
  return [sqlPlannedPerCall(nameOf(isUntraded ? 'untraded' : sort, query), text), values];
}

/** The moves of the candidates with the largest volume; of an event the largest one. */
function byMove(query: QuestionQuery, nowMs: number): [Statement, unknown[]] {
  const values = firstValues(query);
  const before = `$${values.push(Math.floor(nowMs / 1_000) - DAY_SECONDS)}::bigint`;
  const behind = query.after
    ? `WHERE (k.move, k.id) < ($${values.push(query.after[0])}::numeric, $${values.push(query.after[1])}::bigint)`
    : '';
  const text = `SELECT k.id, k.move::text AS sort_key FROM (
      SELECT DISTINCT ON (c.venue, c.question) c.id, abs(l.price - s.price) AS move
      FROM (SELECT m.id, m.venue, CASE WHEN length(m.event_id) <= ${MAX_EVENT_ID_LENGTH} THEN 'e' || m.event_id ELSE 'm' || m.id END AS question
            FROM market_stats v JOIN market m ON m.id = v.market_id
            WHERE v.volume_24h > 0 AND m.venue = ANY ($1::text[]) AND m.status = ANY ($2::text[])${inCategory(query, 'm')}
            ORDER BY v.volume_24h DESC, v.market_id DESC LIMIT ${MOVE_CANDIDATES}) c
      CROSS JOIN LATERAL (
        SELECT o.token_id, l.price FROM outcome o LEFT JOIN latest_price l ON l.token_id = o.token_id
        WHERE o.market_id = c.id ORDER BY ${LEADER_FIRST} LIMIT 1) l
      CROSS JOIN LATERAL (
        SELECT price FROM snapshot WHERE token_id = l.token_id AND ts <= ${before} ORDER BY ts DESC LIMIT 1) s
      WHERE l.price IS NOT NULL
      ORDER BY c.venue, c.question, move DESC, c.id DESC) k
    ${behind} ORDER BY k.move DESC, k.id DESC LIMIT $3`;
  return [sqlPlannedPerCall(nameOf('move', query), text), values];
}

type FoundMarket = QuestionMarket & {
  place: number;
  eventId: string | null;
  eventTitle: string | null;
  isPlace: boolean;
  marketCount: number;
};

/** $1 the markets that stand for questions, $2 statuses, $3 a category or null. One index probe per market and outcome of the questions. */
const MEMBERS = sql(
  'question_markets',
  `SELECT k.place, k.is_place, k.market_count, q.event_id, q.event_title, k.venue, k.market_id, k.title, k.sibling_label, k.category, k.status,
     k.close_at, k.volume_24h, k.outcomes, k.outcome_id, k.label, k.price::text AS price
   FROM (
     SELECT r.place::int AS place, r.id AS question, m.id = r.id AS is_place, m.venue, m.venue_market_id AS market_id, m.title, m.sibling_label,
       m.category, m.status, m.close_at, s.volume_24h, c.outcomes, o.mint AS outcome_id, o.label, o.price,
       count(*) OVER (PARTITION BY r.place)::int AS market_count,
       row_number() OVER (PARTITION BY r.place ORDER BY o.price DESC NULLS LAST, s.volume_24h DESC NULLS LAST, m.id) AS n
     FROM unnest($1::bigint[]) WITH ORDINALITY AS r (id, place) JOIN market a ON a.id = r.id
     CROSS JOIN LATERAL (
       SELECT a.id UNION
       SELECT b.id FROM market b
       WHERE b.venue = a.venue AND b.event_id = a.event_id AND length(b.event_id) <= ${MAX_EVENT_ID_LENGTH} AND b.status = ANY ($2::text[])
         AND ($3::text IS NULL OR b.category = $3)) e
     JOIN market m ON m.id = e.id LEFT JOIN market_stats s ON s.market_id = m.id
     CROSS JOIN LATERAL (SELECT count(*)::int AS outcomes FROM outcome each WHERE each.market_id = m.id) c
     LEFT JOIN LATERAL (
       SELECT o.label, t.mint, l.price FROM outcome o JOIN token t ON t.id = o.token_id LEFT JOIN latest_price l ON l.token_id = o.token_id
       WHERE o.market_id = m.id ORDER BY ${LEADER_FIRST} LIMIT 1) o ON true) k
   JOIN market q ON q.id = k.question
   WHERE k.n <= ${MAX_LISTED_MARKETS} OR k.is_place ORDER BY k.place, k.n`,
);

/**
 * A page of questions in an order: each event once, at the place of its first market. A question whose markets and their sort keys do not
 * change throughout a walk is returned exactly once; with `move` it may appear twice or not at all when prices change between two pages.
 */
export async function listQuestions(db: Queryable, query: QuestionQuery, nowMs: number): Promise<QuestionPage> {
  const { places, next } = await readPlaces(db, query, nowMs);
  const { statuses, category } = query;
  const ids = places.map(({ id }) => id);
  const rows = ids.length === 0 ? [] : await db.query<FoundMarket>(MEMBERS, [ids, statuses, category ?? null]);
  const byPlace = new Map<number, FoundMarket[]>();
  for (const row of rows) byPlace.set(row.place, [...(byPlace.get(row.place) ?? []), row]);
  const questions = [...byPlace.values()].flatMap((found) => {
    const first = found.find(({ isPlace }) => isPlace);
    if (first === undefined) return [];
    const { eventId, eventTitle, marketCount } = first;
    const markets = found.slice(0, MAX_LISTED_MARKETS).map(toMarket);
    const title = eventId === null ? first.title : (eventTitle ?? first.title);
    return [{ venue: first.venue, eventId, title, place: toMarket(first), markets, marketCount }];
  });
  return { questions, ...(next && { next }) };
}

function toMarket({
  place: _,
  isPlace: _isPlace,
  eventId: _event,
  eventTitle: _title,
  marketCount: _count,
  ...market
}: FoundMarket) {
  return market;
}

interface Places {
  places: Place[];
  next?: readonly string[];
}

async function readPlaces(db: Queryable, query: QuestionQuery, nowMs: number): Promise<Places> {
  const { sort } = query;
  if (sort === 'volume_24h') return readByVolume(db, query);
  return readPage(db, query, sort === 'move' ? byMove(query, nowMs) : byWalk(sort, query));
}

/** The traded questions of the last day, then the others in the order `created`. */
async function readByVolume(db: Queryable, query: QuestionQuery): Promise<Places> {
  const { after: [sortKey = '', pk = '', part] = [], limit } = query;
  const others = async (rest: Pick<QuestionQuery, 'limit'> & { after?: readonly string[] }): Promise<Places> => {
    const { after: _, ...filters } = query;
    const asked = { ...filters, ...rest };
    const { places, next } = await readPage(db, asked, byWalk('created', asked, true));
    return { places, ...(next && { next: [...next, WITHOUT_VOLUME] }) };
  };
  if (part !== undefined) return others({ limit, after: [sortKey, pk] });
  const traded = await readPage(db, query, byVolume(query));
  if (traded.next) return traded;
  const missing = limit - traded.places.length;
  const rest = await others({ limit: Math.max(1, missing) });
  if (missing > 0) return { ...rest, places: [...traded.places, ...rest.places] };
  return { ...traded, ...(rest.places.length > 0 && { next: START_WITHOUT_VOLUME }) };
}

async function readPage(
  db: Queryable,
  { limit }: Pick<QuestionQuery, 'limit'>,
  [statement, values]: [Statement, unknown[]],
): Promise<Places> {
  const rows = await db.query<Place>(statement, values);
  const places = rows.slice(0, limit);
  const last = places.at(-1);
  return { places, ...(rows.length > limit && last && { next: [last.sortKey, String(last.id)] }) };
}
