import type { Logger } from './logger.ts';

/** A log line for each cancelled delivery, so that the log shows the end of each alert. */
export function logCancelledDeliveries(
  log: Logger,
  webhookId: string,
  reason: string,
  cancelled: readonly { deliveryId: string; eventId: string; alertId?: string }[],
): void {
  for (const ids of cancelled) log.info({ ...ids, webhookId, reason }, 'delivery cancelled');
}
