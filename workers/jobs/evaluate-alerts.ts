import { type Evaluation, evaluateAlerts } from '../../src/store/alerts/evaluate.ts';
import { defineJob, type JobContext } from '../process/define.ts';
import { runStage } from '../process/staging.ts';

/** Marks per claim, the oldest first: an alert fires on the first observation that meets it. */
const CLAIM_LIMIT = 4_000;
/** Prices arrive from several processes; each claim costs a dozen statements. */
const GATHER_MS = 3;

/** Observations to events. */
export const evaluateAlertsJob = defineJob('evaluate-alerts', ({ lane }, context) =>
  runStage(context, {
    stage: 'evaluate-alerts',
    lane,
    claim: { limit: CLAIM_LIMIT, order: 'oldest' },
    gatherMs: GATHER_MS,
    work: (tx, marks) => evaluateAlerts(tx, marks, { memory: context.windows }),
    onDone: (evaluation) => reportAlerts(context, evaluation),
  }),
);

/** One line per alert, so that a search finds one alert among ten thousand that fired at once. */
function reportAlerts(
  { producer, metrics, log, now }: JobContext,
  { fired, corrections, expired, broadcasts, subscriptionPks }: Evaluation,
): void {
  producer.wakeDeliveries(subscriptionPks);
  metrics.alertsFired.inc(fired.length);
  metrics.alertsExpired.inc(expired.length);
  for (const [type, events] of broadcasts) metrics.broadcasts.inc({ type }, events);
  for (const { alertId, accountId, eventId, price, observedAtMs, metAtMs, delivery } of fired) {
    const latencyMs = Math.max(0, now() - metAtMs);
    metrics.triggerLatency.observe(latencyMs / 1000);
    const observedAt = new Date(observedAtMs).toISOString();
    log.info(
      { alertId, accountId: String(accountId), eventId, ...delivery, price, observedAt, latencyMs },
      'alert fired',
    );
  }
  for (const { alertId, accountId, eventId, observedAtMs } of corrections) {
    const observedAt = new Date(observedAtMs).toISOString();
    log.info({ alertId, accountId: String(accountId), eventId, observedAt }, 'reported result corrected');
  }
  for (const alertId of expired) log.info({ alertId }, 'alert expired');
}
