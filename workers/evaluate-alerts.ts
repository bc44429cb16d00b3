import { evaluateAlerts } from '../src/store/alert-evaluation.ts';
import { defineJob } from './define.ts';
import { runStage } from './staging.ts';

/** Marks per claim. Oldest first: an alert fires on the first observation that meets it. */
const CLAIM_LIMIT = 1_000;

/** Observations to events. */
export const evaluateAlertsJob = defineJob('evaluate-alerts', ({ lane }, context) =>
  runStage(context, {
    stage: 'evaluate-alerts',
    lane,
    claim: { limit: CLAIM_LIMIT, order: 'oldest' },
    work: evaluateAlerts,
    onDone: ({ fired, subscriptionPks }) => {
      context.producer.wakeDeliveries(subscriptionPks);
      context.metrics.alertsFired.inc(fired.length);
      for (const { alertId, eventId } of fired) context.log.info({ alertId, eventId }, 'alert fired');
    },
  }),
);
