import {
  checkedPayouts,
  type OutcomePayout,
  RESOLUTION_STATES,
  type ResolutionChange,
  type ResolutionStanding,
  type ResolutionState,
} from '../../domain/markets/resolution.ts';
import { decimal } from '../../domain/values/decimal.ts';
import type { Row } from '../../domain/wire/fields.ts';
import type { RESOLUTION } from '../../domain/wire/market-data.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { RESOLUTION_FACT_COLUMNS } from '../journal/bodies.ts';
import { NEWEST_HEAD } from '../journal/read-journal.ts';
import { insertPublishSql } from '../marks/publish-marks.ts';
import { type TokenPrice, writePrices } from '../prices/prices.ts';

/** New rows of the timeline of a market. */
export interface MarketResolution {
  marketPk: bigint;
  /** The outcomes of the market. */
  outcomes: number;
  changes: readonly ResolutionChange[];
  /** Whether they change a market that was known before, and are no account of its past. */
  isReport: boolean;
}

/** SQL of the last row `r` of the timeline of a market. */
const LAST = (marketId: string) =>
  `SELECT * FROM market_resolution r WHERE r.market_id = ${marketId} ORDER BY r.n DESC LIMIT 1`;

const STANDINGS = sql(
  'resolution_standings',
  `SELECT r.market_id, r.state, r.round, r.facts ->> 'rawState' AS raw_state,
     (SELECT p.payouts FROM market_resolution p WHERE p.market_id = r.market_id AND p.state = r.state AND p.payouts IS NOT NULL
        AND p.n > coalesce((SELECT max(o.n) FROM market_resolution o WHERE o.market_id = r.market_id AND o.state <> r.state), 0)
      ORDER BY p.n DESC LIMIT 1) AS payouts
   FROM unnest($1::bigint[]) AS k (id) CROSS JOIN LATERAL (${LAST('k.id')}) r`,
);

interface StandingRow {
  marketId: bigint;
  state: ResolutionState;
  round: number | null;
  rawState: string | null;
  payouts: { outcomeId: string; payout: string }[] | null;
}

/** Where these markets stand; a market without a timeline is absent. The caller has locked them. */
export async function readStandings(tx: Tx, marketPks: readonly bigint[]): Promise<Map<bigint, ResolutionStanding>> {
  if (marketPks.length === 0) return new Map();
  const rows = await tx.query<StandingRow>(STANDINGS, [marketPks]);
  return new Map(
    rows.map(({ marketId, state, round, rawState, payouts }) => [
      marketId,
      {
        state,
        ...(round !== null && { round }),
        ...(rawState !== null && { rawState }),
        ...(payouts !== null && {
          payouts: payouts.map(({ outcomeId, payout }): OutcomePayout => ({ outcomeId, payout: decimal(payout) })),
        }),
      },
    ]),
  );
}

/**
 * The time of receipt is that of the version of the market, so that both agree at any moment. A time that a feed announced counts when it is
 * later than the last row: an earlier one belongs to a former result.
 */
const APPEND = sql(
  'append_resolutions',
  `WITH added AS (
     INSERT INTO market_resolution (market_id, n, venue, transition, state, round, at, received_at, payouts, reason, source, facts, is_report)
     SELECT r.market_id, coalesce(l.n, 0) + r.place, m.venue, r.transition, r.state, r.round, coalesce(r.at, a.at), m.updated_at,
       r.payouts, r.reason, CASE WHEN r.at IS NULL AND a.at IS NOT NULL THEN 'feed' ELSE r.source END, coalesce(r.facts, '{}'), r.is_report
     FROM jsonb_to_recordset($1::jsonb) AS r (market_id bigint, place int, transition text, state text, round int, at timestamptz,
       payouts jsonb, reason text, source text, facts jsonb, is_report boolean)
     JOIN market m ON m.id = r.market_id LEFT JOIN LATERAL (${LAST('r.market_id')}) l ON true
     LEFT JOIN LATERAL (
       SELECT b.at FROM market_stats s
       CROSS JOIN LATERAL (SELECT timestamptz 'epoch' + (s.announced ->> r.state)::bigint * interval '1 millisecond' AS at) b
       WHERE s.market_id = r.market_id AND (l.n IS NULL OR b.at > coalesce(l.at, l.received_at))) a ON true
     ORDER BY r.market_id, r.place RETURNING market_id, n)
   ${insertPublishSql('resolution', 'SELECT market_id, n FROM added')}`,
);

const PAYING: ReadonlySet<string> = new Set(['proposed', 'resolved', 'corrected', 'settled', 'voided']);

/** Appends rows to the timelines of these markets, in the transaction that changes them. */
export async function appendResolutions(tx: Tx, resolutions: readonly MarketResolution[]): Promise<void> {
  const rows = resolutions.flatMap(({ marketPk, outcomes, changes, isReport }) =>
    changes.map((change, index) => {
      const { transition, state, round, atMs, source, facts } = change;
      const paid = PAYING.has(transition) ? checkedPayouts(change, outcomes) : { payouts: null, reason: null };
      return {
        market_id: String(marketPk),
        place: index + 1,
        transition,
        state,
        round,
        at: atMs === undefined ? undefined : new Date(atMs).toISOString(),
        ...paid,
        source,
        facts,
        is_report: isReport,
      };
    }),
  );
  if (rows.length > 0) await tx.query(APPEND, [JSON.stringify(rows)]);
}

/**
 * The last market prices of outcomes whose price is still the payout of a withdrawn result. `since` is the first row of that result: the prices
 * before it are market prices.
 */
const WITHDRAWN = sql(
  'withdrawn_payouts',
  `SELECT o.token_id, h.price
   FROM unnest($1::bigint[]) AS k (id)
   CROSS JOIN LATERAL (
     SELECT r.n, r.payouts FROM market_resolution r WHERE r.market_id = k.id AND r.payouts IS NOT NULL
       AND r.state IN ('resolved', 'settled', 'voided') ORDER BY r.n DESC LIMIT 1) paid
   CROSS JOIN LATERAL (
     SELECT r.received_at FROM market_resolution r WHERE r.market_id = k.id AND r.n > coalesce((
       SELECT max(b.n) FROM market_resolution b WHERE b.market_id = k.id AND b.n < paid.n AND b.state NOT IN ('resolved', 'settled', 'voided')), 0)
     ORDER BY r.n LIMIT 1) since
   CROSS JOIN LATERAL jsonb_to_recordset(paid.payouts) AS p ("outcomeId" text, payout numeric)
   JOIN token t ON t.mint = p."outcomeId" JOIN outcome o ON o.token_id = t.id AND o.market_id = k.id
   JOIN latest_price l ON l.token_id = o.token_id AND l.price = p.payout
   CROSS JOIN LATERAL (
     SELECT h.price FROM price_history h WHERE h.token_id = o.token_id AND h.received_at < since.received_at
     ORDER BY h.received_at DESC LIMIT 1) h`,
);

/** Gives outcomes of markets whose result was withdrawn their last market price again, without quotes. */
export async function restorePrices(tx: Tx, marketPks: readonly bigint[], nowMs: number): Promise<void> {
  if (marketPks.length === 0) return;
  const rows = await tx.query<{ tokenId: bigint; price: string }>(WITHDRAWN, [marketPks]);
  const prices = rows.map(({ tokenId, price }): TokenPrice => ({ tokenId, asOfMs: nowMs, price: decimal(price) }));
  if (prices.length > 0) await writePrices(tx, prices, { observed: false });
}

/** A row of a timeline: numbers as text, unknown as null. */
type StoredResolution = Row<typeof RESOLUTION> & { venue: string; seq: bigint | null };

const COLUMNS = `k.venue, k.venue_market_id AS market_id, r.transition, r.state, r.round, r.at, r.received_at, r.payouts, r.reason, r.source,
  ${Object.entries(RESOLUTION_FACT_COLUMNS)
    .map(([name, column]) => `${column} AS ${name}`)
    .join(', ')}, r.seq`;

const TIMELINE = sql(
  'market_timeline',
  `SELECT ${COLUMNS} FROM market_resolution r JOIN market k ON k.id = r.market_id WHERE r.market_id = $1 ORDER BY r.n`,
);

/** The timeline of a market, oldest first. */
export function readTimeline(db: Queryable, marketPk: bigint): Promise<StoredResolution[]> {
  return db.query(TIMELINE, [marketPk]);
}

const PAYOUTS = sql(
  'market_payouts',
  `SELECT t.mint AS outcome_id, o.payout FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = $1 ORDER BY o.ordinal`,
);

/** The payouts of all outcomes of a market, in order; null when they are not known. */
export function readPayouts(db: Queryable, marketPk: bigint): Promise<{ outcomeId: string; payout: string | null }[]> {
  return db.query(PAYOUTS, [marketPk]);
}

interface ResolutionListQuery {
  venues: readonly string[];
  /** Default: every state. The state after the row. */
  states?: readonly ResolutionState[];
  category?: string;
  /** Rows that were received at or after this moment, epoch seconds. */
  since?: number;
  /** Rows behind this number. */
  after?: string;
  limit: number;
}

/** One walk down an index per venue and state, then a merge, as in `listMarkets`. */
const LIST = sql(
  'list_resolutions',
  `WITH first AS MATERIALIZED (SELECT min(seq) AS seq FROM market_resolution WHERE received_at >= to_timestamp($5::float8))
   SELECT ${COLUMNS} FROM unnest($1::text[]) AS v (venue) CROSS JOIN unnest($3::text[]) AS s (state)
   CROSS JOIN LATERAL (
     SELECT r.* FROM market_resolution r JOIN market m ON m.id = r.market_id
     WHERE r.venue = v.venue AND r.state = s.state AND r.seq > greatest($2::bigint, (SELECT seq - 1 FROM first)) AND ($4::text IS NULL OR m.category = $4)
       AND ($5::float8 IS NULL OR r.received_at >= to_timestamp($5)) ORDER BY r.seq LIMIT $6) r
   JOIN market k ON k.id = r.market_id ORDER BY r.seq LIMIT $6`,
);

/** The published rows of venues in the order of the journal. */
export function listResolutions(db: Queryable, query: ResolutionListQuery): Promise<StoredResolution[]> {
  const { venues, states = RESOLUTION_STATES, category = null, since = null, after = '-1', limit } = query;
  return db.query(LIST, [venues, after, states, category, since, limit]);
}

const LAST_SEQ = sql(
  'last_resolution',
  'SELECT coalesce(max(seq), 0) AS seq FROM market_resolution WHERE seq IS NOT NULL',
);

/** The number of the last published row; 0 without one. */
export async function lastResolutionSeq(db: Queryable): Promise<bigint> {
  const [row] = await db.query<{ seq: bigint }>(LAST_SEQ);
  return row?.seq ?? 0n;
}

/**
 * Rows whose mark a publisher of the former release took, which does not know their kind: the journal is complete beyond them. While a
 * publisher is behind, their own marks wait.
 */
const REPUBLISH = sql(
  'republish_resolutions',
  insertPublishSql(
    'resolution',
    `SELECT r.market_id, r.n FROM market_resolution r, (${NEWEST_HEAD}) h
     WHERE r.seq IS NULL AND r.received_at < least(h.checked_at, clock_timestamp() - interval '1 minute') ORDER BY r.market_id, r.n LIMIT 20000`,
  ),
);

/** Marks rows again that were not published within a minute. A row with two marks is published once. */
export async function republishResolutions(db: Queryable): Promise<void> {
  await db.query(REPUBLISH);
}

/** SQL of the known payouts of a market's outcomes, as `[[mint, payout], ...]`: `[]` when none is known. */
export const payoutsOf = (
  marketId: string,
) => `(SELECT coalesce(jsonb_agg(jsonb_build_array(t.mint, o.payout::text) ORDER BY o.ordinal), '[]')
       FROM outcome o JOIN token t ON t.id = o.token_id WHERE o.market_id = ${marketId} AND o.payout IS NOT NULL)`;
