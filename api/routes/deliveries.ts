import { z } from 'zod';
import { JsonText } from '../../src/domain/values/api-json.ts';
import { isStorableText } from '../../src/domain/values/text.ts';
import { EXCERPT_BYTES, type ResponseHeaders } from '../../src/domain/webhooks/response-headers.ts';
import type { DeliveryItem } from '../../src/store/deliveries/events.ts';
import {
  type Delivery,
  type DeliveryWithLog,
  findDeliveryWithLog,
  type LoggedAttempt,
  listDeliveries,
} from '../../src/store/deliveries/reads.ts';
import { recoverBatch, retryDelivery } from '../../src/store/deliveries/recovery.ts';
import { type FoundDelivery, searchDeliveries } from '../../src/store/deliveries/search.ts';
import { findSubscription } from '../../src/store/deliveries/subscriptions.ts';
import {
  type AccountDeliveryBody,
  type AttemptBody,
  accountDelivery,
  accountDeliveryExample,
  accountDeliveryQuery,
  checkReach,
  type DeliveryBody,
  type DeliveryWithLogBody,
  delivery,
  deliveryExample,
  deliveryQuery,
  deliveryWithLog,
  deliveryWithLogExample,
  MAX_RECOVERY_DAYS,
  recoverBody,
  recoverExample,
  recovered,
  retryBody,
} from '../contract/delivery.ts';
import { ApiError, invalidRequest, webhookNotFound } from '../errors.ts';
import type { WriteDeps } from '../http/deps.ts';
import { accountRoute, type Route, WEBHOOKS_GROUP, writeRoute } from '../http/route.ts';
import { accountList } from './account-list.ts';

const tag = 'deliveries';
const group = WEBHOOKS_GROUP;

/** /v1/deliveries and /v1/webhooks/{id}/deliveries: the delivery log, retry and recovery. */
export function deliveryRoutes(deps: WriteDeps): Route[] {
  return [
    accountRoute(
      {
        method: 'get',
        path: '/v1/deliveries',
        operationId: 'listAccountDeliveries',
        summary: 'List the deliveries of all webhooks, newest first',
        description:
          'One entry per event and webhook, without deleted webhooks. With a filter, a page may be short although more follow: continue until ' +
          '`next_cursor` is null. An account with more than 200 webhooks must name one.',
        tag,
        group,
        query: accountDeliveryQuery,
        answer: {
          description: 'Deliveries.',
          data: z.array(accountDelivery),
          example: [accountDeliveryExample],
          isPaged: true,
        },
        errors: ['invalid_cursor', 'webhook_not_found'],
      },
      (request) => {
        const { status, webhookId, eventType, eventId, since } = request.query;
        const { accountId } = request.caller;
        const list = ['account_deliveries', status, webhookId, eventType, eventId, since];
        return accountList(request, deps, list, async (limit, after) => {
          if (webhookId !== undefined && !(await findSubscription(deps.db, accountId, webhookId)))
            throw webhookNotFound();
          const filter = {
            accountId,
            ...(status !== undefined && { status }),
            ...(webhookId !== undefined && { webhook: webhookId }),
            ...(eventType !== undefined && { eventType }),
            ...(eventId !== undefined && { eventId }),
            ...(since !== undefined && { since }),
          };
          const page = await searchDeliveries(deps.db, filter, limit, after);
          if (page.outcome === 'too_many_webhooks') {
            throw invalidRequest([{ path: 'webhookId', message: 'must name one of the more than 200 webhooks' }]);
          }
          return { items: page.deliveries.map(presentAccountDelivery), next: page.next };
        });
      },
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/webhooks/:webhook_id/deliveries',
        operationId: 'listDeliveries',
        summary: 'List deliveries, newest first',
        description: 'One entry per event for this webhook, with the result of its latest attempt.',
        tag,
        group,
        query: deliveryQuery,
        answer: { description: 'Deliveries.', data: z.array(delivery), example: [deliveryExample], isPaged: true },
        errors: ['invalid_cursor'],
      },
      (request) => {
        const { status, eventType, since } = request.query;
        const webhookId = request.params.webhook_id;
        const list = ['deliveries', webhookId, status, eventType, since];
        return accountList(request, deps, list, async (limit, after) => {
          const filter = {
            ...(status !== undefined && { status }),
            ...(eventType !== undefined && { eventType }),
            ...(since !== undefined && { since }),
          };
          const page = await listDeliveries(deps.db, request.caller.accountId, webhookId, filter, limit, after);
          if (!page) throw webhookNotFound();
          return { items: page.deliveries.map(presentDelivery), next: page.next };
        });
      },
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/webhooks/:webhook_id/deliveries/:delivery_id',
        operationId: 'getDelivery',
        summary: 'Read a delivery with its attempts and its payload',
        description:
          '`payload` is the event, digit for digit: the body as it was sent, or with a chat format the source of the message.',
        tag,
        group,
        answer: { description: 'The delivery.', data: deliveryWithLog, example: deliveryWithLogExample },
      },
      async ({ caller, params }) => {
        const subscription = await findSubscription(deps.db, caller.accountId, params.webhook_id);
        if (!subscription) throw webhookNotFound();
        const found = await findDeliveryWithLog(deps.db, subscription.pk, params.delivery_id);
        if (!found) throw deliveryNotFound();
        return { data: presentDeliveryWithLog(found) };
      },
    ),
    writeRoute(
      {
        path: '/v1/webhooks/:webhook_id/deliveries/:delivery_id/retry',
        operationId: 'retryDelivery',
        summary: 'Send a delivery again',
        description:
          'Accepts every finished delivery, also a delivered one. The next attempt starts at once, then the rest of the schedule applies. ' +
          'Rejected with `conflict` while the delivery is pending or the webhook is paused.',
        tag,
        group,
        body: { schema: retryBody, example: {}, isOptional: true },
        answer: { status: 202, description: 'The delivery.', data: delivery, example: deliveryExample },
        errors: ['conflict'],
      },
      async (tx, { caller, params }) => {
        const retry = await retryDelivery(tx, caller.accountId, params.webhook_id, params.delivery_id);
        switch (retry.outcome) {
          case 'webhook_not_found':
            throw webhookNotFound();
          case 'delivery_not_found':
            throw deliveryNotFound();
          case 'paused':
            throw webhookPaused();
          case 'pending':
            throw new ApiError('conflict', 'this delivery is already pending');
          case 'retried':
            return {
              data: presentDelivery(retry.delivery),
              afterCommit: () => deps.producer.wakeDeliveries([retry.subscriptionPk]),
            };
        }
      },
    ),
    writeRoute(
      {
        path: '/v1/webhooks/:webhook_id/recover',
        operationId: 'recoverDeliveries',
        summary: 'Send the undelivered events of a webhook',
        description: `Covers all events since \`since\`, at most ${MAX_RECOVERY_DAYS} days ago. Safe to repeat. Rejected with \`conflict\` while the webhook is paused.`,
        tag,
        group,
        body: { schema: recoverBody, example: recoverExample },
        answer: { status: 202, description: 'Deliveries due again.', data: recovered, example: { recovered: 12 } },
        errors: ['conflict'],
      },
      async (tx, { caller, params, body: { since } }, progress) => {
        const soFar = progress === undefined ? BEGINNING : (JSON.parse(progress) as RecoveryProgress);
        // Only at the start, so that a recovery that started in time can finish.
        if (progress === undefined) checkReach(since, deps.now());
        const target = { accountId: caller.accountId, subscriptionId: params.webhook_id, since };
        const batch = await recoverBatch(tx, target, soFar.after === undefined ? undefined : BigInt(soFar.after));
        if (batch.outcome === 'webhook_not_found') throw webhookNotFound();
        if (batch.outcome === 'paused') throw webhookPaused();
        const recovered = soFar.recovered + batch.recovered;
        const afterCommit = () => {
          if (batch.recovered > 0) deps.producer.wakeDeliveries([batch.subscriptionPk]);
        };
        if (batch.next === undefined) return { data: { recovered }, afterCommit };
        const reached: RecoveryProgress = { after: String(batch.next), recovered };
        return { progress: JSON.stringify(reached), afterCommit };
      },
    ),
  ];
}

/** The progress of a recovery: the key of the last event, and the number of deliveries that are due again. */
interface RecoveryProgress {
  after?: string;
  recovered: number;
}
const BEGINNING: RecoveryProgress = { recovered: 0 };

function deliveryNotFound(): ApiError {
  return new ApiError('not_found', 'no such delivery');
}

function webhookPaused(): ApiError {
  return new ApiError('conflict', 'this webhook is paused; set its status to active first');
}

type Presentable = DeliveryItem & Partial<Pick<Delivery, 'deliveredAt' | 'lastStatusCode' | 'lastError' | 'isSkipped'>>;

/** A delivery in lists. */
export function presentDelivery(delivery: Presentable): DeliveryBody {
  return {
    id: delivery.id,
    eventId: delivery.eventId,
    eventType: delivery.eventType,
    status: delivery.status,
    attempts: delivery.attempts,
    createdAt: delivery.createdAt.toISOString(),
    nextAttemptAt: delivery.status === 'pending' ? delivery.nextAttemptAt?.toISOString() : undefined,
    deliveredAt: delivery.deliveredAt?.toISOString(),
    lastStatusCode: delivery.lastStatusCode ?? undefined,
    lastError: delivery.lastError ?? undefined,
    skipped: delivery.isSkipped || undefined,
  };
}

/** A delivery in the list of an account. */
function presentAccountDelivery(delivery: FoundDelivery): AccountDeliveryBody {
  return {
    ...presentDelivery(delivery),
    webhookId: delivery.webhookId,
    alertId: delivery.alertId ?? undefined,
    lastDurationMs: delivery.lastDurationMs ?? undefined,
  };
}

/** One delivery with its attempts and its payload. The payload keeps the digits of the sent body. */
export function presentDeliveryWithLog(delivery: DeliveryWithLog): DeliveryWithLogBody {
  return {
    ...presentDelivery(delivery),
    attemptLog: delivery.attemptLog.map(presentAttempt),
    payload: new JsonText(delivery.body),
  };
}

function presentAttempt(attempt: LoggedAttempt): AttemptBody {
  return {
    attempt: attempt.attempt,
    startedAt: attempt.startedAt.toISOString(),
    durationMs: attempt.durationMs,
    outcome: attempt.outcome,
    statusCode: attempt.statusCode ?? undefined,
    errorCode: attempt.errorCode ?? undefined,
    ...(attempt.responseExcerpt !== null && presentExcerpt(attempt.responseExcerpt)),
    ...(attempt.responseHeaders !== null && presentHeaders(attempt.responseHeaders)),
  };
}

function presentHeaders({ headers, removed, omitted }: ResponseHeaders) {
  return {
    responseHeaders: headers.map(([name, value]) => ({ name, value })),
    responseHeadersRemoved: removed || undefined,
    responseHeadersOmitted: omitted || undefined,
  };
}

/** Text if the bytes are UTF-8 text, otherwise base64 with `responseEncoding`. */
function presentExcerpt(bytes: Uint8Array): { responseBody: string; responseEncoding?: 'base64' } {
  const text = utf8Text(bytes);
  if (text !== undefined && isStorableText(text)) return { responseBody: text };
  return { responseBody: Buffer.from(bytes).toString('base64'), responseEncoding: 'base64' };
}

function utf8Text(bytes: Uint8Array): string | undefined {
  try {
    // `stream` accepts a truncated excerpt that ends inside a character.
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes, {
      stream: bytes.length >= EXCERPT_BYTES,
    });
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}
