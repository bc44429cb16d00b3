import { setMaxListeners } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { askedWaitSeconds, chatMessage, chatRequest } from '../../src/domain/chat/chat-request.ts';
import { urlOwner } from '../../src/domain/chat/chat-url.ts';
import { asError } from '../../src/domain/values/errors.ts';
import type { EventType } from '../../src/domain/webhooks/event.ts';
import { type ExtraHeaders, headersOwner } from '../../src/domain/webhooks/headers.ts';
import { InvalidSecretError, standardKey } from '../../src/domain/webhooks/signature.ts';
import { logCancelledDeliveries } from '../../src/observe/limited-lines.ts';
import {
  type Claim,
  type ClaimedDelivery,
  type ClaimedSubscription,
  releaseClaim,
} from '../../src/store/deliveries/claims.ts';
import { holdSubscription } from '../../src/store/deliveries/due.ts';
import { type AttemptRecord, type DeliveryVerdict, finishAttempt } from '../../src/store/deliveries/outcomes.ts';
import { readChatFacts } from '../../src/store/deliveries/request-facts.ts';
import type { AttemptOutcome, OutgoingDelivery } from '../../src/webhooks/attempt.ts';
import { decideRetry, RETRY_AFTER_CAP_SECONDS, type RetryDecision } from '../../src/webhooks/retry-policy.ts';
import { SecretCorruptError, SecretKeyMissingError } from '../../src/webhooks/secret-box.ts';
import type { JobContext } from '../process/define.ts';

/** The longest wait of a due delivery while slots are free. */
const LOOK_AGAIN_MS = 250;

/** The longest delay of a wake-up for a permit. */
export const LONGEST_WAIT_MS = 60_000;

/** The unfinished attempts of one job. */
export class InFlightAttempts {
  readonly #context: JobContext;
  readonly #inFlight = new Set<Promise<void>>();
  readonly #faults: Error[] = [];
  #begun = 0;
  #toFailing = 0;

  constructor(context: JobContext) {
    this.#context = context;
    // Each attempt that waits for a connection listens to the signal of its job.
    setMaxListeners(0, context.signal);
  }

  get size(): number {
    return this.#inFlight.size;
  }

  /** The part that goes to receivers that were failing at the start of the attempt. */
  get toFailing(): number {
    return this.#toFailing;
  }

  /** All attempts of the job, finished or not. */
  get begun(): number {
    return this.#begun;
  }

  /** False after the job is told to stop, or after an outcome could not be recorded. */
  get mayGoOn(): boolean {
    return !this.#context.signal.aborted && this.#faults.length === 0;
  }

  /** Begins all attempts of a claim. */
  begin({ subscription, deliveries, cancelled }: Claim): void {
    logCancelledDeliveries(this.#context.log, subscription.id, 'webhook takes no more', cancelled);
    for (const delivery of deliveries) {
      const failing = subscription.isFailing ? 1 : 0;
      this.#begun += 1;
      this.#toFailing += failing;
      const attempt: Promise<void> = attemptDelivery(this.#context, subscription, delivery)
        .catch((error: unknown) => void this.#faults.push(asError(error)))
        .finally(() => {
          this.#toFailing -= failing;
          this.#inFlight.delete(attempt);
        });
      this.#inFlight.add(attempt);
    }
  }

  /**
   * Waits until an attempt ends, or for LOOK_AGAIN_MS. The wake-up of a new event waits behind this job, so one slow attempt must
   * not keep the free slots empty.
   */
  async nextTurn(): Promise<'ended' | 'looked'> {
    const moment = new AbortController();
    const looking = delay(LOOK_AGAIN_MS, 'looked' as const, { signal: moment.signal }).catch(() => 'ended' as const);
    const turn = await Promise.race([looking, ...this.#inFlight]);
    moment.abort();
    return turn ?? 'ended';
  }

  /** Waits for all attempts, because connections close after the last job at shutdown. */
  async ended(): Promise<void> {
    await Promise.all(this.#inFlight);
  }

  /** @throws the first error of recording an outcome. */
  throwFault(): void {
    const [fault] = this.#faults;
    if (fault) throw fault;
  }
}

/** Retries due within this get a wake-up of their own; later ones come from the timer. */
const WAKE_WITHIN_SECONDS = 60;
/** Our own fault is retried after this, and uses up no attempt of the delivery. */
const OWN_FAULT_DELAY_SECONDS = 30;
/** An attempt that found no free connection is repeated after this. */
const NO_CONNECTION_DELAY_SECONDS = 2;

/**
 * Makes one claimed attempt and records its outcome. Our own fault, or the lack of a connection, releases the claim. Rejects when the
 * outcome cannot be recorded: then the lease ends by itself and the attempt is repeated.
 */
async function attemptDelivery(
  context: JobContext,
  subscription: ClaimedSubscription,
  delivery: ClaimedDelivery,
): Promise<void> {
  const release = await context.sender.reserve(subscription.url, subscription.accountId, context.signal);
  if (release === null) return postpone(context, subscription, delivery);
  const startedAt = new Date(context.now());
  const log = context.log.child({
    deliveryId: delivery.id,
    eventId: delivery.eventId,
    ...(delivery.alertId !== undefined && { alertId: delivery.alertId }),
    webhookId: subscription.id,
    attempt: delivery.attemptCount + 1,
  });
  const sent = await send(context, subscription, delivery).finally(release);
  if ('ownFault' in sent) {
    await releaseClaim(context.db, delivery, OWN_FAULT_DELAY_SECONDS, 'internal_error');
    const { ownFault } = sent;
    if (ownFault instanceof SecretKeyMissingError) {
      log.error({ kid: ownFault.kid }, 'delivery postponed: SECRETS_KEYS has no key for the secret of the webhook');
    } else {
      log.error({ err: ownFault }, 'delivery postponed: fault on our side');
    }
    return;
  }
  const { outcome, decision } = sent;
  const attempt: AttemptRecord = {
    startedAt,
    durationMs: outcome.durationMs,
    outcome: outcome.kind,
    ...(outcome.statusCode !== undefined && { statusCode: outcome.statusCode }),
    ...(outcome.kind === 'failed' && { errorCode: outcome.errorCode }),
    ...(outcome.responseExcerpt !== undefined && { responseExcerpt: outcome.responseExcerpt }),
    ...(outcome.responseHeaders !== undefined && { responseHeaders: outcome.responseHeaders }),
  };
  const verdict = verdictOf(decision, sent.isCharged);
  const finished = await finishAttempt(context.db, { subscriptionPk: subscription.pk, delivery, attempt }, verdict);
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
  if (finished.wake !== undefined) context.producer.wakeDeliveries(finished.wake);
  if (finished.pausedFor !== undefined) {
    log.warn({ reason: finished.pausedFor }, 'subscription paused');
    logCancelledDeliveries(context.log, subscription.id, 'webhook paused', finished.cancelled ?? []);
  }
  if (decision.state === 'retry' && decision.delaySeconds <= WAKE_WITHIN_SECONDS) {
    context.producer.wakeDeliveries([subscription.pk], Math.ceil(decision.delaySeconds * 1000));
  }
}

/** Returns the delivery to the queue, where the timer finds it. A stopping process delays it no further. */
async function postpone(
  { db, log, metrics, signal }: JobContext,
  subscription: ClaimedSubscription,
  delivery: ClaimedDelivery,
): Promise<void> {
  await releaseClaim(db, delivery, signal.aborted ? 0 : NO_CONNECTION_DELAY_SECONDS);
  metrics.deliveriesPostponed.inc();
  log.debug({ deliveryId: delivery.id, webhookId: subscription.id }, 'delivery postponed: no free connection');
}

/** One attempt. A chat service that asks for a wait gets no message of this webhook before its end. */
async function sendOnce(
  context: JobContext,
  { pk, id, chat }: ClaimedSubscription,
  { body, skipped }: ClaimedDelivery,
  outgoing: OutgoingDelivery,
): Promise<AttemptOutcome> {
  if (chat === undefined) return context.sender.send(outgoing);
  const message = chatMessage(body, await readChatFacts(context.db, body), skipped?.length);
  const request = chatRequest(chat.format, context.secretBox.open(chat.sealedUrl, urlOwner(id)), message);
  const outcome = await context.sender.send({ ...outgoing, ...request, isSigned: false });
  if (outcome.kind === 'delivered' || outcome.statusCode !== 429) return outcome;
  const inBody = outcome.responseExcerpt === undefined ? undefined : askedWaitSeconds(outcome.responseExcerpt);
  const asked = Math.max(outcome.retryAfterSeconds ?? 0, inBody ?? 0);
  if (asked === 0) return outcome;
  await holdSubscription(context.db, pk, Math.min(asked, RETRY_AFTER_CAP_SECONDS));
  return { ...outcome, retryAfterSeconds: asked };
}

function verdictOf(decision: RetryDecision, isCharged: boolean): DeliveryVerdict {
  if (decision.state !== 'failed') return decision;
  const { pauseSubscription: pause } = decision;
  return { state: 'failed', isCharged: isCharged || pause !== undefined, ...(pause !== undefined && { pause }) };
}

type Sent = { outcome: AttemptOutcome; decision: RetryDecision; isCharged: boolean } | { ownFault: Error };

async function send(context: JobContext, subscription: ClaimedSubscription, delivery: ClaimedDelivery): Promise<Sent> {
  try {
    const secrets = openSecrets(context, subscription);
    const headers = openHeaders(context, subscription);
    const outcome = await sendOnce(context, subscription, delivery, {
      url: subscription.url,
      secrets,
      webhookId: subscription.id,
      eventId: delivery.eventId,
      eventType: delivery.eventType as EventType,
      deliveryId: delivery.id,
      attemptNumber: delivery.attemptCount + 1,
      body: delivery.body,
      ...(delivery.skipped !== undefined && { skipped: delivery.skipped }),
      ...(headers !== undefined && { headers }),
    });
    const schedule = context.config.webhooks.retryScheduleSeconds;
    const attemptOfSchedule = delivery.attemptCount + 1 - delivery.scheduleFrom;
    const decision = decideRetry({
      outcome,
      attemptNumber: attemptOfSchedule,
      schedule,
      ...(delivery.isTest && { maxAttempts: 1 }),
      random: Math.random,
    });
    // A retry of an exhausted delivery does not exhaust it a second time.
    return { outcome, decision, isCharged: attemptOfSchedule <= schedule.length + 1 };
  } catch (error) {
    // Waiting does not repair a corrupt secret: the delivery ends, and its owner rotates the secret and retries.
    if (error instanceof SecretCorruptError || error instanceof InvalidSecretError) {
      context.log.error({ webhookId: subscription.id, code: error.code }, 'secret unusable: delivery failed unsent');
      const outcome: AttemptOutcome = { kind: 'failed', errorCode: 'protocol_error', durationMs: 0 };
      return { outcome, decision: { state: 'failed', reason: 'protocol_error' }, isCharged: false };
    }
    return { ownFault: asError(error) };
  }
}

/**
 * The current secret, then the previous one during a rotation. A corrupt previous secret is skipped, because receivers drop it soon.
 * A missing key is our fault for both.
 */
function openSecrets({ secretBox, log }: JobContext, subscription: ClaimedSubscription): [string, ...string[]] {
  const current = secretBox.open(subscription.sealedSecret, subscription.id);
  if (subscription.previousSealedSecret === undefined) return [current];
  try {
    const previous = secretBox.open(subscription.previousSealedSecret, subscription.id);
    standardKey(previous);
    return [current, previous];
  } catch (error) {
    if (!(error instanceof SecretCorruptError || error instanceof InvalidSecretError)) throw error;
    log.warn(
      { webhookId: subscription.id, code: error.code },
      'previous secret unusable: signed with the current secret only',
    );
    return [current];
  }
}

/** A missing key and corrupt headers are as those of the secret. */
function openHeaders({ secretBox }: JobContext, { id, sealedHeaders }: ClaimedSubscription): ExtraHeaders | undefined {
  if (sealedHeaders === undefined) return undefined;
  return JSON.parse(secretBox.open(sealedHeaders, headersOwner(id))) as ExtraHeaders;
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
