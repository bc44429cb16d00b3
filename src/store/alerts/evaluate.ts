import type { BroadcastEvent } from '../../domain/webhooks/event.ts';
import type { Tx } from '../db/tx.ts';
import { knownEvents } from '../deliveries/events.ts';
import { decodeCause, marketOfKey } from '../marks/detail.ts';
import { type Mark, putBackMarks } from '../marks/marks.ts';
import { finishBooks, judgeBooks } from './books/judge-books.ts';
import { findBroadcasts } from './broadcasts/broadcasts.ts';
import { findCandidates } from './candidates.ts';
import {
  bodyOfMarket,
  emitEvents,
  type MadeDelivery,
  type Pending,
  toEvent,
  toPending,
  toPendingCorrection,
  toPendingOfBooks,
  toPendingOfMarket,
} from './events.ts';
import { expireAlerts } from './expiry.ts';
import { armRules, insertFirings, judgeCandidates, lockFiring, readNewRules } from './firings.ts';
import { findCorrections, findMarketFirings } from './market-rules.ts';
import { WindowMemory } from './windows.ts';

/** The work of one transaction. The remaining tokens keep their marks for the next claim. */
interface EvaluationLimits {
  /** Also the limit of firings on markets, of corrections, and of broadcasts. */
  fired: number;
  /** Per token and condition, so that a token with a hundred thousand met alerts leaves room for the others of its shard. */
  firedPerToken: number;
  expired: number;
  /** Books that are read for alerts on them; at least two of each outcome. */
  books?: number;
}

const LIMITS: EvaluationLimits = { fired: 2_000, firedPerToken: 1_000, expired: 10_000 };

/** A firing for the log. */
interface FiredAlert {
  alertId: string;
  accountId: bigint;
  eventId: string;
  price?: string;
  observedAtMs: number;
  metAtMs: number;
  delivery?: MadeDelivery;
}

/** A correction for the log. */
interface SentCorrection {
  alertId: string;
  accountId: bigint;
  eventId: string;
  observedAtMs: number;
}

export interface Evaluation {
  fired: FiredAlert[];
  /** Events about a change of a result that an alert has reported. They change neither the state of the alert nor its cool-down. */
  corrections: SentCorrection[];
  /** Public ids of the alerts that expired unmet. */
  expired: string[];
  /** The number of new broadcasts by type. */
  broadcasts: ReadonlyMap<BroadcastEvent, number>;
  /** Subscriptions that got deliveries, for the wake-ups. */
  subscriptionPks: bigint[];
}

/** A moment of observations of a token, or of a change of a market, epoch milliseconds. */
interface Moment {
  key: bigint;
  atMs: bigint;
}

/** The claimed marks by their causes. */
interface Causes {
  /** Moments of observations of tokens, and the first one of each token. */
  observed: Moment[];
  sinceOf: ReadonlyMap<bigint, number>;
  /** The first moment of each changed market. */
  changedOf: ReadonlyMap<bigint, number>;
  /** Keys of new or changed alerts. */
  created: bigint[];
  /** Tokens whose books alerts look at. */
  books: bigint[];
}

/**
 * Evaluates claimed marks: finds the alerts and the broadcasts that they may concern, judges them, and stores firings, events and deliveries.
 * The caller must have claimed the marks in an earlier statement, under the lock of their shard. Everything commits with the claim: a process
 * that dies before leaves the marks as they were. When marks need more than `limits` allow, the same transaction reinserts them. The memory is
 * that of this process for this database.
 */
export async function evaluateAlerts(
  tx: Tx,
  marks: readonly Mark[],
  {
    limits = LIMITS,
    memory = new WindowMemory(),
  }: { limits?: EvaluationLimits | undefined; memory?: WindowMemory } = {},
): Promise<Evaluation> {
  const causes = causesOf(marks);
  const { created, changedOf } = causes;
  const limit = limits.fired;
  const newRules = await readNewRules(tx, created);
  const perhapsFinal = tokensPerhapsFinal(marks);
  const { candidates, unfinished } = await findCandidates(tx, { ...causes, perhapsFinal, limits, memory });
  const outcomes = await judgeCandidates(tx, candidates, limit);
  const markets = await findMarketFirings(tx, { changedOf, created, limit });
  const books = await judgeBooks(tx, causes.books, limits);
  const broadcasts = await findBroadcasts(tx, marks, limit);
  const firing = await fire(tx, [
    ...outcomes.fired.map(toPending),
    ...markets.fired.map(toPendingOfMarket),
    ...books.fired.map(toPendingOfBooks),
  ]);
  const expiredOnBooks = await finishBooks(tx, books);
  const corrections = await correct(tx, firing, { reported: markets.reported, changedOf, created, limit });

  const areMarketsCut = markets.isCut || corrections.isCut;
  const isCut = unfinished === 'all' || outcomes.cut.size > 0 || areMarketsCut;
  const isDone = (mark: Mark) =>
    !isCut && !unfinished.has(mark.key) && !broadcasts.isUnfinished(mark) && !(books.isCut && isOfBooks(mark));
  await armRules(tx, areMarketsCut ? [] : newRules.filter(({ pk }) => !outcomes.cut.has(pk)));
  // Met alerts must fire before the others of the token expire.
  const expired = await expireAlerts(tx, tokensPerhapsFinal(marks.filter(isDone)), limits.expired);
  const isClosed = expired.length < limits.expired;
  const unworked = marks.filter((mark) => !isDone(mark) || (mayExpire(mark) && !isClosed));
  await putBackMarks(tx, 'evaluate-alerts', unworked);

  const occurredAt = new Date();
  const ofAlerts = [...firing, ...corrections.sent].sort(byTime).map((one) => toEvent(one, occurredAt));
  const emitted = await emitEvents(tx, ofAlerts, broadcasts.broadcasts);
  const counts = new Map<BroadcastEvent, number>();
  for (const { event } of broadcasts.broadcasts) {
    if (emitted.eventIds.has(event.id)) counts.set(event.type, (counts.get(event.type) ?? 0) + 1);
  }
  return {
    fired: firing.sort(byTime).map((one) => toFired(one, emitted.deliveryOf.get(one.stored.eventId))),
    corrections: corrections.sent.map(toSent),
    expired: [...expired, ...expiredOnBooks],
    broadcasts: counts,
    subscriptionPks: emitted.subscriptionPks,
  };
}

function causesOf(marks: readonly Mark[]): Causes {
  const observed: Moment[] = [];
  const changed: Moment[] = [];
  const created: bigint[] = [];
  const books = new Set(marks.filter(isOfBooks).map(({ key }) => key));
  for (const { key, detail } of marks) {
    const cause = decodeCause(detail);
    if (cause.kind === 'observed') observed.push({ key, atMs: cause.atMs });
    if (cause.kind === 'marketChanged') changed.push({ key: marketOfKey(key), atMs: cause.atMs });
    if (cause.kind === 'alertCreated') created.push(cause.alertPk);
  }
  return { observed, sinceOf: firstMoments(observed), changedOf: firstMoments(changed), created, books: [...books] };
}

function firstMoments(moments: readonly Moment[]): Map<bigint, number> {
  const first = new Map<bigint, number>();
  for (const { key, atMs } of moments)
    first.set(key, Math.min(Number(atMs), first.get(key) ?? Number.POSITIVE_INFINITY));
  return first;
}

/** Whether alerts on the books of the token may have work: a final outcome ends them. */
function isOfBooks({ detail }: Mark): boolean {
  const { kind } = decodeCause(detail);
  return kind === 'bookSeen' || kind === 'marketFinal';
}

/** Only a market that became final, or a new alert on a final market, can leave alerts to expire. */
function mayExpire({ detail }: Mark): boolean {
  const { kind } = decodeCause(detail);
  return kind === 'marketFinal' || kind === 'alertCreated';
}

function tokensPerhapsFinal(marks: readonly Mark[]): bigint[] {
  return [...new Set(marks.filter(mayExpire).map(({ key }) => key))];
}

/** Locks the alerts and stores the firings; returns the new ones. An alert that changed since it was read does not fire. */
async function fire(tx: Tx, found: readonly Pending[]): Promise<Pending[]> {
  const pending = await lockFiring(tx, found);
  const isNew = await insertFirings(
    tx,
    pending.map(({ stored }) => stored),
  );
  return pending.filter(({ stored }) => isNew.has(stored.eventId));
}

/**
 * The corrections of results that alerts have reported, without the ones that exist. A firing that also changes a reported result becomes
 * the correction: each change has one event.
 */
async function correct(
  tx: Tx,
  firing: Pending[],
  {
    reported,
    changedOf,
    created,
    limit,
  }: {
    /** Markets on which a status alert fired before. */
    reported: readonly bigint[];
    changedOf: ReadonlyMap<bigint, number>;
    created: readonly bigint[];
    limit: number;
  },
): Promise<{ sent: Pending[]; isCut: boolean }> {
  const onStatus = firing.filter(({ row }) => row.condition === 'status');
  const firingOf = new Map(onStatus.map((one) => [`${one.stored.pk} ${one.stored.subject} ${one.stored.n}`, one]));
  const firstOf = new Map<string, number>();
  for (const { stored } of onStatus) {
    const pair = `${stored.pk} ${stored.subject}`;
    firstOf.set(pair, Math.min(stored.atMs, firstOf.get(pair) ?? stored.atMs));
  }
  const isNew = new Set(created);
  const marketPks = [...new Set([...reported, ...onStatus.map(({ stored }) => stored.subject)])];
  const found = await findCorrections(tx, marketPks, ({ pk, subject, startMs }) =>
    Math.min(
      changedOf.get(subject) ?? Number.POSITIVE_INFINITY,
      isNew.has(pk) ? Number(startMs) : Number.POSITIVE_INFINITY,
      firstOf.get(`${pk} ${subject}`) ?? Number.POSITIVE_INFINITY,
    ),
  );
  const separate: Pending[] = [];
  for (const { row, correction, isFiring } of found) {
    const { change } = correction;
    if (!isFiring) separate.push(toPendingCorrection(row, correction));
    const fired = firingOf.get(`${row.pk} ${row.subject} ${change.n}`);
    if (fired) fired.body = bodyOfMarket(row, change, correction);
  }
  const known = await knownEvents(
    tx,
    separate.map(({ dedupeKey }) => dedupeKey),
  );
  const missing = separate.filter(({ dedupeKey }) => !known.has(dedupeKey));
  return { sent: missing.slice(0, limit), isCut: missing.length > limit };
}

/** The order of the observations, in which an ordered webhook gets the events. */
function byTime({ stored: a }: Pending, { stored: b }: Pending): number {
  return a.atMs - b.atMs || (a.n < b.n ? -1 : 1);
}

function toFired({ row, stored }: Pending, delivery: MadeDelivery | undefined): FiredAlert {
  return {
    alertId: row.id,
    accountId: row.accountId,
    eventId: stored.eventId,
    ...(stored.price !== undefined && { price: stored.price }),
    observedAtMs: stored.atMs,
    metAtMs: Math.max(stored.atMs, Number(row.startMs)),
    ...(delivery && { delivery }),
  };
}

function toSent({ row, stored }: Pending): SentCorrection {
  return { alertId: row.id, accountId: row.accountId, eventId: stored.eventId, observedAtMs: stored.atMs };
}
