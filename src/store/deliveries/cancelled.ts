/** SQL of the alert of event `e`, NULL for other events. The dedupe key of an alert event contains the alert id. */
export const ALERT_OF_EVENT = `CASE WHEN e.type = 'price_alert' THEN nullif(split_part(e.dedupe_key, ':', 2), '') END`;

/** The maximum number of cancelled deliveries that one change reports for the log. Their rows show the status in any case. */
export const MAX_LOGGED_CANCELLATIONS = 10_000;

/** A cancelled delivery, as the log reports it to operators. */
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

/** Receives, after the commit, the deliveries that a change of a subscription cancelled. */
export type OnCancelled = (cancelled: readonly CancelledDelivery[]) => void;
