import type { Observed } from '../../domain/alerts/condition.ts';
import { type Firing, firingsOf, type Rule, readsSince } from '../../domain/alerts/rule.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import {
  type Candidate,
  formerParts,
  IS_EVALUATED,
  lastFiringOf,
  OF_MARKETS,
  REVISION,
  type ReadRange,
  type RuleFields,
  type RuleRow,
  readObservations,
  readRules,
  toRule,
  wholeMs,
} from './rules.ts';

/** A firing of an alert on an outcome. */
export interface RuleFiring {
  row: RuleRow;
  firing: Firing;
}

/** A candidate with its conditions in the order of their times. */
interface RuleParts {
  row: RuleRow;
  candidate: Candidate;
  parts: { row: RuleRow; rule: Rule }[];
}

/** An alert as it was read. */
interface RevisedRule {
  pk: bigint;
  revision: bigint;
}

interface RuleFirings {
  fired: RuleFiring[];
  /** Alerts with firings beyond the limit, so that the marks must be processed again. */
  cut: ReadonlySet<bigint>;
}

/** In key order, so that evaluators do not deadlock. Armed rules are locked when they fire, because few of them do. */
const LOCK_READ = sql(
  'lock_read_alerts',
  `SELECT pk FROM alert WHERE pk = ANY ($1::bigint[]) AND (NOT is_armed OR probe IS NULL) ORDER BY pk FOR UPDATE`,
);

/**
 * The firings of candidates, at most `limit`. A rule that is not armed is evaluated from its start by each evaluation that meets it, under
 * a lock, because evaluations before its commit did not see it.
 */
export async function judgeCandidates(tx: Tx, candidates: readonly Candidate[], limit: number): Promise<RuleFirings> {
  const fired: RuleFiring[] = [];
  const cut = new Set<bigint>();
  if (candidates.length === 0) return { fired, cut };
  await tx.query(LOCK_READ, [[...new Set(candidates.map(({ alertPk }) => alertPk))]]);
  const candidateOf = new Map(candidates.map((one) => [`${one.alertPk} ${one.subject}`, one]));
  const runs = (await readRules(tx, candidates)).flatMap((row): RuleParts[] => {
    const candidate = candidateOf.get(`${row.pk} ${row.subject}`);
    const parts = candidate ? partsOf(row, candidate) : [];
    return candidate && parts.length > 0 ? [{ row, candidate, parts }] : [];
  });
  const observations = await readObservations(tx, neededRanges(runs));
  for (const { row, candidate, parts } of runs) {
    const observed = observedBy(candidate, observations.get(row.subject) ?? [], Number(row.startMs));
    let last = lastFiringOf(row);
    for (const part of parts) {
      for (const firing of firingsOf(part.rule, observed, last)) {
        last = firing;
        if (fired.length < limit) fired.push({ row: part.row, firing });
        else cut.add(row.pk);
      }
    }
  }
  return { fired, cut };
}

/** The observations of a candidate: with a price in effect at the start, the ones before it do not count. */
function observedBy({ startPrice }: Candidate, list: readonly Observed[], startMs: number): readonly Observed[] {
  if (startPrice === undefined) return list;
  const quote = { n: 0n, atMs: startMs - 1, price: startPrice, bid: null, ask: null, size: null };
  return [quote, ...list.filter(({ atMs }) => atMs >= startMs)];
}

function partsOf(row: RuleRow, { sinceMs }: Candidate): RuleParts['parts'] {
  const former = formerParts(row).map((part) => ({
    row: part.row,
    rule: toRule(part.row, part.isWhole ? undefined : Number(part.row.startMs)),
  }));
  return row.isActive ? [...former, { row, rule: toRule(row, row.isArmed ? sinceMs : undefined) }] : former;
}

/** The times of each token whose observations its candidates need. */
function neededRanges(runs: readonly RuleParts[]): Map<bigint, ReadRange> {
  const rangeOf = new Map<bigint, ReadRange>();
  for (const { row, candidate, parts } of runs) {
    const known = rangeOf.get(row.subject) ?? { fromMs: Number.POSITIVE_INFINITY, untilMs: 0 };
    rangeOf.set(row.subject, {
      fromMs: Math.min(known.fromMs, ...parts.map(({ rule }) => readsSince(rule))),
      untilMs: Math.max(known.untilMs, candidate.untilMs ?? Number.POSITIVE_INFINITY),
    });
  }
  return rangeOf;
}

const REVISIONS = sql(
  'revisions_of_new_rules',
  `SELECT a.pk, ${REVISION} AS revision FROM alert a WHERE a.pk = ANY ($1::bigint[]) AND NOT a.is_armed`,
);

/** The new or changed rules among these alerts, for `armRules`. Call it before the search for candidates. */
export async function readNewRules(db: Queryable, created: readonly bigint[]): Promise<RevisedRule[]> {
  return created.length === 0 ? [] : db.query<RevisedRule>(REVISIONS, [created]);
}

/** A rule that changed meanwhile is armed by the evaluation of the mark of its change. */
const ARM = sql(
  'arm_rules',
  `UPDATE alert SET is_armed = true WHERE pk IN (
     SELECT a.pk FROM unnest($1::bigint[], $2::bigint[]) AS c (pk, revision) JOIN alert a ON a.pk = c.pk
     WHERE NOT a.is_armed AND ${REVISION} = c.revision ORDER BY a.pk FOR UPDATE OF a)`,
);

/** Marks the rules as evaluated since their start, unless they changed since they were read. */
export async function armRules(db: Queryable, rules: readonly RevisedRule[]): Promise<void> {
  if (rules.length > 0) await db.query(ARM, [rules.map(({ pk }) => pk), rules.map(({ revision }) => revision)]);
}

const LOCK_RULES = sql(
  'lock_rules',
  `SELECT a.pk, ${REVISION} AS revision FROM alert a WHERE a.pk = ANY ($1::bigint[]) AND ${IS_EVALUATED} ORDER BY a.pk FOR UPDATE`,
);

/**
 * Locks the alerts that fire; returns the ones that are evaluated and unchanged since they were read. Alerts of the specification, and those
 * on books, are locked since then.
 */
export async function lockFiring<One extends { row: RuleFields; isLocked?: true }>(
  tx: Tx,
  found: readonly One[],
): Promise<One[]> {
  const isLocked = ({ row, isLocked: known }: One) => row.isSpecified || known === true;
  const unlocked = new Set(found.flatMap((one) => (isLocked(one) ? [] : [one.row.pk])));
  if (unlocked.size === 0) return [...found];
  const rows = await tx.query<RevisedRule>(LOCK_RULES, [[...unlocked]]);
  const revisionOf = new Map(rows.map((row) => [row.pk, row.revision]));
  return found.filter((one) => isLocked(one) || revisionOf.get(one.row.pk) === one.row.revision);
}

/** An alert of the specification fires once, so it keeps its firing itself. A lock held by the caller proves that it is new. */
const INSERT_FIRINGS = sql(
  'insert_alert_firings',
  `WITH fired AS MATERIALIZED (
     SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::numeric[], $6::numeric[], $7::numeric[], $8::text[],
       $9::boolean[]) AS f (alert_pk, subject, n, at_ms, price, from_price, value, event_id, is_specified)),
   made AS (
     INSERT INTO alert_firing (alert_pk, subject, n, at, price, from_price, value, event_id)
     SELECT alert_pk, subject, n, to_timestamp(at_ms / 1000.0), price, from_price, value, event_id FROM fired WHERE NOT is_specified
     ORDER BY alert_pk, subject, n ON CONFLICT DO NOTHING RETURNING alert_pk, price, event_id, n),
   new AS (SELECT * FROM made UNION ALL SELECT alert_pk, price, event_id, n FROM fired WHERE is_specified),
   -- An alert on one token without a cool-down has fired for the only time. The last firing shows on the others.
   last AS (SELECT DISTINCT ON (alert_pk) * FROM new ORDER BY alert_pk, n DESC),
   shown AS (
     UPDATE alert a SET status = CASE WHEN a.scope IS NULL AND a.cooldown_seconds IS NULL THEN 'triggered' ELSE a.status END,
       triggered_at = now(), triggered_price = l.price, event_id = l.event_id
     FROM last l WHERE a.pk = l.alert_pk)
   SELECT event_id FROM new`,
);

export interface NewFiring {
  pk: bigint;
  subject: bigint;
  n: bigint;
  atMs: number;
  price?: string | undefined;
  fromPrice?: string | undefined;
  value?: string | undefined;
  eventId: string;
  isSpecified: boolean;
}

/** Inserts the firings of locked alerts; returns the ids of the events whose firing is new. */
export async function insertFirings(tx: Tx, firings: readonly NewFiring[]): Promise<Set<string>> {
  if (firings.length === 0) return new Set();
  const rows = await tx.query<{ eventId: string }>(INSERT_FIRINGS, [
    firings.map(({ pk }) => pk),
    firings.map(({ subject }) => subject),
    firings.map(({ n }) => n),
    firings.map(({ atMs }) => atMs),
    firings.map(({ price }) => price ?? null),
    firings.map(({ fromPrice }) => fromPrice ?? null),
    firings.map(({ value }) => value ?? null),
    firings.map(({ eventId }) => eventId),
    firings.map(({ isSpecified }) => isSpecified),
  ]);
  return new Set(rows.map(({ eventId }) => eventId));
}

const FIRINGS = sql(
  'read_alert_firings',
  `SELECT ${wholeMs('f.at')} AS at_ms, f.price, f.from_price, f.value, f.event_id, t.mint AS token_mint, m.venue, m.venue_market_id
   FROM alert_firing f JOIN alert a ON a.pk = f.alert_pk
   LEFT JOIN token t ON t.id = f.subject AND a.condition NOT IN ${OF_MARKETS}
   LEFT JOIN outcome o ON o.token_id = t.id
   LEFT JOIN market m ON m.id = coalesce(o.market_id, CASE WHEN a.condition IN ${OF_MARKETS} THEN f.subject END)
   WHERE f.alert_pk = $1 ORDER BY f.at DESC, f.n DESC LIMIT $2`,
);

export interface StoredFiring {
  atMs: bigint;
  price: string | null;
  fromPrice: string | null;
  value: string | null;
  eventId: string;
  tokenMint: string | null;
  venue: string | null;
  venueMarketId: string | null;
}

/** The newest firings of an alert with a probe. */
export function readFirings(db: Queryable, alertPk: bigint, limit: number): Promise<StoredFiring[]> {
  return db.query(FIRINGS, [alertPk, limit]);
}
