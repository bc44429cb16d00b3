import type { Scope } from '../../domain/alerts/condition.ts';
import { type Queryable, sql } from '../db/tx.ts';

/*
 * An index finds the rules of a market by the keys that the market has: its id, event, category, venue, and the words of its names. A rule
 * is stored under its most selective field, and SQL checks the other ones.
 */

/** SQL of the names of market `m` that a search reads. */
const NAMES = `to_tsvector('simple', left(m.title, 2000) || ' ' || left(coalesce(m.event_title, ''), 2000))`;

/** SQL of whether active rules with words exist, which few databases have. */
const HAS_WORDS = `(SELECT EXISTS (SELECT FROM alert WHERE status = 'active' AND scope_key >= 'w:' AND scope_key < 'w;'))`;

/** SQL of whether any active rule has a scope. */
export const HAS_SCOPES = `(SELECT EXISTS (SELECT FROM alert WHERE status = 'active' AND scope_key IS NOT NULL))`;

/** SQL of the keys of market `m`, as a relation `(key)`. */
export const KEYS_OF_MARKET = `(
  SELECT unnest(ARRAY['m:' || m.venue_market_id, 'e:' || m.event_id, 'c:' || m.category, 'v:' || m.venue]) AS key
  UNION ALL SELECT 'w:' || lexeme FROM unnest(${NAMES}) WHERE ${HAS_WORDS})`;

/** SQL of whether market `m` is in the scope of rule `a`. */
export const IS_IN_SCOPE = `(a.scope ->> 'market_id' IS NULL OR a.scope ->> 'market_id' = m.venue_market_id)
  AND (a.scope ->> 'event_id' IS NULL OR a.scope ->> 'event_id' = m.event_id)
  AND (a.scope ->> 'venue' IS NULL OR a.scope ->> 'venue' = m.venue)
  AND (a.scope ->> 'category' IS NULL OR a.scope ->> 'category' = m.category)
  AND (a.scope ->> 'q' IS NULL OR ${NAMES} @@ plainto_tsquery('simple', a.scope ->> 'q'))`;

/** SQL of all venues with markets, as a relation `(venue)`, read by index. */
const VENUES = `(WITH RECURSIVE v AS (
    (SELECT venue FROM market ORDER BY venue LIMIT 1)
    UNION ALL SELECT (SELECT n.venue FROM market n WHERE n.venue > v.venue ORDER BY n.venue LIMIT 1) FROM v WHERE v.venue IS NOT NULL)
  SELECT venue FROM v WHERE venue IS NOT NULL)`;

/** SQL of the ids of the markets in the scope of rule `a`, by the index that fits its key. */
export const MARKETS_IN_SCOPE = `(
  SELECT m.id FROM market m JOIN ${VENUES} v ON v.venue = m.venue
  WHERE a.scope_key LIKE 'm:%' AND m.venue_market_id = substr(a.scope_key, 3) AND ${IS_IN_SCOPE}
  UNION ALL SELECT m.id FROM market m JOIN ${VENUES} v ON v.venue = m.venue
  WHERE a.scope_key LIKE 'e:%' AND m.event_id = substr(a.scope_key, 3) AND ${IS_IN_SCOPE}
  UNION ALL SELECT m.id FROM market m WHERE a.scope_key LIKE 'c:%' AND m.category = substr(a.scope_key, 3) AND ${IS_IN_SCOPE}
  UNION ALL SELECT m.id FROM market m WHERE a.scope_key LIKE 'v:%' AND m.venue = substr(a.scope_key, 3) AND ${IS_IN_SCOPE}
  UNION ALL SELECT m.id FROM market m
  WHERE a.scope_key LIKE 'w:%' AND ${NAMES} @@ plainto_tsquery('simple', a.scope ->> 'q') AND ${IS_IN_SCOPE})`;

/** The longest word is the rarest one, most of the time. */
const WORD = sql(
  'longest_word',
  `SELECT lexeme FROM unnest(to_tsvector('simple', $1)) ORDER BY length(lexeme) DESC, lexeme LIMIT 1`,
);

/** The key under which a rule with this scope is stored; null when its search has no word. */
export async function scopeKeyOf(db: Queryable, scope: Scope): Promise<string | null> {
  if (scope.market_id !== undefined) return `m:${scope.market_id}`;
  if (scope.event_id !== undefined) return `e:${scope.event_id}`;
  if (scope.q !== undefined) {
    const [word] = await db.query<{ lexeme: string }>(WORD, [scope.q]);
    return word ? `w:${word.lexeme}` : null;
  }
  if (scope.category !== undefined) return `c:${scope.category}`;
  return scope.venue === undefined ? null : `v:${scope.venue}`;
}

/** Active alerts of an account on a venue, a category or a search: each is evaluated for every market in it. */
export const MAX_WIDE_SCOPES = 50;

/** The condition of such an alert, as SQL. */
export const WIDE_ALERT = `status = 'active' AND scope_key IS NOT NULL AND scope_key NOT LIKE 'm:%' AND scope_key NOT LIKE 'e:%'`;

/** Whether the scope may hold many markets, so that its rules are limited per account. */
export function isWide(scope: Scope): boolean {
  return scope.market_id === undefined && scope.event_id === undefined;
}
