import { JsonText, toJsonText } from '../../../domain/values/api-json.ts';
import { parseExactJson } from '../../../domain/values/exact-json.ts';
import { derivedId } from '../../../domain/values/ids.ts';
import { type TradeBound, tradeBoundOf } from '../../../domain/webhooks/broadcast.ts';
import type { BroadcastEvent } from '../../../domain/webhooks/event.ts';
import { eventBody } from '../../../domain/webhooks/event-body.ts';
import { type EventFilter, matchesFilter } from '../../../domain/webhooks/filter.ts';
import { type Queryable, sql } from '../../db/tx.ts';
import { decodeCause, gapOfKey, LISTENS, marketOfKey } from '../../marks/detail.ts';
import type { Mark } from '../../marks/marks.ts';
import type { Broadcast } from '../events.ts';
import { wholeMs } from '../rules.ts';
import {
  type Fact,
  type GapCause,
  readGapFacts,
  readMarketFacts,
  readResolutionFacts,
  readRulesFacts,
  readTradeFacts,
} from './facts.ts';

/** A webhook that lists broadcasts. */
interface Listener {
  pk: bigint;
  accountId: bigint;
  events: readonly string[];
  filter: EventFilter | null;
  /** A paused webhook gets no delivery. The stored event allows a recovery. */
  isActive: boolean;
  /** The creation, rounded down: the precision of observations. Epoch milliseconds. */
  startMs: bigint;
}

/** SQL of whether a condition `c` of a filter names one of the touched ids. */
const names = (column: string) => `(c ->> 'equal' IN (SELECT t.${column} FROM touched t)
       OR EXISTS (SELECT FROM jsonb_array_elements_text(c -> 'in') v WHERE v IN (SELECT t.${column} FROM touched t)))`;

/**
 * The webhooks that list one of $1, and the ones that list trades whose filter may let a trade of the tokens $2 pass. The index has no rows
 * without such webhooks, and then the markets of the tokens are not read.
 */
const LISTENERS = sql(
  'broadcast_listeners',
  `WITH touched AS MATERIALIZED (
     SELECT DISTINCT m.venue_market_id AS market_id, m.event_id
     FROM unnest($2::bigint[]) AS k (token_id) JOIN outcome o ON o.token_id = k.token_id JOIN market m ON m.id = o.market_id)
   SELECT w.pk, w.account_id, w.events, w.filter, w.status = 'active' AS is_active, ${wholeMs('w.created_at')} AS start_ms
   FROM webhook_subscription w
   WHERE ${LISTENS} AND (w.events && $1::text[] OR (cardinality($2::bigint[]) > 0 AND 'trade' = ANY (w.events) AND EXISTS (
     SELECT FROM jsonb_array_elements(w.filter) c WHERE CASE c ->> 'field'
       WHEN 'data.marketId' THEN ${names('market_id')}
       WHEN 'data.eventId' THEN ${names('event_id')}
       ELSE c ->> 'field' = 'data.notional' END)))
   ORDER BY w.pk`,
);

/** The webhooks for broadcasts of these types, and for trades of these tokens. */
async function readListeners(
  db: Queryable,
  types: readonly BroadcastEvent[],
  tradedTokens: readonly bigint[],
): Promise<Listener[]> {
  if (types.length === 0 && tradedTokens.length === 0) return [];
  return db.query<Listener>(LISTENERS, [types, tradedTokens]);
}

/** Comparisons of a fact with a filter per transaction. */
const MAX_COMPARED = 100_000;

interface Broadcasts {
  broadcasts: Broadcast[];
  /** Whether the limit left facts of this mark, so that it must be processed again. */
  isUnfinished(mark: Mark): boolean;
}

/**
 * The events of the broadcasts of claimed marks, one per account with a webhook that lists the type and whose filter does not exclude the
 * fact, for each of its active ones. The dedupe key of an event is its fact, so that repeated and overlapping marks emit it once. Facts of
 * one group of marks are emitted together; after `limit` events the other groups wait for the next claim.
 */
export async function findBroadcasts(db: Queryable, marks: readonly Mark[], limit: number): Promise<Broadcasts> {
  const { changedOf, observed, gaps, types } = sorted(marks);
  const listeners = await readListeners(db, types, [...new Set(observed.map(({ tokenId }) => tokenId))]);
  const none = { broadcasts: [], isUnfinished: () => false };
  if (listeners.length === 0) return none;
  const hears = (...names: BroadcastEvent[]) =>
    listeners.some(({ events }) => names.some((name) => events.includes(name)));
  const facts = [
    ...(hears('new_market', 'market_status') ? await readMarketFacts(db, changedOf) : []),
    ...(hears('market_resolution') ? await readResolutionFacts(db, changedOf) : []),
    ...(hears('market_rules') ? await readRulesFacts(db, changedOf) : []),
    ...(await readTradeFacts(db, observed, tradeBounds(listeners))),
    ...(hears('feed_gap') ? await readGapFacts(db, gaps) : []),
  ];
  if (facts.length === 0) return none;
  const { broadcasts, left } = choose(facts, listeners, limit);
  return { broadcasts, isUnfinished: (mark) => left.has(groupOf(mark)) };
}

/** Marks of one group are processed together: the ones of a market or a gap, and the ones of one moment of a token. */
function groupOf({ key, detail }: Mark): string {
  return decodeCause(detail).kind === 'observed' ? `${key} ${detail}` : `${key}`;
}

/** The claimed marks by their facts. */
function sorted(marks: readonly Mark[]) {
  const changedOf = new Map<bigint, { sinceMs: number; group: string }>();
  const observed = new Map<string, { tokenId: bigint; atMs: bigint; group: string }>();
  const gaps: GapCause[] = [];
  for (const mark of marks) {
    const cause = decodeCause(mark.detail);
    const group = groupOf(mark);
    if (cause.kind === 'observed') observed.set(group, { tokenId: mark.key, atMs: cause.atMs, group });
    if (cause.kind === 'marketChanged') {
      const pk = marketOfKey(mark.key);
      const atMs = Number(cause.atMs);
      changedOf.set(pk, { sinceMs: Math.min(atMs, changedOf.get(pk)?.sinceMs ?? atMs), group });
    }
    if (cause.kind === 'gapBegan' || cause.kind === 'gapEnded')
      gaps.push({ kind: cause.kind, rowId: gapOfKey(mark.key), atMs: Number(cause.atMs), group });
  }
  const types: BroadcastEvent[] = [
    ...(changedOf.size > 0 ? (['new_market', 'market_status', 'market_resolution', 'market_rules'] as const) : []),
    ...(gaps.length > 0 ? (['feed_gap'] as const) : []),
  ];
  return { changedOf, observed: [...observed.values()], gaps, types };
}

/** The events of the facts, group by group, until the limit; `left` has the groups beyond it. */
function choose(facts: readonly Fact[], listeners: readonly Listener[], limit: number) {
  const candidatesOf = candidates(listeners);
  const byGroup = grouped(facts, ({ group }) => group);
  const occurredAt = new Date();
  const broadcasts: Broadcast[] = [];
  const left = new Set<string>();
  let compared = 0;
  for (const [group, ofGroup] of byGroup) {
    if (broadcasts.length >= limit || compared >= MAX_COMPARED) {
      left.add(group);
      continue;
    }
    for (const fact of ofGroup) {
      const possible = candidatesOf(fact);
      compared += possible.length;
      broadcasts.push(...eventsOf(fact, possible, occurredAt));
    }
  }
  return { broadcasts, left };
}

/** What the filters of trades pin: each listener of trades has one bound. */
function tradeBounds(listeners: readonly Listener[]): TradeBound[] {
  return listeners.flatMap(({ events, filter }) => (events.includes('trade') ? (tradeBoundOf(filter) ?? []) : []));
}

/** The webhooks that may want a fact. The ones that pin a market or an event of trades are found by it. */
function candidates(listeners: readonly Listener[]): (fact: Fact) => readonly Listener[] {
  const ofType = new Map<string, Listener[]>();
  const ofId = new Map<string, Listener[]>();
  for (const listener of listeners) {
    for (const type of listener.events) {
      const bound = type === 'trade' ? tradeBoundOf(listener.filter) : undefined;
      if (bound === null) continue;
      if (bound === undefined || bound.by === 'notional') append(ofType, type, listener);
      else for (const id of new Set(bound.ids)) append(ofId, id, listener);
    }
  }
  return ({ type, ids = [] }) => [...(ofType.get(type) ?? []), ...new Set(ids.flatMap((id) => ofId.get(id) ?? []))];
}

function eventsOf(
  { type, identity, atMs, data, corrects }: Fact,
  possible: readonly Listener[],
  occurredAt: Date,
): Broadcast[] {
  const started = possible.filter(({ startMs }) => atMs >= Number(startMs));
  if (started.length === 0) return [];
  const text = new JsonText(toJsonText(data, 'number'));
  const isChosen = chooser(type, text);
  const reports = corrects?.map((report) => ({
    atMs: report.atMs,
    isChosen: chooser(type, new JsonText(toJsonText(report.data, 'number'))),
  }));
  const hasReported = (listener: Listener) =>
    reports === undefined ||
    reports.some((report) => report.atMs >= Number(listener.startMs) && report.isChosen(listener));
  const chosen = started.filter((listener) => isChosen(listener) && hasReported(listener));
  return [...grouped(chosen, ({ accountId }) => accountId)].map(([accountId, ofAccount]) => {
    // Ids of venues may be longer than an index allows, so the dedupe key has the hash of the fact.
    const id = derivedId('evt', `${type}:${accountId}:${identity}`);
    const body = eventBody(type, { eventId: id, occurredAt }, text);
    return {
      event: { id, accountId, type, body, dedupeKey: `${type}:${id}` },
      subscriptionPks: ofAccount.flatMap(({ pk, isActive }) => (isActive ? [pk] : [])),
    };
  });
}

/** Whether the filter of a webhook lets an event with this data pass. */
function chooser(type: BroadcastEvent, { text }: JsonText): (listener: Listener) => boolean {
  const { value } = parseExactJson(`{"type":${JSON.stringify(type)},"data":${text}}`);
  return ({ filter }) => filter === null || matchesFilter(filter, value);
}

function append<K, V>(map: Map<K, V[]>, key: K, value: V): void {
  const list = map.get(key);
  if (list) list.push(value);
  else map.set(key, [value]);
}

function grouped<K, V>(values: readonly V[], keyOf: (value: V) => K): Map<K, V[]> {
  const groups = new Map<K, V[]>();
  for (const value of values) append(groups, keyOf(value), value);
  return groups;
}
