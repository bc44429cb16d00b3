/** SQL of the alert that event `e` tells of, NULL when it tells of something else. The key of such an event names it. */
export const ALERT_OF_EVENT = `CASE WHEN e.type = 'price_alert' THEN nullif(split_part(e.dedupe_key, ':', 2), '') END`;

/** Of so many deliveries that are cancelled at once we say which; more are rare, and their rows say it too. */
export const MAX_TOLD = 10_000;

/** A delivery that will not be made: what an operator must be able to find. */
export interface CancelledDelivery {
  deliveryId: string;
  eventId: string;
  alertId?: string;
}

export interface CancelledRow {
  subscriptionPk: bigint;
  deliveryId: string;
  eventId: string;
  alertId: string | null;
}

export function toCancelled({ deliveryId, eventId, alertId }: CancelledRow): CancelledDelivery {
  return { deliveryId, eventId, ...(alertId !== null && { alertId }) };
}

/** Is told, after the commit, what a change of a subscription cancelled. */
export type OnCancelled = (cancelled: readonly CancelledDelivery[]) => void;
