import type { AlertCondition } from '../../domain/alerts/conditions.ts';
import { priceAlertBody } from '../../domain/alerts/price-alert-event.ts';
import { decimal } from '../../domain/values/decimal.ts';
import { derivedId } from '../../domain/values/ids.ts';
import type { BroadcastEvent } from '../../domain/webhooks/event.ts';
import { sql, type Tx } from '../db/tx.ts';
import { insertDeliveries } from '../deliveries/events.ts';
import { decodeCause } from '../marks/detail.ts';
import { type Mark, putBackMarks } from '../marks/marks.ts';
import { insertBroadcasts } from './broadcasts.ts';
import { type AlertDelivery, insertAlertEvents } from './events.ts';
import { expireAlerts, findHits } from './hits.ts';
import { evaluateRules, type FiredRule, type SentCorrection } from './rule-evaluation.ts';
import { WindowMemory } from './window-memory.ts';

/** The work of one transaction. The remaining tokens keep their marks for the next claim. */
export interface EvaluationLimits {
  /** Also the limit of broadcasts. */
  fired: number;
  /** Per token and condition, so that a token with a hundred thousand met alerts leaves room for the others of its shard. */
  firedPerToken: number;
  expired: number;
}

const LIMITS: EvaluationLimits = { fired: 2_000, firedPerToken: 1_000, expired: 10_000 };

/** An alert that names a deleted webhook counts as an alert without one: an older process deletes webhooks without a look at alerts. */
const LOCK_ALERTS = sql(
  'lock_alerts',
  `SELECT a.pk, a.id, a.account_id, a.condition, a.target, a.name, w.pk AS webhook_pk, a.created_at,
     t.mint AS token_mint, t.symbol, u.label, m.venue, m.venue_market_id
   FROM alert a
   JOIN token t ON t.id = a.token_id
   LEFT JOIN webhook_subscription w ON w.pk = a.webhook_pk AND w.deleted_at IS NULL
   LEFT JOIN outcome u ON u.token_id = a.token_id
   LEFT JOIN market m ON m.id = u.market_id
   WHERE a.pk = ANY ($1::bigint[]) AND a.status = 'active' AND a.probe IS NULL ORDER BY a.pk FOR UPDATE OF a`,
);

const TRIGGER_ALERTS = sql(
  'trigger_alerts',
  `UPDATE alert a SET status = 'triggered', triggered_at = now(), triggered_price = f.price, event_id = f.event_id
   FROM unnest($1::bigint[], $2::numeric[], $3::text[]) AS f (pk, price, event_id) WHERE a.pk = f.pk`,
);

interface AlertRow {
  pk: bigint;
  id: string;
  accountId: bigint;
  condition: AlertCondition;
  target: string;
  name: string | null;
  webhookPk: bigint | null;
  createdAt: Date;
  tokenMint: string;
  symbol: string | null;
  label: string | null;
  venue: string | null;
  venueMarketId: string | null;
}

/** A met alert: the price that met it (`numeric` text), the time of its receipt, and the event. */
interface Fired extends AlertRow {
  price: string;
  atMs: number;
  eventId: string;
}

export interface Evaluation {
  fired: FiredRule[];
  /** Events about a change of a result that an alert has reported. */
  corrections: SentCorrection[];
  /** Public ids of the alerts that expired unmet. */
  expired: string[];
  /** The number of new broadcasts by type. */
  broadcasts: ReadonlyMap<BroadcastEvent, number>;
  /** Subscriptions that got deliveries, for the wake-ups. */
  subscriptionPks: bigint[];
}

/**
 * Fires and expires the alerts of the claimed tokens, and emits the broadcasts of the claimed marks. Status, event and deliveries commit
 * in one transaction, and the dedupe key of the event is the alert, so an alert has exactly one event. The caller must have claimed the
 * marks in an earlier statement, under the lock of their shard. When tokens need more than `limits` allow, the same transaction reinserts
 * their marks, so a crash loses nothing. The memory is that of this process for this database.
 */
export async function evaluateAlerts(
  tx: Tx,
  marks: readonly Mark[],
  {
    limits = LIMITS,
    memory = new WindowMemory(),
  }: { limits?: EvaluationLimits | undefined; memory?: WindowMemory } = {},
): Promise<Evaluation> {
  const causes = marks.map(({ key, detail }) => ({ tokenId: key, ...decodeCause(detail) }));
  const { hits, unfinished } = await findHits(tx, {
    observed: causes.filter((cause) => cause.kind === 'observed'),
    created: causes.flatMap((cause) => (cause.kind === 'alertCreated' ? [cause.alertPk] : [])),
    perhapsFinal: tokensPerhapsFinal(marks),
    limit: limits.fired,
    limitPerToken: limits.firedPerToken,
  });
  const rules = await evaluateRules(tx, causes, limits.fired, memory);
  const broadcasts = await insertBroadcasts(tx, marks, limits.fired);
  const isDone = (mark: Mark) =>
    unfinished !== 'all' && !unfinished.has(mark.key) && !rules.isCut && !broadcasts.isUnfinished(mark);
  const hitOf = new Map(hits.map((hit) => [hit.pk, hit]));
  const locked = hits.length === 0 ? [] : await tx.query<AlertRow>(LOCK_ALERTS, [[...hitOf.keys()]]);
  const fired = locked.flatMap((row): Fired[] => {
    const hit = hitOf.get(row.pk);
    return hit === undefined
      ? []
      : [{ ...row, price: hit.price, atMs: hit.atMs, eventId: derivedId('evt', eventKey(row)) }];
  });
  const alerts = await fireAlerts(
    tx,
    fired.sort((a, b) => a.atMs - b.atMs),
  );

  // Met alerts must fire before the others of the token expire.
  const closing = tokensPerhapsFinal(marks.filter(isDone));
  const expired = closing.length === 0 ? [] : await expireAlerts(tx, closing, limits.expired);
  const isClosed = expired.length < limits.expired;
  const unworked = marks.filter((mark) => !isDone(mark) || (mayExpire(mark) && !isClosed));
  await putBackMarks(tx, 'evaluate-alerts', unworked);
  // One call, after every lock of a row: it locks the ordered webhooks in one order, so that two lanes cannot deadlock.
  const ofAlerts = inOrder(
    [...rules.deliveries, ...alerts.deliveries],
    [...rules.fired, ...rules.corrections, ...alerts.fired],
  );
  const deliveries = [...ofAlerts, ...broadcasts.deliveries];
  const deliveryOf = new Map((await insertDeliveries(tx, deliveries)).map(({ id, eventPk }) => [eventPk, id]));
  const wantedOf = new Map(ofAlerts.map((delivery) => [delivery.eventId, delivery]));
  const withDelivery = (rule: FiredRule): FiredRule => {
    const wanted = wantedOf.get(rule.eventId);
    const deliveryId = deliveryOf.get(wanted?.eventPk ?? 0n);
    return wanted && deliveryId !== undefined
      ? { ...rule, delivery: { deliveryId, webhookId: wanted.webhookId } }
      : rule;
  };
  return {
    fired: [...alerts.fired, ...rules.fired].map(withDelivery),
    corrections: rules.corrections,
    broadcasts: broadcasts.events,
    subscriptionPks: [...new Set(deliveries.map(({ subscriptionPk }) => subscriptionPk))],
    expired,
  };
}

/** An ordered webhook gets the events that one evaluation emits in the order of their observations. */
function inOrder(
  deliveries: AlertDelivery[],
  fired: readonly Pick<FiredRule, 'eventId' | 'observedAtMs'>[],
): AlertDelivery[] {
  const atOf = new Map(fired.map(({ eventId, observedAtMs }) => [eventId, observedAtMs]));
  return deliveries.sort((a, b) => (atOf.get(a.eventId) ?? 0) - (atOf.get(b.eventId) ?? 0));
}

/** Only a market that became final, or a new alert on a final market, can leave alerts to expire. */
function mayExpire({ detail }: Mark): boolean {
  const { kind } = decodeCause(detail);
  return kind === 'marketFinal' || kind === 'alertCreated';
}

function tokensPerhapsFinal(marks: readonly Mark[]): bigint[] {
  return [...new Set(marks.filter(mayExpire).map(({ key }) => key))];
}

/**
 * The identity of the event of an alert. An alert fires once, so its id is enough. After a restore the first observation that meets the
 * alert arrives again at another time and maybe with another price, and receivers must recognize the event all the same.
 */
function eventKey({ id }: Pick<AlertRow, 'id'>): string {
  return `alert:${id}`;
}

async function fireAlerts(
  tx: Tx,
  fired: readonly Fired[],
): Promise<{ fired: FiredRule[]; deliveries: AlertDelivery[] }> {
  if (fired.length === 0) return { fired: [], deliveries: [] };
  const occurredAt = new Date();
  await tx.query(TRIGGER_ALERTS, [
    fired.map((row) => row.pk),
    fired.map((row) => row.price),
    fired.map((row) => row.eventId),
  ]);
  const deliveries = await insertAlertEvents(
    tx,
    fired.map((row) => ({
      id: row.eventId,
      accountId: row.accountId,
      type: 'price_alert' as const,
      dedupeKey: eventKey(row),
      webhookPk: row.webhookPk,
      body: priceAlertBody({
        eventId: row.eventId,
        occurredAt,
        alertId: row.id,
        tokenMint: row.tokenMint,
        tokenSymbol: row.symbol ?? row.label ?? row.tokenMint,
        condition: row.condition,
        targetPrice: decimal(row.target),
        currentPrice: decimal(row.price),
        ...(row.name !== null && { name: row.name }),
        ...(row.venue !== null && { venue: row.venue }),
        ...(row.venueMarketId !== null && { marketId: row.venueMarketId }),
      }),
    })),
  );
  return { fired: fired.map(toFiredAlert), deliveries };
}

function toFiredAlert({ id, accountId, eventId, price, atMs, createdAt }: Fired): FiredRule {
  return {
    alertId: id,
    accountId,
    eventId,
    price,
    observedAtMs: atMs,
    metAtMs: Math.max(atMs, createdAt.getTime()),
  };
}
