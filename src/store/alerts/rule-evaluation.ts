import { type Correction, isFinal, knownPayouts, type MarketChange } from '../../domain/alerts/market-rule.ts';
import { type MarketRuleEvent, marketRuleBody, ruleBody } from '../../domain/alerts/rule-event.ts';
import { decimal } from '../../domain/values/decimal.ts';
import { derivedId } from '../../domain/values/ids.ts';
import type { Tx } from '../db/tx.ts';
import { knownEvents } from '../deliveries/events.ts';
import { type EvaluationCause, marketOfKey } from '../marks/detail.ts';
import { type AlertDelivery, type AlertEvent, insertAlertEvents, type MadeDelivery } from './events.ts';
import { findCorrections, findMarketFirings, type MarketFiring, type MarketRuleRow } from './market-rules.ts';
import type { RuleFields } from './rule-rows.ts';
import { armRules, findRuleFirings, insertFirings, lockRules, type NewFiring, type RuleFiring } from './rules.ts';
import type { WindowMemory } from './window-memory.ts';

export type ClaimedCause = EvaluationCause & { tokenId: bigint };

/** A firing for the log. */
export interface FiredRule {
  alertId: string;
  accountId: bigint;
  eventId: string;
  price?: string;
  observedAtMs: number;
  metAtMs: number;
  delivery?: MadeDelivery;
}

/** A correction for the log. */
export interface SentCorrection {
  alertId: string;
  accountId: bigint;
  eventId: string;
  observedAtMs: number;
}

interface RuleEvaluation {
  /** Without their deliveries. */
  fired: FiredRule[];
  /** Events that correct a reported result. They change neither the state of the alert nor its cool-down. */
  corrections: SentCorrection[];
  /** The deliveries that the events need, for `insertDeliveries`. */
  deliveries: AlertDelivery[];
  /** Whether the limit left firings, for which the marks must be processed again. */
  isCut: boolean;
}

/** Evaluates the alerts with a probe for claimed causes; fires at most `limit`. All of it commits with the claim. */
export async function evaluateRules(
  tx: Tx,
  causes: readonly ClaimedCause[],
  limit: number,
  memory: WindowMemory,
): Promise<RuleEvaluation> {
  const created = causes.flatMap((cause) => (cause.kind === 'alertCreated' ? [cause.alertPk] : []));
  const rules = await findRuleFirings(tx, { sinceOf: firstMoments(causes, 'observed'), created, limit, memory });
  const changedOf = new Map([...firstMoments(causes, 'marketChanged')].map(([key, atMs]) => [marketOfKey(key), atMs]));
  const markets = await findMarketFirings(tx, { changedOf, created, limit });
  const found = [...rules.fired.map(toPending), ...markets.fired.map(toPendingOfMarket)];
  const current = await lockRules(
    tx,
    found.map(({ row }) => row),
  );
  const pending = found.filter(({ row }) => current.has(row.pk));
  const isNew = await insertFirings(
    tx,
    pending.map(({ stored }) => stored),
  );
  const occurredAt = new Date();
  const firing = pending.filter(({ stored }) => isNew.has(stored.eventId)).sort(byTime);
  const corrections = await correct(tx, firing, { reported: markets.reported, changedOf, created, limit });
  const deliveries = await insertAlertEvents(
    tx,
    [...firing, ...corrections.sent].sort(byTime).map((one): AlertEvent => toEvent(one, occurredAt)),
  );
  const areMarketsCut = markets.isCut || corrections.isCut;
  await armRules(tx, areMarketsCut ? [] : rules.armed);
  return {
    fired: firing.map(toFired),
    corrections: corrections.sent.map(({ row, stored }) => ({
      alertId: row.id,
      accountId: row.accountId,
      eventId: stored.eventId,
      observedAtMs: stored.atMs,
    })),
    deliveries,
    isCut: rules.isCut || areMarketsCut,
  };
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

function firstMoments(causes: readonly ClaimedCause[], kind: 'observed' | 'marketChanged'): Map<bigint, number> {
  const first = new Map<bigint, number>();
  for (const cause of causes) {
    if (cause.kind !== kind) continue;
    const atMs = Number(cause.atMs);
    first.set(cause.tokenId, Math.min(atMs, first.get(cause.tokenId) ?? atMs));
  }
  return first;
}

interface Pending {
  row: RuleFields;
  stored: NewFiring;
  dedupeKey: string;
  body(stamp: { eventId: string; occurredAt: Date }): string;
}

/** The identity of a firing. The time belongs to it, because after a restore the numbers of observations may repeat. */
function keyOf(alertId: string, { subject, n, atMs }: { subject: bigint; n: bigint; atMs: number }): string {
  return `alert:${alertId}:${subject}:${n}:${atMs}`;
}

function toPending({ row, firing }: RuleFiring): Pending {
  const { subject } = row;
  const dedupeKey = keyOf(row.id, { ...firing, subject });
  return {
    row,
    dedupeKey,
    stored: { ...firing, pk: row.pk, subject, eventId: derivedId('evt', dedupeKey) },
    body: (stamp) =>
      ruleBody({
        ...stamp,
        alertId: row.id,
        name: row.name ?? undefined,
        tokenMint: row.tokenMint,
        tokenSymbol: row.symbol ?? row.label ?? row.tokenMint,
        condition: row.condition,
        threshold: row.target === null ? undefined : decimal(row.target),
        direction: row.direction ?? undefined,
        unit: row.unit ?? undefined,
        windowSeconds: row.windowSeconds ?? undefined,
        windows: row.windows ?? undefined,
        venue: row.venue ?? undefined,
        marketId: row.venueMarketId ?? undefined,
        title: row.title ?? undefined,
        firing,
      }),
  };
}

function toPendingOfMarket({ row, change }: MarketFiring): Pending {
  return { ...toPendingChange({ row, change }, ''), body: bodyOfMarket(row, change) };
}

/** The event of a change that corrects a reported result and is no firing. */
function toPendingCorrection(row: MarketRuleRow, correction: Correction): Pending {
  const { change } = correction;
  return { ...toPendingChange({ row, change }, ':correction'), body: bodyOfMarket(row, change, correction) };
}

function toPendingChange({ row, change }: MarketFiring, suffix: string): Omit<Pending, 'body'> {
  const { pk, subject } = row;
  const { n, atMs } = change;
  const dedupeKey = `${keyOf(row.id, { ...change, subject })}${suffix}`;
  return { row, dedupeKey, stored: { pk, subject, n, atMs, eventId: derivedId('evt', dedupeKey) } };
}

function bodyOfMarket(row: MarketRuleRow, change: MarketChange, correction?: Correction): Pending['body'] {
  return (stamp) =>
    marketRuleBody({
      ...stamp,
      alertId: row.id,
      name: row.name ?? undefined,
      condition: row.condition as MarketRuleEvent['condition'],
      tokenMint: row.tokenMint ?? undefined,
      venue: row.venue,
      marketId: row.venueMarketId,
      title: row.title,
      status: change.status,
      previousStatus: change.former ?? undefined,
      winningOutcomeId: isFinal(change.status) ? (change.winner ?? undefined) : undefined,
      atMs: change.atMs,
      corrected: correction && { previousWinner: correction.previousWinner, payouts: knownPayouts(change) },
    });
}

function toEvent({ row, stored, dedupeKey, body }: Pending, occurredAt: Date): AlertEvent {
  return {
    id: stored.eventId,
    accountId: row.accountId,
    type: 'price_alert',
    dedupeKey,
    webhookPk: row.webhookPk,
    body: body({ eventId: stored.eventId, occurredAt }),
  };
}

function toFired({ row, stored }: Pending): FiredRule {
  return {
    alertId: row.id,
    accountId: row.accountId,
    eventId: stored.eventId,
    ...(stored.price !== undefined && { price: stored.price }),
    observedAtMs: stored.atMs,
    metAtMs: Math.max(stored.atMs, Number(row.startMs)),
  };
}
