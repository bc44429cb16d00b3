import type { Direction, NeededObservations, Observed, Scope, Unit } from '../../domain/alerts/condition.ts';
import {
  type AlertCondition,
  type Condition,
  isOfNewMarkets,
  MARKET_CONDITION_NAMES,
  OUTCOME_CONDITIONS,
  type OutcomeConditionName,
} from '../../domain/alerts/conditions.ts';
import type { LastFiring, Rule } from '../../domain/alerts/rule.ts';
import { DISPUTABLE_RESULTS, type ResolutionState } from '../../domain/markets/resolution.ts';
import { type Decimal, decimal } from '../../domain/values/decimal.ts';
import type { FormerRule } from '../db/entities/alert.ts';
import { type Queryable, sql } from '../db/tx.ts';

/** An alert that the new observations of an outcome may fire. */
export interface Candidate {
  alertPk: bigint;
  /** The outcome. */
  subject: bigint;
  /** The first moment whose observations are not evaluated yet, epoch milliseconds; absent: the alert is evaluated from its start. */
  sinceMs?: number | undefined;
  /** The evaluation needs no observation from this moment on; absent: it needs all. */
  untilMs?: number | undefined;
  /** The price in effect at the start of an alert of the specification; absent: it is that of the observations before. */
  startPrice?: Decimal | undefined;
}

/** The stored fields of an alert. */
export interface RuleFields {
  pk: bigint;
  id: string;
  /** Whether it is an alert of the specification: it has no probe, one event, and no stored firing. */
  isSpecified: boolean;
  accountId: bigint;
  condition: Condition;
  /** `numeric` text. */
  target: string | null;
  direction: Direction | null;
  unit: Unit | null;
  windowSeconds: number | null;
  windows: number | null;
  states: ResolutionState[] | null;
  scope: Scope | null;
  cooldownSeconds: number | null;
  name: string | null;
  webhookPk: bigint | null;
  isArmed: boolean;
  /** Whether it looks at new observations. */
  isActive: boolean;
  former: FormerRule[] | null;
  revision: bigint;
  /** Epoch milliseconds. */
  startMs: bigint;
  expiresMs: bigint | null;
}

/** A rule on one outcome. */
export interface RuleRow extends RuleFields {
  subject: bigint;
  tokenMint: string;
  symbol: string | null;
  label: string | null;
  venue: string | null;
  venueMarketId: string | null;
  title: string | null;
  /** From this moment on no observation counts; 0 for a market that was first stored as final. */
  finalMs: bigint | null;
  lastN: bigint | null;
  lastMs: bigint | null;
}

/** SQL of the names of the conditions on the state of markets. An index has the same list. */
export const OF_MARKETS = `(${MARKET_CONDITION_NAMES.map((name) => `'${name}'`).join(', ')})`;

/** SQL of the conditions of these that an alert on a token may have. */
export const OF_TOKENS = `(${MARKET_CONDITION_NAMES.filter((name) => !isOfNewMarkets(name))
  .map((name) => `'${name}'`)
  .join(', ')})`;

/** SQL of the comparison with a threshold that an observation on a side of it meets. */
export const comparisonOf = (side: NeededObservations['side']) => (side === 'at_least' ? '>=' : '<=');

/** SQL of a moment in whole milliseconds, the precision of observations, rounded down. */
export const wholeMs = (moment: string) => `floor(extract(epoch FROM ${moment}) * 1000)::bigint`;

/** SQL of the revision of rule `a`, which changes with each edit. */
export const REVISION = '(extract(epoch FROM coalesce(a.changed_at, a.created_at)) * 1000000)::bigint';

/** SQL of the moment from which the observations of rule `a` are evaluated, also under a former condition. */
export const STARTS = `coalesce(timestamptz 'epoch' + (a.former -> 0 ->> 'fromMs')::bigint * interval '1 millisecond',
  date_trunc('milliseconds', coalesce(a.changed_at, a.created_at)))`;

/** SQL of `isDecided` for market `m`. */
const isDecidedSql = (status: string) =>
  `(${status} = 'settled' OR ${status} = 'resolved' AND m.venue <> ALL (ARRAY[${DISPUTABLE_RESULTS.map((venue) => `'${venue}'`)}]))`;

/**
 * SQL of the time at which the market of a token got its final outcome, NULL without one. A market that was first stored as final counts
 * as final from the beginning. `tokenId` must include its table name.
 */
export function finalSince(tokenId: string): string {
  return `(SELECT coalesce((
      SELECT max(v.known_until) FROM market_version v
      WHERE v.market_id = m.id AND NOT ${isDecidedSql(`(v.facts ->> 'status')`)}), '-infinity')
    FROM outcome u JOIN market m ON m.id = u.market_id
    WHERE u.token_id = ${tokenId} AND ${isDecidedSql('m.status')})`;
}

/** SQL of whether the market of a token has its final outcome. `tokenId` must include its table name. */
export const isFinalOutcome = (tokenId: string) =>
  `EXISTS (SELECT FROM outcome u JOIN market m ON m.id = u.market_id WHERE u.token_id = ${tokenId} AND ${isDecidedSql('m.status')} OFFSET 0)`;

/** SQL of the fields of alert `a` with its webhook `w`. */
export const RULE_FIELDS = `a.pk, a.id, a.probe IS NULL AS is_specified, a.account_id, a.condition, a.target, a.direction, a.unit, a.window_seconds, a.windows, a.states, a.scope,
  a.cooldown_seconds, a.name, w.pk AS webhook_pk, a.is_armed, a.status = 'active' AS is_active, a.former,
  ${REVISION} AS revision,
  ${wholeMs('coalesce(a.changed_at, a.created_at)')} AS start_ms, ${wholeMs('a.expires_at')} AS expires_ms`;

/** SQL of whether rule `a` is evaluated: one that is paused or does not repeat any more for the observations before that change. */
export const IS_EVALUATED = `(a.status = 'active' OR a.former IS NOT NULL AND a.status IN ('paused', 'triggered'))`;

/** SQL of the webhook `w` of rule `a`: a deleted one counts as none. */
export const RULE_WEBHOOK = 'LEFT JOIN webhook_subscription w ON w.pk = a.webhook_pk AND w.deleted_at IS NULL';

/** SQL of the last firing of alert `a` on a subject. Alerts of the specification have no stored firing. */
export const lastFiring = (subject: string) => `LEFT JOIN LATERAL (
     SELECT f.n, f.at FROM alert_firing f WHERE f.alert_pk = a.pk AND f.subject = ${subject} AND a.probe IS NOT NULL
     ORDER BY f.n DESC LIMIT 1) f ON true`;

/** SQL of whether an observation ends the cool-down of rule `a` after its last firing `f`. A rule that is not armed may fire at its start. */
const HAS_COOLED_DOWN = `(f.n IS NULL OR a.former IS NOT NULL OR a.cooldown_seconds IS NOT NULL AND (NOT a.is_armed OR EXISTS (
     SELECT FROM observation o WHERE o.token_id = c.token_id AND o.received_at >= f.at + a.cooldown_seconds * interval '1 second' OFFSET 0)))`;

const ROWS = sql(
  'rule_rows',
  `WITH subject AS MATERIALIZED (
     SELECT t.id, t.mint, t.symbol, u.label, m.venue, m.venue_market_id, m.title,
       CASE f.since WHEN '-infinity' THEN 0 ELSE ceil(extract(epoch FROM f.since) * 1000)::bigint END AS final_ms
     FROM (SELECT DISTINCT token_id FROM unnest($2::bigint[]) AS c (token_id)) c JOIN token t ON t.id = c.token_id
     LEFT JOIN outcome u ON u.token_id = t.id LEFT JOIN market m ON m.id = u.market_id
     CROSS JOIN LATERAL (SELECT ${finalSince('t.id')} AS since OFFSET 0) f)
   SELECT ${RULE_FIELDS}, c.token_id AS subject, s.mint AS token_mint, s.symbol, s.label, s.venue, s.venue_market_id, s.title, s.final_ms,
     f.n AS last_n, ${wholeMs('f.at')} AS last_ms
   FROM unnest($1::bigint[], $2::bigint[]) AS c (alert_pk, token_id) JOIN subject s ON s.id = c.token_id
   JOIN alert a ON a.pk = c.alert_pk ${RULE_WEBHOOK}
   ${lastFiring('c.token_id')}
   WHERE ${IS_EVALUATED} AND ${HAS_COOLED_DOWN}`,
);

/** The rules of these candidates that may fire, with their state: a rule in its cool-down reads no observations. Call it after the lock of rules that are not armed. */
export async function readRules(db: Queryable, candidates: readonly Candidate[]): Promise<RuleRow[]> {
  return db.query<RuleRow>(ROWS, [candidates.map(({ alertPk }) => alertPk), candidates.map(({ subject }) => subject)]);
}

/** A rule with the condition of one of its times. `isWhole`: its evaluation begins with its start. */
interface RulePart<Row> {
  row: Row;
  isWhole: boolean;
}

/** The former conditions of a rule, oldest first. Observations of their time may wait. */
export function formerParts<Row extends RuleFields>(row: Row): RulePart<Row>[] {
  return (row.former ?? []).map(({ fromMs, untilMs, isWhole, ...condition }) => ({
    row: { ...row, ...condition, startMs: BigInt(fromMs), expiresMs: BigInt(untilMs) },
    isWhole,
  }));
}

/**
 * The condition of a stored rule on an outcome. `sinceMs` omits observations that an earlier evaluation has judged. When it is before the
 * start, the quote in effect at the start may have become visible since then.
 */
export function toRule(row: RuleFields & { finalMs?: bigint | null }, sinceMs?: number): Rule {
  const start = Number(row.startMs);
  const condition = row.condition as OutcomeConditionName;
  const ends = [row.expiresMs, row.finalMs ?? null].flatMap((ms) => (ms === null ? [] : [Number(ms)]));
  return {
    condition,
    threshold: decimal(row.target ?? '0'),
    direction: row.direction ?? undefined,
    unit: row.unit ?? undefined,
    windowMs: (row.windowSeconds ?? 0) * 1_000,
    windows: row.windows ?? undefined,
    startMs: Math.max(start, sinceMs ?? start),
    endMs: Math.min(Number.POSITIVE_INFINITY, ...ends),
    cooldownMs: row.cooldownSeconds === null ? null : row.cooldownSeconds * 1_000,
    seesStart:
      !(sinceMs !== undefined && sinceMs >= start) && row.scope === null && OUTCOME_CONDITIONS[condition].isState,
  };
}

export function lastFiringOf({ lastN, lastMs }: Pick<RuleRow, 'lastN' | 'lastMs'>): LastFiring | undefined {
  return lastN === null || lastMs === null ? undefined : { n: lastN, atMs: Number(lastMs) };
}

/**
 * SQL of the quote of a token that was in effect right before a moment, as a relation of at most one row. A token without kept price
 * history has its latest price since before the oldest kept history, because each change adds a row.
 */
export function quoteBefore(tokenId: string, moment: string): string {
  return `(
    (SELECT h.received_at, h.price, h.bid, h.ask FROM price_history h
     WHERE h.token_id = ${tokenId} AND h.received_at < ${moment} ORDER BY h.received_at DESC LIMIT 1)
    UNION ALL
    (SELECT least(l.received_at, ${moment} - interval '1 millisecond'), l.price, l.bid, l.ask FROM latest_price l
     WHERE l.token_id = ${tokenId} AND NOT EXISTS (SELECT FROM price_history k WHERE k.token_id = l.token_id))
    LIMIT 1)`;
}

/**
 * SQL of the newest kept observation of a token before a moment, as a relation of at most one row. Ordered by the time alone, the index
 * gives the newest moment first; an order by the number too would read and sort all observations before the moment.
 */
export function observationBefore(tokenId: string, moment: string, condition = 'true'): string {
  return `(
    SELECT i.* FROM (
      SELECT o.n, o.received_at, o.price, o.bid, o.ask, o.size FROM observation o
      WHERE o.token_id = ${tokenId} AND o.received_at < ${moment} AND o.n IS NOT NULL AND ${condition}
      ORDER BY o.received_at DESC FETCH FIRST 1 ROW WITH TIES) i
    ORDER BY i.n DESC LIMIT 1)`;
}

/**
 * Observations of tokens since a moment each, with the one and the quote before it, in their order. The quote in effect before that moment
 * also comes first as number 0, because it may be older than the kept observations.
 */
const OBSERVATIONS = sql(
  'rule_observations',
  `SELECT b.token_id, o.n, ${wholeMs('o.received_at')} AS at_ms, o.price, o.bid, o.ask, o.size
   FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS b (token_id, since, until)
   CROSS JOIN LATERAL (
     SELECT 0::bigint AS n, h.received_at, h.price, h.bid, h.ask, NULL::numeric AS size FROM ${quoteBefore('b.token_id', 'b.since')} h
     UNION ALL
     ${observationBefore('b.token_id', 'b.since')}
     UNION
     ${observationBefore('b.token_id', 'b.since', 'o.size IS NULL')}
     UNION ALL
     SELECT o.n, o.received_at, o.price, o.bid, o.ask, o.size FROM observation o
     WHERE o.token_id = b.token_id AND o.received_at >= b.since AND o.received_at < b.until AND o.n IS NOT NULL) o
   ORDER BY b.token_id, o.n`,
);

interface ObservationRow {
  tokenId: bigint;
  n: bigint;
  atMs: bigint;
  price: string;
  bid: string | null;
  ask: string | null;
  size: string | null;
}

/** A time of which an evaluation reads the observations, epoch milliseconds; the end is exclusive. */
export interface ReadRange {
  fromMs: number;
  untilMs: number;
}

/** After every observation. */
const NEVER_MS = 8_000_000_000_000;

/** The observations of each token within its range, and before it the ones that `OBSERVATIONS` names. */
export async function readObservations(
  db: Queryable,
  rangeOf: ReadonlyMap<bigint, ReadRange>,
): Promise<Map<bigint, Observed[]>> {
  const ranges = [...rangeOf.values()];
  const rows = await db.query<ObservationRow>(OBSERVATIONS, [
    [...rangeOf.keys()],
    ranges.map(({ fromMs }) => new Date(fromMs).toISOString()),
    ranges.map(({ untilMs }) => new Date(Math.min(untilMs, NEVER_MS)).toISOString()),
  ]);
  const found = new Map<bigint, Observed[]>();
  // The driver returns `numeric` text without superfluous zeros only when it was stored so.
  const exact = (text: string | null): Decimal | null => (text === null ? null : decimal(text));
  for (const { tokenId, n, atMs, price, bid, ask, size } of rows) {
    const list = found.get(tokenId) ?? [];
    found.set(tokenId, list);
    list.push({ n, atMs: Number(atMs), price: decimal(price), bid: exact(bid), ask: exact(ask), size: exact(size) });
  }
  return found;
}

/** The start of an alert of the specification, in the precision of observations. */
export const SPECIFIED_START = `date_trunc('milliseconds', a.created_at)`;

/** SQL of the moments between which observations may fire an alert. NULL is no end. */
interface Window {
  since: string;
  until: string;
}

/**
 * SQL of the first moment at which alert `a` of the specification fires: its start, when the price in effect meets it, or an observation;
 * NULL for none. The price in effect, instead of the latest one, means that neither a slow evaluator nor a slow writer loses a crossing: a
 * price that was stamped before an alert and committed after it is in effect at its start, however soon the price changes again.
 */
export function firstMoment(condition: AlertCondition, { since, until }: Window): string {
  const comparison = comparisonOf(sideOf(condition));
  const isBeforeEnd = (moment: string) => `(${until} IS NULL OR ${moment} < ${until})`;
  return `coalesce(
    (SELECT ${SPECIFIED_START} FROM ${quoteBefore('a.token_id', SPECIFIED_START)} h
     WHERE ${since} <= a.created_at AND ${isBeforeEnd('a.created_at')} AND h.price ${comparison} a.target),
    (SELECT o.received_at FROM observation o
     WHERE o.token_id = a.token_id AND o.received_at >= greatest(${SPECIFIED_START}, ${since}) AND o.price ${comparison} a.target
       AND ${isBeforeEnd('o.received_at')} AND o.n IS NOT NULL
     ORDER BY o.received_at LIMIT 1))`;
}

/** The side of the target on which prices meet the condition. */
export const sideOf = (condition: AlertCondition) => OUTCOME_CONDITIONS[condition].needs({}).side;

/** The condition must be a literal, because the partial indexes fit only then, in any plan. */
export function activeAlerts(condition: AlertCondition, token: string): string {
  return `a.token_id = ${token} AND a.status = 'active' AND a.condition = '${condition}' AND a.probe IS NULL`;
}
