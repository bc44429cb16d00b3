import { type Firing, firingsOf, type Rule } from '../../domain/alerts/rule.ts';
import { type Queryable, sql, type Tx } from '../db/tx.ts';
import { findCandidates } from './rule-candidates.ts';
import {
  type Candidate,
  formerParts,
  IS_EVALUATED,
  lastFiringOf,
  OF_MARKETS,
  REVISION,
  type RuleRow,
  readObservations,
  readRules,
  readsSince,
  STARTS,
  toRule,
  wholeMs,
} from './rule-rows.ts';
import { MARKETS_IN_SCOPE } from './scopes.ts';
import type { WindowMemory } from './window-memory.ts';

/** A firing of a rule on an outcome. */
export interface RuleFiring {
  row: RuleRow;
  firing: Firing;
}

interface RuleSearch {
  /** The first claimed moment of each token, epoch milliseconds. */
  sinceOf: ReadonlyMap<bigint, number>;
  /** Keys of new or changed alerts. */
  created: readonly bigint[];
  limit: number;
  memory: WindowMemory;
}

/** A rule with its conditions in the order of their times. */
interface RuleParts {
  row: RuleRow;
  parts: { row: RuleRow; rule: Rule }[];
}

/** A rule as it was read. */
interface RevisedRule {
  pk: bigint;
  revision: bigint;
}

export interface RuleFirings {
  fired: RuleFiring[];
  /** Rules whose observations since their start are evaluated by this transaction. */
  armed: RevisedRule[];
  /** Whether the limit cut firings, so that the marks must be processed again. */
  isCut: boolean;
}

/**
 * New rules with their outcomes. A scope may hold thousands of outcomes, so only those count that got an observation since the start of
 * the rule.
 */
const CREATED = sql(
  'created_rules',
  `SELECT a.pk AS alert_pk, a.token_id AS subject FROM alert a
   WHERE a.pk = ANY ($1::bigint[]) AND ${IS_EVALUATED} AND a.probe IS NOT NULL AND a.token_id IS NOT NULL AND a.condition <> 'status'
   UNION ALL
   SELECT a.pk, o.token_id FROM alert a CROSS JOIN LATERAL ${MARKETS_IN_SCOPE} m JOIN outcome o ON o.market_id = m.id
   WHERE a.pk = ANY ($1::bigint[]) AND ${IS_EVALUATED} AND a.scope_key IS NOT NULL AND a.condition NOT IN ${OF_MARKETS}
     AND EXISTS (SELECT FROM observation s WHERE s.token_id = o.token_id AND s.received_at >= ${STARTS} OFFSET 0)`,
);

/** In key order, so that evaluators do not deadlock. The rows of armed rules need no lock before they fire. */
const LOCK_NEW = sql(
  'lock_new_rules',
  `SELECT pk FROM alert WHERE pk = ANY ($1::bigint[]) AND NOT is_armed ORDER BY pk FOR UPDATE`,
);

const REVISIONS = sql(
  'revisions_of_new_rules',
  `SELECT a.pk, ${REVISION} AS revision FROM alert a WHERE a.pk = ANY ($1::bigint[]) AND NOT a.is_armed`,
);

/** A rule that changed meanwhile is armed by the evaluation of the mark of its change. */
const ARM = sql(
  'arm_rules',
  `UPDATE alert SET is_armed = true WHERE pk IN (
     SELECT a.pk FROM unnest($1::bigint[], $2::bigint[]) AS c (pk, revision) JOIN alert a ON a.pk = c.pk
     WHERE NOT a.is_armed AND ${REVISION} = c.revision ORDER BY a.pk FOR UPDATE OF a)`,
);

/**
 * Finds the firings of rules by the new observations of the claimed tokens, and by all observations since the start of new rules. A rule
 * that is not armed is evaluated from its start by each evaluation that meets it, under a lock, because evaluations before its commit
 * did not see it.
 */
export async function findRuleFirings(tx: Tx, { sinceOf, created, limit, memory }: RuleSearch): Promise<RuleFirings> {
  const armed = created.length === 0 ? [] : await tx.query<RevisedRule>(REVISIONS, [created]);
  const fromNew = created.length === 0 ? [] : await tx.query<Candidate>(CREATED, [created]);
  const candidates = unique([...fromNew, ...(await findCandidates(tx, sinceOf, memory))]);
  const result: RuleFirings = { fired: [], armed, isCut: false };
  if (candidates.length === 0) return result;
  await tx.query(LOCK_NEW, [[...new Set(candidates.map(({ alertPk }) => alertPk))]]);
  const rows = await readRules(tx, candidates);
  const isNew = new Set(created);
  const runs = rows.map((row): RuleParts => {
    const sinceMs = sinceOf.get(row.subject);
    const isWhole = !row.isArmed || isNew.has(row.pk) || sinceMs === undefined;
    const former = formerParts(row).map((part) => ({
      row: part.row,
      rule: toRule(part.row, part.isWhole ? undefined : Number(part.row.startMs)),
    }));
    return {
      row,
      parts: row.isActive ? [...former, { row, rule: toRule(row, isWhole ? undefined : sinceMs) }] : former,
    };
  });
  const observations = await readObservations(tx, firstNeeded(runs.flatMap(({ parts }) => parts)));
  const cut = new Set<bigint>();
  for (const { row, parts } of runs) {
    let last = lastFiringOf(row);
    for (const part of parts) {
      for (const firing of firingsOf(part.rule, observations.get(row.subject) ?? [], last)) {
        last = firing;
        if (result.fired.length < limit) result.fired.push({ row: part.row, firing });
        else cut.add(row.pk);
      }
    }
  }
  result.isCut = cut.size > 0;
  result.armed = armed.filter(({ pk }) => !cut.has(pk));
  return result;
}

/** Marks the rules as evaluated since their start, unless they changed since they were read. */
export async function armRules(db: Queryable, rules: readonly RevisedRule[]): Promise<void> {
  if (rules.length > 0) await db.query(ARM, [rules.map(({ pk }) => pk), rules.map(({ revision }) => revision)]);
}

function unique(candidates: readonly Candidate[]): Candidate[] {
  return [...new Map(candidates.map((one) => [`${one.alertPk} ${one.subject}`, one])).values()];
}

/** The first moment that any rule of each token needs. */
function firstNeeded(runs: readonly { row: RuleRow; rule: Rule }[]): Map<bigint, number> {
  const sinceOf = new Map<bigint, number>();
  for (const { row, rule } of runs) {
    const from = readsSince(rule);
    sinceOf.set(row.subject, Math.min(from, sinceOf.get(row.subject) ?? from));
  }
  return sinceOf;
}

const LOCK_RULES = sql(
  'lock_rules',
  `SELECT a.pk, ${REVISION} AS revision FROM alert a WHERE a.pk = ANY ($1::bigint[]) AND ${IS_EVALUATED} ORDER BY a.pk FOR UPDATE`,
);

/** Locks the rules that fire; returns the ones that are evaluated and unchanged since they were read. */
export async function lockRules(tx: Tx, rules: readonly RevisedRule[]): Promise<Set<bigint>> {
  if (rules.length === 0) return new Set();
  const rows = await tx.query<RevisedRule>(LOCK_RULES, [[...new Set(rules.map(({ pk }) => pk))]]);
  const revisionOf = new Map(rows.map((row) => [row.pk, row.revision]));
  return new Set(rules.filter(({ pk, revision }) => revisionOf.get(pk) === revision).map(({ pk }) => pk));
}

const INSERT_FIRINGS = sql(
  'insert_alert_firings',
  `WITH made AS (
     INSERT INTO alert_firing (alert_pk, subject, n, at, price, from_price, value, event_id)
     SELECT pk, subject, n, to_timestamp(at_ms / 1000.0), price, from_price, value, event_id
     FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::numeric[], $6::numeric[], $7::numeric[], $8::text[])
       AS f (pk, subject, n, at_ms, price, from_price, value, event_id)
     ORDER BY pk, subject, n ON CONFLICT DO NOTHING RETURNING alert_pk, price, event_id, n),
   -- A rule on one token without a cool-down has fired for the only time. The last firing shows on the others.
   last AS (SELECT DISTINCT ON (alert_pk) * FROM made ORDER BY alert_pk, n DESC),
   shown AS (
     UPDATE alert a SET status = CASE WHEN a.scope IS NULL AND a.cooldown_seconds IS NULL THEN 'triggered' ELSE a.status END,
       triggered_at = now(), triggered_price = l.price, event_id = l.event_id
     FROM last l WHERE a.pk = l.alert_pk)
   SELECT event_id FROM made`,
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
}

/** Inserts firings; returns the ids of the events whose firing is new. */
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
