import type { MarketStatus } from '../../domain/markets/market.ts';
import { type Database, type Queryable, sql, sqlPlannedPerCall } from '../db/tx.ts';
import { MAX_EVENT_ID_LENGTH } from './market-events.ts';
import { MARKET_COLUMNS, MARKET_PARTS, type StoredMarket } from './market-reads.ts';

interface MarketSearchQuery {
  venues: readonly string[];
  /** Default: every status. */
  statuses?: readonly MarketStatus[];
  /** At most 200 characters. */
  category?: string;
  /** At most MAX_EVENT_ID_LENGTH characters. */
  eventId?: string;
  /** The user's text: trimmed, not empty, at most 200 characters. */
  text: string;
  limit: number;
  after?: SearchPlace;
}

/**
 * The kinds of match, best first: the text is an id; the title equals the text; the title holds every word; title and description together
 * do; the titles of market and event and the label among siblings together do.
 */
const TIERS = ['id', 'title', 'title-words', 'words', 'names'] as const;
type Tier = (typeof TIERS)[number];

/** The position of a market in a search. The similarity is float4 text that Postgres reads back to the same bits. */
export type SearchPlace = WordPlace | SimilarPlace;
interface WordPlace {
  tier: Tier;
  pk: string;
}
interface SimilarPlace {
  tier: 'similar';
  pk: string;
  similarity: string;
  threshold: number;
}

interface MarketSearchPage {
  markets: StoredMarket[];
  /** `similar`: no market matched the words, so these are titles with similar words. */
  matched: 'words' | 'similar';
  /** The position of the last market when more follow. */
  next?: SearchPlace;
}

/**
 * Turns any text into a query: all words must match, the last one as a prefix, and no text is a syntax error.
 * `most` holds the words before the last.
 */
export function wordsQuery(most: string, last: string): string {
  return `(plainto_tsquery('simple', ${most}) &&
  to_tsquery('simple', '''' || replace(replace(${last}, '\\', '\\\\'), '''', '''''') || ''':*'))`;
}
const WORDS = wordsQuery('$2', '$3');
/** The expression of the index market_title_words. */
const HOLDS_IN_TITLE = `to_tsvector('simple', left(m.title, 2000)) @@ ${WORDS}`;
/** The expression of the index market_names. */
const HOLDS_IN_NAMES = `to_tsvector('simple', left(m.title, 2000) || ' ' || left(coalesce(m.event_title, ''), 2000) || ' ' ||
  left(coalesce(m.sibling_label, ''), 2000)) @@ ${WORDS} AND (m.event_title IS NOT NULL OR m.sibling_label IS NOT NULL)`;
/** The text is the venue's id of the market, of its event or of one of its outcomes, in any case: tickers and hashes have one case. */
function hasId(text: string): string {
  const ids = `unnest(ARRAY[${text}::text, upper(${text}::text), lower(${text}::text)]) AS k (id)`;
  const perVenue = `unnest($1::text[]) AS v (venue) CROSS JOIN ${ids}`;
  return `m.id IN (
    SELECT i.id FROM ${perVenue} JOIN market i ON i.venue = v.venue AND i.venue_market_id = k.id
    UNION SELECT i.id FROM ${perVenue}
      JOIN market i ON i.venue = v.venue AND i.event_id = k.id AND length(i.event_id) <= ${MAX_EVENT_ID_LENGTH}
    UNION SELECT o.market_id FROM ${ids} JOIN token t ON t.mint = k.id JOIN outcome o ON o.token_id = t.id)`;
}
/** A number of up to four digits is a year or a count. */
const PERHAPS_ID = /^(?!\d{1,4}$)\S+$/;
const IS_TITLE = 'lower(left(m.title, 200)) = lower($2) AND lower(m.title) = lower($2)';

/** Each tier excludes the matches of the tiers before it, so that no market appears twice. */
const CONDITION: Record<Tier, string> = {
  id: hasId('$2'),
  title: IS_TITLE,
  'title-words': `${HOLDS_IN_TITLE} AND lower(m.title) <> lower($4)`,
  words: `m.search @@ ${WORDS} AND NOT ${HOLDS_IN_TITLE} AND lower(m.title) <> lower($4)`,
  names: `${HOLDS_IN_NAMES} AND NOT m.search @@ ${WORDS} AND lower(m.title) <> lower($4)`,
};

/** Similarity thresholds, tried in this order. Two swapped letters in a word of seven leave 0.43 to 0.6. */
const SIMILAR_AT_LEAST = [0.6, 0.4] as const;
/** The maximum number of compared titles: a misspelled common word resembles a fifth of all titles. */
const MAX_COMPARED = 2_000;

interface Filtered {
  where: string;
  values: unknown[];
  name: string;
}

/** The condition and the filters. `values` start with the venues and the values of the condition. */
function filtered(query: MarketSearchQuery, condition: string, values: unknown[]): Filtered {
  const where = ['m.venue = ANY ($1::text[])', condition];
  const all = [...values];
  let name = '';
  if (query.statuses !== undefined) {
    where.push(`m.status = ANY ($${all.push(query.statuses)}::text[])`);
    name += '_status';
  }
  if (query.category !== undefined) {
    where.push(`m.category = $${all.push(query.category)} AND length(m.category) <= 200`);
    name += '_category';
  }
  if (query.eventId !== undefined) {
    where.push(`m.event_id = $${all.push(query.eventId)} AND length(m.event_id) <= ${MAX_EVENT_ID_LENGTH}`);
    name += '_event';
  }
  return { where: where.join(' AND '), values: all, name };
}

/** Words in more markets than this are common. */
const COMMON = 300;

/**
 * The next markets of one tier, newest first by the immutable key. Walking back from the newest market is fastest for a common word, the
 * word index for a rare one, and no statistics tell which a word is, least of all for a prefix. So the query first takes up to COMMON
 * matches from the word index. No ranking reads every match.
 */
async function readTier(
  db: Queryable,
  query: MarketSearchQuery,
  tier: Tier,
  afterPk: string | undefined,
  limit: number,
): Promise<StoredMarket[]> {
  const words = query.text.split(/\s+/);
  const isWhole = tier === 'id' || tier === 'title';
  const isBehindIds = tier !== 'id' && PERHAPS_ID.test(query.text);
  const { where, values, name } = filtered(
    query,
    isBehindIds ? `${CONDITION[tier]} AND NOT ${hasId(isWhole ? '$2' : '$4')}` : CONDITION[tier],
    isWhole ? [query.venues, query.text] : [query.venues, words.slice(0, -1).join(' '), words.at(-1) ?? '', query.text],
  );
  const after = afterPk === undefined ? '' : `AND m.id < $${values.push(afterPk)}::bigint`;
  const matching = `FROM market m WHERE ${where} ${after}`;
  const newest = `ORDER BY id DESC LIMIT $${values.push(limit)}`;
  const text = `WITH few AS MATERIALIZED (SELECT m.id ${matching} LIMIT ${COMMON}),
      word AS MATERIALIZED (SELECT count(*) = ${COMMON} AS is_common FROM few)
    SELECT ${MARKET_COLUMNS}
    FROM (SELECT id FROM (
            SELECT id FROM few WHERE NOT (SELECT is_common FROM word)
            UNION ALL
            (SELECT m.id ${matching} AND (SELECT is_common FROM word) ${newest})) u
          ${newest}) k
    JOIN market m ON m.id = k.id ${MARKET_PARTS} ORDER BY m.id DESC`;
  return db.query<StoredMarket>(
    sqlPlannedPerCall(`search_markets_${tier}${name}${isBehindIds ? '_id' : ''}`, text),
    values,
  );
}

/** Walks the tiers one after another until the page is full. */
async function readWords(
  db: Queryable,
  query: MarketSearchQuery,
  after: WordPlace | undefined,
): Promise<MarketSearchPage> {
  const { limit } = query;
  const found: { tier: Tier; market: StoredMarket }[] = [];
  const tiers = TIERS.slice(after && TIERS.indexOf(after.tier));
  for (const tier of PERHAPS_ID.test(query.text) ? tiers : tiers.filter((one) => one !== 'id')) {
    const missing = limit + 1 - found.length;
    if (missing === 0) break;
    const rows = await readTier(db, query, tier, after?.tier === tier ? after.pk : undefined, missing);
    for (const market of rows) found.push({ tier, market });
  }
  const page = found.slice(0, limit);
  const last = page.at(-1);
  return {
    markets: page.map(({ market }) => market),
    matched: 'words',
    ...(found.length > limit && last && { next: { tier: last.tier, pk: String(last.market.pk) } }),
  };
}

const SET_THRESHOLD = sql(
  'set_similarity_threshold',
  `SELECT set_config('pg_trgm.word_similarity_threshold', $1, true)`,
);

/**
 * Titles with words similar to the text, most similar first. Text without a letter or digit matches nothing, because it would be compared
 * with every title.
 */
async function readSimilar(
  db: Database,
  query: MarketSearchQuery,
  threshold: number,
  after: SimilarPlace | undefined,
): Promise<MarketSearchPage> {
  const { where, values, name } = filtered(query, `lower($2) <% lower(m.title) AND cardinality(show_trgm($2)) > 0`, [
    query.venues,
    query.text,
  ]);
  const behind =
    after === undefined
      ? ''
      : `WHERE (k.similarity, k.id) < ($${values.push(after.similarity)}::real, $${values.push(after.pk)}::bigint)`;
  const text = `SELECT ${MARKET_COLUMNS}, k.similarity::text AS similarity
    FROM (SELECT k.* FROM (
            SELECT m.id, word_similarity(lower($2), lower(m.title)) AS similarity FROM market m WHERE ${where}
            LIMIT ${MAX_COMPARED}) k
          ${behind} ORDER BY k.similarity DESC, k.id DESC LIMIT $${values.push(query.limit + 1)}) k
    JOIN market m ON m.id = k.id ${MARKET_PARTS} ORDER BY k.similarity DESC, m.id DESC`;
  const rows = await db.transaction(async (tx) => {
    await tx.query(SET_THRESHOLD, [String(threshold)]);
    return tx.query<StoredMarket & { similarity: string }>(sqlPlannedPerCall(`search_similar${name}`, text), values);
  });
  const page = rows.slice(0, query.limit);
  const last = page.at(-1);
  const next = last && { tier: 'similar' as const, pk: String(last.pk), similarity: last.similarity, threshold };
  return { markets: page, matched: 'similar', ...(rows.length > query.limit && next && { next }) };
}

/**
 * A page of the markets that match a text: markets with that id, then markets with that title, then those with every word in the title,
 * then in title and description, then in title, event and label, each newest first. Only without any match it returns markets with similar
 * titles. A market with unchanged text throughout a walk is returned exactly once.
 */
export async function searchMarkets(db: Database, query: MarketSearchQuery): Promise<MarketSearchPage> {
  const { after } = query;
  if (after?.tier === 'similar') return readSimilar(db, query, after.threshold, after);
  const page = await readWords(db, query, after);
  if (after !== undefined || page.markets.length > 0) return page;
  for (const threshold of SIMILAR_AT_LEAST) {
    const similar = await readSimilar(db, query, threshold, undefined);
    if (similar.markets.length > 0) return similar;
  }
  return page;
}
