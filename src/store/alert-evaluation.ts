import type { AlertCondition } from '../domain/alert.ts';
import { decimal } from '../domain/decimal.ts';
import { newId } from '../domain/ids.ts';
import { priceAlertBody } from '../domain/price-alert-event.ts';
import { insertDeliveries, insertEvents, type NewEvent } from './events.ts';
import type { Mark } from './marks.ts';
import { sql, type Tx } from './tx.ts';

/*
 * What the detail of an `evaluate-alerts` mark says of its token:
 *   > 0  observations were received at this moment (epoch milliseconds)
 *   = 0  the market of the token has its final outcome
 *   < 0  an alert was created: minus its key. It carries no price; we read the latest one after claiming.
 */

/**
 * Active alerts that the claimed observations, or the price as it is now, may satisfy: two range probes per token on the
 * partial indexes, so cost follows tokens and hits, not the number of alerts. The current price is a candidate too: an
 * observation may have been received before an alert was made and committed after. Not so for a final market, whose
 * latest price is a payout.
 */
const CANDIDATES = sql(
  'alert_candidates',
  `WITH seen AS (
     SELECT o.token_id, o.price FROM unnest($1::bigint[], $2::bigint[]) AS c (token_id, at_ms)
     JOIN observation o ON o.token_id = c.token_id AND o.received_at = timestamptz 'epoch' + c.at_ms * interval '1 millisecond'
     UNION ALL
     SELECT l.token_id, l.price FROM latest_price l
     WHERE l.token_id = ANY ($1::bigint[]) AND NOT EXISTS (
       SELECT FROM outcome u JOIN market m ON m.id = u.market_id
       WHERE u.token_id = l.token_id AND m.status IN ('resolved', 'settled'))),
   bound AS MATERIALIZED (SELECT token_id, max(price) AS high, min(price) AS low FROM seen GROUP BY token_id)
   SELECT a.pk FROM bound b CROSS JOIN LATERAL (
     SELECT pk FROM alert WHERE token_id = b.token_id AND status = 'active' AND condition = 'above' AND target <= b.high) a
   UNION ALL
   SELECT a.pk FROM bound b CROSS JOIN LATERAL (
     SELECT pk FROM alert WHERE token_id = b.token_id AND status = 'active' AND condition = 'below' AND target >= b.low) a`,
);

const LOCK_ALERTS = sql(
  'lock_alerts',
  `SELECT pk FROM alert WHERE pk = ANY ($1::bigint[]) AND status = 'active' ORDER BY pk FOR UPDATE`,
);

/**
 * The price that fires each locked alert: the first observation received at or after its creation that meets it, from the
 * oldest claimed moment on; else the price as it is now. `$2`/`$3` give that moment per token; a new alert looks back to
 * its own creation.
 */
const FIRING_PRICES = sql(
  'firing_prices',
  `SELECT a.pk, a.id, a.account_id, a.condition, a.target, a.webhook_pk, t.mint, t.symbol, u.label, m.venue,
          m.venue_market_id, coalesce(o.price, l.price) AS price
   FROM alert a
   JOIN token t ON t.id = a.token_id
   LEFT JOIN outcome u ON u.token_id = a.token_id
   LEFT JOIN market m ON m.id = u.market_id
   LEFT JOIN (SELECT * FROM unnest($2::bigint[], $3::bigint[]) AS s (token_id, at_ms)) s ON s.token_id = a.token_id
   LEFT JOIN LATERAL (
     SELECT o.price FROM observation o
     WHERE o.token_id = a.token_id
       AND o.received_at >= date_trunc('milliseconds', a.created_at)
       AND (a.pk = ANY ($4::bigint[]) OR o.received_at >= timestamptz 'epoch' + s.at_ms * interval '1 millisecond')
       AND CASE a.condition WHEN 'above' THEN o.price >= a.target ELSE o.price <= a.target END
     ORDER BY o.received_at LIMIT 1) o ON true
   LEFT JOIN latest_price l ON l.token_id = a.token_id AND coalesce(m.status, '') NOT IN ('resolved', 'settled')
     AND CASE a.condition WHEN 'above' THEN l.price >= a.target ELSE l.price <= a.target END
   WHERE a.pk = ANY ($1::bigint[]) AND coalesce(o.price, l.price) IS NOT NULL
   ORDER BY a.pk`,
);

const TRIGGER_ALERTS = sql(
  'trigger_alerts',
  `UPDATE alert a SET status = 'triggered', triggered_at = now(), triggered_price = f.price, event_id = f.event_id
   FROM unnest($1::bigint[], $2::numeric[], $3::text[]) AS f (pk, price, event_id) WHERE a.pk = f.pk`,
);

/** Which active subscription hears of an alert: its own, or the account's oldest that lists `price_alert`. */
const SUBSCRIPTIONS = sql(
  'alert_subscriptions',
  `SELECT f.alert_pk, w.pk AS subscription_pk
   FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS f (alert_pk, account_id, webhook_pk)
   CROSS JOIN LATERAL (
     SELECT pk FROM webhook_subscription w
     WHERE w.account_id = f.account_id AND w.status = 'active' AND w.deleted_at IS NULL AND 'price_alert' = ANY (w.events)
       AND (f.webhook_pk IS NULL OR w.pk = f.webhook_pk)
     ORDER BY w.pk LIMIT 1) w`,
);

const EXPIRE_ALERTS = sql(
  'expire_alerts',
  `UPDATE alert SET status = 'expired' WHERE pk IN (
     SELECT a.pk FROM alert a JOIN outcome u ON u.token_id = a.token_id JOIN market m ON m.id = u.market_id
     WHERE a.token_id = ANY ($1::bigint[]) AND a.status = 'active' AND m.status IN ('resolved', 'settled')
     ORDER BY a.pk FOR UPDATE OF a)
   RETURNING pk`,
);

interface FiringRow {
  pk: string;
  id: string;
  account_id: string;
  condition: AlertCondition;
  target: string;
  webhook_pk: string | null;
  mint: string;
  symbol: string | null;
  label: string | null;
  venue: string | null;
  venue_market_id: string | null;
  price: string;
}

export interface Evaluation {
  fired: { alertId: string; eventId: string }[];
  expired: number;
  /** Subscriptions that got deliveries, for the wake-ups. */
  subscriptionPks: bigint[];
}

/**
 * Fires and expires the alerts of the claimed tokens (DESIGN section 7): the flip, the event and its deliveries are one
 * transaction, and the event's dedupe key is the alert, so an alert has exactly one event. The marks must have been
 * claimed in an earlier statement, under the lock of their shard.
 */
export async function evaluateAlerts(tx: Tx, marks: readonly Mark[]): Promise<Evaluation> {
  const observed = marks.filter((mark) => mark.detail > 0n);
  const created = marks.filter((mark) => mark.detail < 0n).map((mark) => -mark.detail);
  const candidates = await tx.query<{ pk: string }>(CANDIDATES, [
    observed.map((mark) => mark.key),
    observed.map((mark) => mark.detail),
  ]);
  const suspects = [...new Set([...candidates.map((row) => BigInt(row.pk)), ...created])];
  const rows = await firingRows(tx, suspects, observed, created);
  const fired = rows.map((row) => ({ row, eventId: newId('evt') }));
  const subscriptionPks = await tell(tx, fired);
  // Only a market that became final, or an alert made on one that already was, can leave alerts to expire.
  const perhapsFinal = [...new Set(marks.filter((mark) => mark.detail <= 0n).map((mark) => mark.key))];
  const expired = perhapsFinal.length === 0 ? [] : await tx.query(EXPIRE_ALERTS, [perhapsFinal]);
  return {
    fired: fired.map(({ row, eventId }) => ({ alertId: row.id, eventId })),
    expired: expired.length,
    subscriptionPks,
  };
}

async function firingRows(
  tx: Tx,
  suspects: readonly bigint[],
  observed: readonly Mark[],
  created: readonly bigint[],
): Promise<FiringRow[]> {
  if (suspects.length === 0) return [];
  const locked = await tx.query<{ pk: string }>(LOCK_ALERTS, [suspects]);
  if (locked.length === 0) return [];
  const since = new Map<bigint, bigint>();
  for (const { key, detail } of observed) {
    const oldest = since.get(key);
    if (oldest === undefined || detail < oldest) since.set(key, detail);
  }
  return tx.query<FiringRow>(FIRING_PRICES, [
    locked.map((row) => BigInt(row.pk)),
    [...since.keys()],
    [...since.values()],
    created,
  ]);
}

async function tell(tx: Tx, fired: readonly { row: FiringRow; eventId: string }[]): Promise<bigint[]> {
  if (fired.length === 0) return [];
  const occurredAt = new Date();
  await tx.query(TRIGGER_ALERTS, [
    fired.map(({ row }) => row.pk),
    fired.map(({ row }) => row.price),
    fired.map(({ eventId }) => eventId),
  ]);
  const events = fired.map(
    ({ row, eventId }): NewEvent => ({
      id: eventId,
      accountId: BigInt(row.account_id),
      type: 'price_alert',
      dedupeKey: `alert:${row.id}`,
      body: priceAlertBody({
        eventId,
        occurredAt,
        alertId: row.id,
        tokenMint: row.mint,
        tokenSymbol: row.symbol ?? row.label ?? row.mint,
        condition: row.condition,
        targetPrice: decimal(row.target),
        currentPrice: decimal(row.price),
        ...(row.venue !== null && { venue: row.venue }),
        ...(row.venue_market_id !== null && { marketId: row.venue_market_id }),
      }),
    }),
  );
  const eventPks = await insertEvents(tx, events);
  const subscriptions = await tx.query<{ alert_pk: string; subscription_pk: string }>(SUBSCRIPTIONS, [
    fired.map(({ row }) => row.pk),
    fired.map(({ row }) => row.account_id),
    fired.map(({ row }) => row.webhook_pk),
  ]);
  const subscriptionOf = new Map(subscriptions.map((row) => [row.alert_pk, BigInt(row.subscription_pk)]));
  const deliveries = fired.flatMap(({ row, eventId }) => {
    const eventPk = eventPks.get(eventId);
    const subscriptionPk = subscriptionOf.get(row.pk);
    return eventPk === undefined || subscriptionPk === undefined ? [] : [{ eventPk, subscriptionPk }];
  });
  await insertDeliveries(tx, deliveries);
  return [...new Set(deliveries.map((delivery) => delivery.subscriptionPk))];
}
