import { setTimeout as delay } from 'node:timers/promises';
import { asError } from '../src/domain/errors.ts';
import type { EventType } from '../src/domain/event.ts';
import { InvalidSecretError } from '../src/domain/signature.ts';
import {
  type ClaimedDelivery,
  type ClaimedSubscription,
  claimDue,
  finishAttempt,
  MAX_IN_FLIGHT,
  releaseClaim,
} from '../src/store/deliveries.ts';
import type { AttemptOutcome } from '../src/webhooks/attempt.ts';
import { decide, type RetryDecision } from '../src/webhooks/retry-policy.ts';
import { SecretCorruptError } from '../src/webhooks/secret-box.ts';
import { defineJob, type JobContext } from './define.ts';

/** Retries due within this get a wake-up of their own; later ones come from the timer. */
const WAKE_WITHIN_SECONDS = 60;
/** How long a due delivery may wait while slots are free. */
const LOOK_AGAIN_MS = 250;
/** A fault of ours is tried again after this, and costs the receiver nothing. */
const OWN_FAULT_DELAY_SECONDS = 30;

/**
 * Works off the due deliveries of one subscription: claims as slots free up, sends concurrently, until nothing is due. When
 * told to stop it claims no more and lets what is in flight end. A dead endpoint costs what one endpoint costs.
 */
export const deliverWebhook = defineJob('deliver-webhook', async (data, context) => {
  const subscriptionPk = BigInt(data.subscriptionPk);
  const inFlight = new Set<Promise<void>>();
  const faults: Error[] = [];
  let attempts = 0;
  try {
    while (!context.signal.aborted && faults.length === 0) {
      const claim = await claimDue(context.db, subscriptionPk, MAX_IN_FLIGHT - inFlight.size);
      for (const delivery of claim?.deliveries ?? []) {
        attempts += 1;
        const attempt: Promise<void> = attemptDelivery(context, claim?.subscription, delivery)
          .catch((error: unknown) => void faults.push(asError(error)))
          .finally(() => inFlight.delete(attempt));
        inFlight.add(attempt);
      }
      if (inFlight.size === 0) break;
      await nextTurn(inFlight);
    }
  } finally {
    // Also when a claim fails: an attempt that outlives its job would meet closed connections at shutdown.
    await Promise.all(inFlight);
  }
  const [fault] = faults;
  if (fault) throw fault;
  return { attempts };
});

/**
 * Until an attempt ends, but not longer than a moment: a new event's wake-up waits behind this job, so one slow attempt
 * must not keep the free slots empty.
 */
async function nextTurn(inFlight: ReadonlySet<Promise<void>>): Promise<void> {
  const moment = new AbortController();
  const looking = delay(LOOK_AGAIN_MS, undefined, { signal: moment.signal }).catch(() => undefined);
  await Promise.race([looking, ...inFlight]);
  moment.abort();
}

async function attemptDelivery(
  context: JobContext,
  subscription: ClaimedSubscription | undefined,
  delivery: ClaimedDelivery,
): Promise<void> {
  if (!subscription) return;
  const startedAt = new Date(context.now());
  const log = context.log.child({
    deliveryId: delivery.id,
    eventId: delivery.eventId,
    webhookId: subscription.id,
    attempt: delivery.attemptCount + 1,
  });
  const sent = await send(context, subscription, delivery);
  if ('ownFault' in sent) {
    await releaseClaim(context.db, delivery, OWN_FAULT_DELAY_SECONDS, 'internal_error');
    log.error({ err: sent.ownFault }, 'delivery postponed: fault on our side');
    return;
  }
  const { outcome, decision } = sent;
  const finished = await finishAttempt(
    context.db,
    subscription.pk,
    delivery,
    {
      startedAt,
      durationMs: outcome.durationMs,
      outcome: outcome.kind,
      ...(outcome.statusCode !== undefined && { statusCode: outcome.statusCode }),
      ...(outcome.kind === 'failed' && { errorCode: outcome.errorCode }),
      ...(outcome.responseExcerpt !== undefined && { responseExcerpt: outcome.responseExcerpt }),
    },
    decision.state === 'failed'
      ? { state: 'failed', ...(decision.pauseSubscription && { pause: decision.pauseSubscription }) }
      : decision,
  );
  observe(context, outcome, startedAt, delivery);
  log.info(
    {
      state: finished.isRecorded ? decision.state : 'overtaken',
      durationMs: outcome.durationMs,
      ...(outcome.statusCode !== undefined && { statusCode: outcome.statusCode }),
      ...(outcome.kind === 'failed' && { errorCode: outcome.errorCode }),
      ...(decision.state === 'retry' && { retryInSeconds: Math.round(decision.delaySeconds) }),
    },
    'delivery attempted',
  );
  if (finished.pausedFor !== undefined) log.warn({ reason: finished.pausedFor }, 'subscription paused');
  if (decision.state === 'retry' && decision.delaySeconds <= WAKE_WITHIN_SECONDS) {
    context.producer.wakeDeliveries([subscription.pk], Math.ceil(decision.delaySeconds * 1000));
  }
}

type Sent = { outcome: AttemptOutcome; decision: RetryDecision } | { ownFault: Error };

async function send(context: JobContext, subscription: ClaimedSubscription, delivery: ClaimedDelivery): Promise<Sent> {
  try {
    const secret = context.secretBox.open(subscription.sealedSecret, subscription.id);
    const outcome = await context.sender.send({
      url: subscription.url,
      secrets: [secret],
      webhookId: subscription.id,
      eventId: delivery.eventId,
      eventType: delivery.eventType as EventType,
      deliveryId: delivery.id,
      attemptNumber: delivery.attemptCount + 1,
      body: delivery.body,
    });
    const decision = decide({
      outcome,
      attemptNumber: delivery.attemptCount + 1,
      schedule: context.config.webhooks.retryScheduleSeconds,
      ...(delivery.isTest && { maxAttempts: 1 }),
      random: Math.random,
    });
    return { outcome, decision };
  } catch (error) {
    // No wait mends a secret that no key opens or that cannot sign: the delivery ends, its owner rotates it and retries.
    if (error instanceof SecretCorruptError || error instanceof InvalidSecretError) {
      const outcome: AttemptOutcome = { kind: 'failed', errorCode: 'protocol_error', durationMs: 0 };
      return { outcome, decision: { state: 'failed', reason: 'protocol_error' } };
    }
    return { ownFault: asError(error) };
  }
}

function observe(context: JobContext, outcome: AttemptOutcome, startedAt: Date, delivery: ClaimedDelivery): void {
  const { metrics } = context;
  const errorCode = outcome.kind === 'failed' ? outcome.errorCode : '';
  metrics.attempts.inc({ outcome: outcome.kind, error_code: errorCode });
  metrics.attemptDuration.observe({ outcome: outcome.kind }, outcome.durationMs / 1000);
  if (outcome.kind !== 'delivered') return;
  const latencyMs = startedAt.getTime() + outcome.durationMs - delivery.createdAt.getTime();
  metrics.deliveryLatency.observe({ attempt: delivery.attemptCount === 0 ? 'first' : 'retry' }, latencyMs / 1000);
}
