import type { Logger } from './logger.ts';

/** A line for each delivery that will not be made, so that the story of its alert has an end. */
export function logCancelledDeliveries(
  log: Logger,
  webhookId: string,
  reason: string,
  cancelled: readonly { deliveryId: string; eventId: string; alertId?: string }[],
): void {
  for (const ids of cancelled) log.info({ ...ids, webhookId, reason }, 'delivery cancelled');
}
