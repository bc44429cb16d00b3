import { type BookFiring, type BookRule, BookRun, momentsOf, orderAmount } from '../../../domain/alerts/book-rule.ts';
import type { Scope } from '../../../domain/alerts/condition.ts';
import type { BookConditionName } from '../../../domain/alerts/conditions.ts';
import type { MarketChange } from '../../../domain/alerts/market-rule.ts';
import type { Span } from '../../../domain/alerts/rule.ts';
import { isDecided } from '../../../domain/markets/resolution.ts';
import { ZERO } from '../../../domain/values/decimal.ts';
import { type Queryable, sql, sqlPlannedPerCall } from '../../db/tx.ts';
import { sizeDigitsOf } from '../books/order-outcomes.ts';
import { readBooks, readFees } from '../books/read-books.ts';
import { FACTS_OF_MARKET, FACTS_OF_VERSION, received, resultOf, type SentChange } from '../market-rules.ts';
import { wholeMs } from '../rules.ts';
import { IS_IN_SCOPE, MARKETS_IN_SCOPE } from '../scopes.ts';
import type { BacktestRequest } from './request.ts';

/** An outcome of a backtest, and the times in which its alert may fire on it. */
export interface OutcomeSubject {
  tokenId: bigint;
  tokenMint: string;
  marketPk: bigint | null;
  venue: string | null;
  venueMarketId: string | null;
  spans: Span[];
}

/** A market of a backtest, with its changes. */
export interface MarketSubject {
  marketPk: bigint;
  venue: string;
  venueMarketId: string;
  title: string;
  changes: ScopedChange[];
}

/** A change of a market, and whether the market was in the scope then. */
interface ScopedChange extends MarketChange {
  inScope: boolean;
}

/** The token or the scope of an alert, between two moments, epoch milliseconds. */
interface SubjectSearch {
  tokenMint?: string | undefined;
  scope?: Scope | undefined;
  scopeKey: string | null;
  startMs: number;
  endMs: number;
}

type OutcomeRow = Omit<OutcomeSubject, 'spans'>;

const OF_TOKEN = sql(
  'backtest_token',
  `SELECT t.id AS token_id, t.mint AS token_mint, m.id AS market_pk, m.venue, m.venue_market_id
   FROM token t LEFT JOIN outcome o ON o.token_id = t.id LEFT JOIN market m ON m.id = o.market_id WHERE t.mint = $1`,
);

const OF_MARKETS = sql(
  'backtest_outcomes',
  `SELECT t.id AS token_id, t.mint AS token_mint, m.id AS market_pk, m.venue, m.venue_market_id
   FROM market m JOIN outcome o ON o.market_id = m.id JOIN token t ON t.id = o.token_id WHERE m.id = ANY ($1::bigint[]) ORDER BY t.id`,
);

const MARKETS = sql(
  'backtest_markets',
  'SELECT id AS market_pk, venue, venue_market_id, title FROM market WHERE id = ANY ($1::bigint[])',
);

/** The fields of a former version that a scope looks at. Venue and id of a market never change. */
const FORMER = `(SELECT c.venue, c.venue_market_id, v.facts ->> 'event_id' AS event_id, v.facts ->> 'category' AS category,
  v.facts ->> 'title' AS title, v.facts ->> 'event_title' AS event_title)`;

/** A market that left the scope since the start has changed since then. */
const IN_SCOPE = sqlPlannedPerCall(
  'backtest_scope',
  `WITH a AS (SELECT $1::jsonb AS scope, $2::text AS scope_key)
   (SELECT m.id FROM a CROSS JOIN LATERAL ${MARKETS_IN_SCOPE} m LIMIT $5)
   UNION
   (SELECT c.id FROM a CROSS JOIN market c JOIN market_version v ON v.market_id = c.id CROSS JOIN LATERAL ${FORMER} m
   WHERE c.updated_at > $3::timestamptz AND v.known_until > $3::timestamptz AND v.known_from < $4::timestamptz
     AND ($1::jsonb ->> 'venue' IS NULL OR c.venue = $1::jsonb ->> 'venue')
     AND ($1::jsonb ->> 'market_id' IS NULL OR c.venue_market_id = $1::jsonb ->> 'market_id') AND ${IS_IN_SCOPE} LIMIT $5)`,
);

/** The known states of markets, in order. Without a scope each state is in it. */
const STATES = sqlPlannedPerCall(
  'backtest_states',
  `WITH a AS (SELECT $2::jsonb AS scope)
   SELECT s.market_pk, (extract(epoch FROM s.at) * 1000000)::bigint AS n, ${wholeMs('s.at')} AS at_ms, s.status,
     lag(s.status) OVER (PARTITION BY s.market_pk ORDER BY s.at) AS former, ${resultOf('s.market_pk')}, s.in_scope
   FROM (
     SELECT c.id AS market_pk, v.known_from AS at, ${FACTS_OF_VERSION}, a.scope IS NULL OR (${IS_IN_SCOPE}) AS in_scope
     FROM a CROSS JOIN market c JOIN market_version v ON v.market_id = c.id CROSS JOIN LATERAL ${FORMER} m
     WHERE c.id = ANY ($1::bigint[])
     UNION ALL
     SELECT m.id, m.updated_at, ${FACTS_OF_MARKET}, a.scope IS NULL OR (${IS_IN_SCOPE}) FROM a CROSS JOIN market m WHERE m.id = ANY ($1::bigint[])) s
   ORDER BY s.market_pk, s.at`,
);

type StateRow = SentChange<ScopedChange & { marketPk: bigint }>;

async function readStates(
  db: Queryable,
  marketPks: readonly bigint[],
  scope: Scope | undefined,
): Promise<Map<bigint, ScopedChange[]>> {
  const found = new Map<bigint, ScopedChange[]>();
  if (marketPks.length === 0) return found;
  const rows = await db.query<StateRow>(STATES, [marketPks, scope ? JSON.stringify(scope) : null]);
  for (const { marketPk, ...row } of rows) {
    const list = found.get(marketPk) ?? [];
    found.set(marketPk, list);
    list.push(received<ScopedChange>(row));
  }
  return found;
}

const ALWAYS: Span[] = [{ fromMs: Number.NEGATIVE_INFINITY, untilMs: Number.POSITIVE_INFINITY }];

/**
 * The times in which the market is in the scope and has no result, as the evaluation sees them: an observation of the millisecond of a
 * result counts, and one of the millisecond in which the market joins the scope. `isScope`: nothing counts before the first known state.
 */
function spansOf(states: readonly ScopedChange[] | undefined, venue: string | null, isScope: boolean): Span[] {
  if (states === undefined || states.length === 0) return ALWAYS;
  const spans: Span[] = [];
  let fromMs = isScope ? (states[0]?.atMs ?? 0) : Number.NEGATIVE_INFINITY;
  for (const [index, state] of states.entries()) {
    const next = states[index + 1];
    const isOver = isDecided(state.status, venue);
    const isChange = next !== undefined && isOver !== isDecided(next.status, venue);
    const untilMs =
      next === undefined ? Number.POSITIVE_INFINITY : isChange ? Number((next.n + 999n) / 1_000n) : next.atMs;
    const last = spans.at(-1);
    if (state.inScope && !isOver) {
      if (last?.untilMs === fromMs) last.untilMs = untilMs;
      else spans.push({ fromMs, untilMs });
    }
    fromMs = untilMs;
  }
  return spans;
}

/** An alert on a token ends with the result of its market, also when the venue takes the result back. */
function untilResult(spans: readonly Span[], startMs: number): Span[] {
  const first = spans.find(({ untilMs }) => untilMs > startMs);
  return first === undefined || first.fromMs > startMs ? [] : [first];
}

/** The markets that were in the scope between the moments, at least `limit` of them when there are more. */
export async function marketsInScope(db: Queryable, search: SubjectSearch, limit: number): Promise<bigint[]> {
  const { scope, scopeKey, startMs, endMs } = search;
  const rows = await db.query<{ id: bigint }>(IN_SCOPE, [
    JSON.stringify(scope),
    scopeKey,
    new Date(startMs).toISOString(),
    new Date(endMs).toISOString(),
    limit,
  ]);
  return rows.map(({ id }) => id);
}

/** The outcomes that an alert looks at, in the order of their keys. `marketPks`: the markets of its scope. */
export async function findOutcomes(
  db: Queryable,
  { tokenMint, scope, startMs }: SubjectSearch,
  marketPks: readonly bigint[],
): Promise<OutcomeSubject[]> {
  const rows = scope
    ? await db.query<OutcomeRow>(OF_MARKETS, [marketPks])
    : await db.query<OutcomeRow>(OF_TOKEN, [tokenMint]);
  const states = await readStates(db, scope ? marketPks : keysOf(rows), scope);
  return rows.map((row) => {
    const spans = spansOf(row.marketPk === null ? undefined : states.get(row.marketPk), row.venue, scope !== undefined);
    return { ...row, spans: scope ? spans : untilResult(spans, startMs) };
  });
}

/** The markets whose state an alert looks at. `marketPks`: those of its scope. */
export async function findMarkets(
  db: Queryable,
  { tokenMint, scope }: SubjectSearch,
  marketPks: readonly bigint[],
): Promise<MarketSubject[]> {
  const pks = scope ? marketPks : keysOf(await db.query<OutcomeRow>(OF_TOKEN, [tokenMint]));
  const markets = await db.query<Omit<MarketSubject, 'changes'>>(MARKETS, [pks]);
  const states = await readStates(db, pks, scope);
  return markets.map((market) => ({ ...market, changes: states.get(market.marketPk) ?? [] }));
}

function keysOf(rows: readonly OutcomeRow[]): bigint[] {
  return rows.flatMap(({ marketPk }) => (marketPk === null ? [] : [marketPk]));
}

/** An interval in which observations of some markets may be missing, within the range of a backtest. */
export interface BacktestGap {
  fromMs: number;
  untilMs: number;
  /** The reason of a gap of a feed, or one of the causes below. */
  cause: string;
  venue: string;
  /** The number of its markets in the backtest. */
  markets: number;
}

/** Longer than the pause of any poll. */
const SILENT_POLL = `interval '5 minutes'`;

/**
 * The intervals that are known: gaps of feeds, losses of trades that a total proves, trades that a repair stored too late to be
 * observations, and polls that fail or that no process runs now. Past failures of polls are not stored.
 */
const GAPS = sqlPlannedPerCall(
  'backtest_gaps',
  `WITH m AS MATERIALIZED (SELECT id, venue FROM market WHERE id = ANY ($1::bigint[])),
   gap AS (
     SELECT g.from_at, g.to_at, g.reason AS cause, m.venue, m.id, g.gap::text AS key FROM m JOIN feed_gap g ON g.market_id = m.id
     WHERE g.from_at < $3::timestamptz AND (g.to_at IS NULL OR g.to_at > $2::timestamptz)
     UNION ALL
     SELECT w.missing_since, NULL, 'missing_trades', m.venue, m.id, '' FROM m JOIN trade_witness w ON w.market_id = m.id
     WHERE w.missing_since < $3::timestamptz
     UNION ALL
     SELECT r.from_at, r.to_at, 'late_trades', m.venue, m.id, '' FROM m JOIN trade_repair r ON r.market_id = m.id
     WHERE r.trades > 0 AND r.from_at < $3::timestamptz AND r.to_at > $2::timestamptz
     UNION ALL
     SELECT p.since, NULL, 'polls_of_' || p.kind, m.venue, m.id, '' FROM m JOIN (
       SELECT venue, kind, coalesce(last_success_at, last_attempt_at) AS since FROM poll_state
       WHERE kind IN ('prices', 'trades')
         AND (consecutive_failures > 0 OR last_attempt_at < clock_timestamp() - ${SILENT_POLL})) p ON p.venue = m.venue
     WHERE p.since < $3::timestamptz)
   SELECT (extract(epoch FROM greatest(min(from_at), $2::timestamptz)) * 1000)::float8 AS from_ms,
     (extract(epoch FROM least(CASE WHEN bool_and(to_at IS NOT NULL) THEN max(to_at) END, $3::timestamptz)) * 1000)::float8 AS until_ms,
     cause, venue, count(DISTINCT id)::int AS markets
   FROM gap GROUP BY cause, venue, key, CASE WHEN key = '' THEN from_at END ORDER BY from_ms, until_ms, cause LIMIT $4`,
);

/** The oldest gaps of markets between two moments, epoch milliseconds, without the parts outside. */
export async function readBacktestGaps(
  db: Queryable,
  options: { marketPks: readonly bigint[]; startMs: number; endMs: number; limit: number },
): Promise<BacktestGap[]> {
  const { marketPks, startMs, endMs, limit } = options;
  if (marketPks.length === 0) return [];
  const moments = [new Date(startMs).toISOString(), new Date(endMs).toISOString()];
  const rows = await db.query<BacktestGap>(GAPS, [marketPks, ...moments, limit]);
  return rows.map((row) => ({ ...row, fromMs: Math.floor(row.fromMs), untilMs: Math.ceil(row.untilMs) }));
}

/** A book has up to 400 levels: it takes as long as so many observations. */
export const WORK_PER_BOOK = 20;
const PAGE_BOOKS = 500;

const COUNT = sql(
  'count_backtest_books',
  `SELECT count(*)::int AS books FROM (
     SELECT FROM book_history WHERE token_id = ANY ($1::bigint[]) AND received_at >= $2::timestamptz AND received_at < $3::timestamptz
     LIMIT $4) h`,
);

/** The outcomes of an alert on books, in the order of its orders. */
export async function findBookOutcomes(db: Queryable, request: BacktestRequest): Promise<OutcomeSubject[]> {
  const found: OutcomeSubject[] = [];
  for (const tokenMint of [request.tokenMint, request.sellTokenMint])
    if (tokenMint !== undefined) found.push(...(await findOutcomes(db, { ...request, tokenMint }, [])));
  return found;
}

/** The number of books of the outcomes in the range of a backtest, at most `limit`. */
export async function countBooks(
  db: Queryable,
  outcomes: readonly OutcomeSubject[],
  { startMs, endMs }: Pick<BacktestRequest, 'startMs' | 'endMs'>,
  limit: number,
): Promise<number> {
  const moments = [startMs, endMs].map((ms) => new Date(ms).toISOString());
  const [row] = await db.query<{ books: number }>(COUNT, [outcomes.map(({ tokenId }) => tokenId), ...moments, limit]);
  return row?.books ?? 0;
}

/** The books of a range, page by page; returns their number. */
export async function evaluateBooks(
  db: Queryable,
  { request, outcomes }: { request: BacktestRequest; outcomes: readonly OutcomeSubject[] },
  onFired: (firing: BookFiring) => void,
  onRead: (books: number) => Promise<void>,
): Promise<number> {
  const rule = await toRule(db, request, outcomes);
  const run = new BookRun(rule);
  let observations = 0;
  for (let fromMs = request.startMs; fromMs < request.endMs; ) {
    const range = { fromMs, untilMs: request.endMs };
    const lists = await readBooks(db, new Map(outcomes.map(({ tokenId }) => [tokenId, range])), PAGE_BOOKS);
    const ofLegs = outcomes.map(
      ({ tokenId }) => lists.get(tokenId) ?? { books: [], untilMs: Number.POSITIVE_INFINITY },
    );
    const knownMs = Math.min(...ofLegs.map(({ untilMs }) => untilMs));
    // Only the first page needs the books in effect before it.
    const isNew = (atMs: number) => atMs <= knownMs && (atMs >= fromMs || fromMs === request.startMs);
    const books = ofLegs.map((list) => list.books.filter(({ atMs }) => isNew(atMs)));
    for (const moment of momentsOf(books)) for (const firing of run.observe(moment)) onFired(firing);
    observations += books.flat().filter(({ atMs }) => atMs >= request.startMs).length;
    await onRead(observations);
    fromMs = knownMs + 1;
  }
  for (const firing of run.finish()) onFired(firing);
  return observations;
}

async function toRule(db: Queryable, request: BacktestRequest, outcomes: readonly OutcomeSubject[]): Promise<BookRule> {
  const { startMs, endMs, expiresMs = Number.POSITIVE_INFINITY, threshold = ZERO, cooldownSeconds } = request;
  const fees = await readFees(
    db,
    new Map(outcomes.flatMap(({ marketPk }) => (marketPk === null ? [] : [[marketPk, startMs]]))),
  );
  const results = outcomes.map(({ spans }) => spans[0]?.untilMs ?? Number.NEGATIVE_INFINITY);
  return {
    condition: request.condition as BookConditionName,
    threshold,
    direction: request.direction,
    side: request.side,
    ...orderAmount(request),
    legs: outcomes.map(({ venue, marketPk }) => ({
      sizeDigits: sizeDigitsOf(venue ?? ''),
      fees: fees.get(marketPk ?? 0n) ?? [],
    })),
    startMs,
    endMs: Math.min(endMs, expiresMs, ...results),
    cooldownMs: cooldownSeconds === undefined ? null : cooldownSeconds * 1_000,
    seesStart: true,
  };
}
