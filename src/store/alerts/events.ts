import { type BookConditionName, thresholdField } from '../../domain/alerts/conditions.ts';
import {
  type Correction,
  isFinal,
  knownPayouts,
  type MarketChange,
  reportedState,
} from '../../domain/alerts/market-rule.ts';
import { bookRuleBody, type MarketRuleEvent, marketRuleBody, ruleBody } from '../../domain/alerts/rule-event.ts';
import { decimal } from '../../domain/values/decimal.ts';
import { derivedId } from '../../domain/values/ids.ts';
import type { BroadcastEvent } from '../../domain/webhooks/event.ts';
import { sql, type Tx } from '../db/tx.ts';
import { insertDeliveries, insertEvents, type NewEvent } from '../deliveries/events.ts';
import type { BookRuleFiring } from './books/judge-books.ts';
import type { NewFiring, RuleFiring } from './firings.ts';
import type { MarketFiring, MarketRuleRow } from './market-rules.ts';
import type { RuleFields } from './rules.ts';

/** A firing or a correction before its event. */
export interface Pending {
  row: RuleFields;
  stored: NewFiring;
  /** The alert is locked since it was read. */
  isLocked?: true;
  dedupeKey: string;
  body(stamp: { eventId: string; occurredAt: Date }): string;
}

/**
 * The identity of a firing. An alert of the specification fires once, so its id is enough: after a restore the first observation that meets
 * it arrives again at another time and maybe with another price, and receivers must recognize the event all the same. To the others the time
 * belongs, because after a restore the numbers of observations may repeat.
 */
function keyOf(
  { id, isSpecified }: Pick<RuleFields, 'id' | 'isSpecified'>,
  { subject, n, atMs }: { subject: bigint; n: bigint; atMs: number },
): string {
  return isSpecified ? `alert:${id}` : `alert:${id}:${subject}:${n}:${atMs}`;
}

export function toPending({ row, firing }: RuleFiring): Pending {
  const { pk, subject, isSpecified } = row;
  const { n, atMs, price, fromPrice, value } = firing;
  const dedupeKey = keyOf(row, { subject, n, atMs });
  const eventId = derivedId('evt', dedupeKey);
  return {
    row,
    dedupeKey,
    stored: { pk, subject, n, atMs, price, fromPrice, value, eventId, isSpecified },
    // A spread of the stamp would cost more than the rest of the body.
    body: ({ eventId, occurredAt }) =>
      ruleBody({
        eventId,
        occurredAt,
        alertId: row.id,
        name: row.name ?? undefined,
        tokenMint: row.tokenMint,
        tokenSymbol: row.symbol ?? row.label ?? row.tokenMint,
        condition: row.condition,
        threshold: row.target === null ? undefined : decimal(row.target),
        thresholdField: thresholdField({ condition: row.condition, windows: row.windows ?? undefined }),
        direction: row.direction ?? undefined,
        unit: row.unit ?? undefined,
        windowSeconds: row.windowSeconds ?? undefined,
        windows: row.windows ?? undefined,
        venue: row.venue ?? undefined,
        marketId: row.venueMarketId ?? undefined,
        title: isSpecified ? undefined : (row.title ?? undefined),
        firing: isSpecified ? { price: firing.price } : firing,
      }),
  };
}

export function toPendingOfBooks({ row, firing }: BookRuleFiring): Pending {
  const { pk, subject } = row;
  const { n, atMs, price, value } = firing;
  const dedupeKey = keyOf(row, { subject, n, atMs });
  const eventId = derivedId('evt', dedupeKey);
  return {
    row,
    dedupeKey,
    isLocked: true,
    stored: { pk, subject, n, atMs, price, value, eventId, isSpecified: false },
    body: (stamp) =>
      bookRuleBody({
        ...stamp,
        alertId: row.id,
        name: row.name ?? undefined,
        condition: row.condition as BookConditionName,
        outcomes: row.legs.map(({ tokenMint, symbol, label, venue, venueMarketId, title }) => ({
          tokenMint,
          tokenSymbol: symbol ?? label ?? tokenMint,
          venue,
          marketId: venueMarketId,
          title,
        })),
        side: row.side ?? undefined,
        size: row.size === null ? undefined : decimal(row.size),
        notional: row.notional === null ? undefined : decimal(row.notional),
        threshold: decimal(row.target ?? '0'),
        direction: row.direction ?? undefined,
        firing,
      }),
  };
}

export function toPendingOfMarket({ row, change }: MarketFiring): Pending {
  return { ...toPendingChange({ row, change }, ''), body: bodyOfMarket(row, change) };
}

/** The event of a change that corrects a reported result and is no firing. */
export function toPendingCorrection(row: MarketRuleRow, correction: Correction): Pending {
  const { change } = correction;
  return { ...toPendingChange({ row, change }, ':correction'), body: bodyOfMarket(row, change, correction) };
}

function toPendingChange({ row, change }: MarketFiring, suffix: string): Omit<Pending, 'body'> {
  const { pk, subject, isSpecified } = row;
  const { n, atMs } = change;
  const dedupeKey = `${keyOf(row, { subject, n, atMs })}${suffix}`;
  return { row, dedupeKey, stored: { pk, subject, n, atMs, isSpecified, eventId: derivedId('evt', dedupeKey) } };
}

export function bodyOfMarket(row: MarketRuleRow, change: MarketChange, correction?: Correction): Pending['body'] {
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
      resolutionState: reportedState(change, row.states),
      atMs: change.atMs,
      corrected: correction && { previousWinner: correction.previousWinner, payouts: knownPayouts(change) },
    });
}

/** An event of an alert, for the webhook that the alert names or for the default one. */
interface AlertEvent extends NewEvent {
  /** The subscription that the alert names. */
  webhookPk: bigint | null;
}

export function toEvent({ row, stored, dedupeKey, body }: Pending, occurredAt: Date): AlertEvent {
  return {
    id: stored.eventId,
    accountId: row.accountId,
    type: 'price_alert',
    dedupeKey,
    webhookPk: row.webhookPk,
    body: body({ eventId: stored.eventId, occurredAt }),
  };
}

/** An event of a fact for every account, with the subscriptions of one account. */
export interface Broadcast {
  event: NewEvent & { type: BroadcastEvent };
  subscriptionPks: readonly bigint[];
}

export interface MadeDelivery {
  deliveryId: string;
  webhookId: string;
}

interface Emitted {
  /** The ids of the new events. */
  eventIds: ReadonlySet<string>;
  /** The delivery of each new event of an alert. */
  deliveryOf: ReadonlyMap<string, MadeDelivery>;
  /** Subscriptions that got deliveries, for the wake-ups. */
  subscriptionPks: bigint[];
}

/** Selects the active subscription of each kind of event: the named one, or the account's oldest that lists its type. */
const SUBSCRIPTIONS = sql(
  'alert_subscriptions',
  `SELECT f.kind, w.pk AS subscription_pk, w.id AS webhook_id
   FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[]) AS f (kind, account_id, webhook_pk, type)
   CROSS JOIN LATERAL (
     SELECT pk, id FROM webhook_subscription w
     WHERE w.account_id = f.account_id AND w.status = 'active' AND w.deleted_at IS NULL AND f.type = ANY (w.events)
       AND (f.webhook_pk IS NULL OR w.pk = f.webhook_pk)
     ORDER BY w.pk LIMIT 1) w`,
);

interface SubscriptionRow {
  kind: string;
  subscriptionPk: bigint;
  webhookId: string;
}

/**
 * Inserts events with a delivery for each webhook, in their order: an ordered webhook gets them so. Call it once, after every lock of a row:
 * it locks the ordered webhooks in one order, so that two lanes cannot deadlock.
 */
export async function emitEvents(
  tx: Tx,
  ofAlerts: readonly AlertEvent[],
  broadcasts: readonly Broadcast[] = [],
): Promise<Emitted> {
  const eventPks = await insertEvents(tx, [
    ...ofAlerts.map(({ webhookPk, ...event }) => ({ ...event, ...(webhookPk !== null && { targetPk: webhookPk }) })),
    ...broadcasts.map(({ event }) => event),
  ]);
  const subscriptionOf = await findSubscriptions(tx, ofAlerts);
  const wanted = [
    ...ofAlerts.map(({ id }) => ({ id, subscriptionPks: [subscriptionOf.get(id)?.subscriptionPk ?? []].flat() })),
    ...broadcasts.map(({ event, subscriptionPks }) => ({ id: event.id, subscriptionPks })),
  ].flatMap(({ id, subscriptionPks }) => {
    const eventPk = eventPks.get(id);
    return eventPk === undefined ? [] : subscriptionPks.map((subscriptionPk) => ({ eventPk, subscriptionPk }));
  });
  const made = new Map((await insertDeliveries(tx, wanted)).map(({ id, eventPk }) => [eventPk, id]));
  const deliveryOf = new Map<string, MadeDelivery>();
  for (const [eventId, { webhookId }] of subscriptionOf) {
    const deliveryId = made.get(eventPks.get(eventId) ?? 0n);
    if (deliveryId !== undefined) deliveryOf.set(eventId, { deliveryId, webhookId });
  }
  return {
    eventIds: new Set(eventPks.keys()),
    deliveryOf,
    subscriptionPks: [...new Set(wanted.map(({ subscriptionPk }) => subscriptionPk))],
  };
}

/** The subscription of each event, as far as its account has one for it. Thousands of events may have the same. */
async function findSubscriptions(tx: Tx, events: readonly AlertEvent[]): Promise<Map<string, SubscriptionRow>> {
  if (events.length === 0) return new Map();
  const kindOf = ({ accountId, webhookPk, type }: AlertEvent) => `${accountId} ${webhookPk} ${type}`;
  const kinds = [...new Map(events.map((event) => [kindOf(event), event]))];
  const rows = await tx.query<SubscriptionRow>(SUBSCRIPTIONS, [
    kinds.map(([kind]) => kind),
    kinds.map(([, { accountId }]) => accountId),
    kinds.map(([, { webhookPk }]) => webhookPk),
    kinds.map(([, { type }]) => type),
  ]);
  const rowOf = new Map(rows.map((row) => [row.kind, row]));
  return new Map(
    events.flatMap((event) => {
      const row = rowOf.get(kindOf(event));
      return row ? [[event.id, row] as const] : [];
    }),
  );
}
