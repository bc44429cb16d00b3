import { z } from 'zod';
import {
  type ChatFormat,
  chatUrlProblem,
  redactedUrl,
  urlOwner,
  type WebhookFormat,
} from '../../src/domain/chat/chat-url.ts';
import { newId } from '../../src/domain/values/ids.ts';
import type { AddressRules } from '../../src/domain/webhooks/address-policy.ts';
import { tradeFilterProblem } from '../../src/domain/webhooks/broadcast.ts';
import { type ExtraHeaders, headersOwner } from '../../src/domain/webhooks/headers.ts';
import { generateSecret } from '../../src/domain/webhooks/signature.ts';
import { logCancelledDeliveries } from '../../src/observe/limited-lines.ts';
import {
  deleteSubscription,
  findSubscription,
  insertSubscription,
  listSubscriptions,
  type Subscription,
  type SubscriptionOptions,
  updateSubscription,
} from '../../src/store/deliveries/subscriptions.ts';
import type { SecretBox } from '../../src/webhooks/secret-box.ts';
import { requireQuota } from '../access/quota.ts';
import {
  createWebhookExample,
  deletedWebhook,
  type OptionsBody,
  type WebhookBody,
  webhook,
  webhookBodies,
  webhookExample,
  webhookItem,
  webhookItemExample,
  webhookWithSecret,
  webhookWithSecretExample,
} from '../contract/webhook.ts';
import { invalidRequest, webhookNotFound } from '../errors.ts';
import type { WriteDeps } from '../http/deps.ts';
import { accountRoute, type Route, WEBHOOKS_GROUP, writeRoute } from '../http/route.ts';
import { accountList, listQuery } from './account-list.ts';

const tag = 'webhooks';
const group = WEBHOOKS_GROUP;

/** /v1/webhooks: subscriptions (specification section 4.3). */
export function webhookRoutes(deps: WriteDeps & { addressRules: AddressRules }): Route[] {
  const bodies = webhookBodies(deps.addressRules);
  return [
    writeRoute(
      {
        path: '/v1/webhooks',
        operationId: 'createWebhook',
        recordedAs: 'webhook.create',
        summary: 'Register a webhook',
        description: 'oddswire creates a secret when the body has none.',
        tag,
        group,
        body: { schema: bodies.create, example: createWebhookExample },
        answer: {
          status: 201,
          description: 'The webhook with its secret, which no other answer contains.',
          data: webhookWithSecret,
          example: webhookWithSecretExample,
        },
        errors: ['quota_exceeded'],
      },
      async (tx, { caller, body }) => {
        await requireQuota(tx, deps, caller, 'webhooks');
        const id = newId('wh');
        const plainSecret = body.secret ?? generateSecret();
        const made = await insertSubscription(tx, caller.accountId, {
          id,
          ...urlColumns(deps, id, body.url, chatFormatOf(body.format) ?? null),
          events: body.events,
          ...optionsOf(deps, id, body),
          // The limit of these services per channel.
          ...(chatFormatOf(body.format) && body.maxPerSecond === undefined && { maxPerSecond: 1 }),
          sealedSecret: deps.secretBox.seal(plainSecret, id),
        });
        const { createdAt, ...fields } = presentSubscription(made);
        return { data: { ...fields, secret: plainSecret, createdAt }, location: `/v1/webhooks/${id}` };
      },
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/webhooks',
        operationId: 'listWebhooks',
        summary: 'List webhooks, newest first',
        description: 'The answer has `meta.next_cursor` when the caller pages or more items follow.',
        tag,
        group,
        query: listQuery,
        answer: { description: 'Webhooks.', data: z.array(webhookItem), example: [webhookItemExample], isPaged: true },
        errors: ['invalid_cursor'],
      },
      (request) =>
        accountList(request, deps, ['webhooks'], async (limit, after) => {
          const page = await listSubscriptions(deps.db, request.caller.accountId, limit, after);
          // List items have these four fields (specification section 4.3).
          const items = page.subscriptions.map(({ id, url, events, status }) => ({ id, url, events, status }));
          return { items, next: page.next };
        }),
    ),
    accountRoute(
      {
        method: 'get',
        path: '/v1/webhooks/:webhook_id',
        operationId: 'getWebhook',
        summary: 'Read a webhook',
        description: '`pauseReason` is present when oddswire paused the webhook.',
        tag,
        group,
        answer: { description: 'The webhook.', data: webhook, example: webhookExample },
      },
      async ({ caller, params }) => {
        const found = await findSubscription(deps.db, caller.accountId, params.webhook_id);
        if (!found) throw webhookNotFound();
        return { data: presentSubscription(found) };
      },
    ),
    accountRoute(
      {
        method: 'put',
        path: '/v1/webhooks/:webhook_id',
        operationId: 'updateWebhook',
        recordedAs: 'webhook.update',
        summary: 'Change, pause or resume a webhook',
        description: 'A pause cancels the pending deliveries. Activation clears the pause reason.',
        tag,
        group,
        body: { schema: bodies.update, example: { status: 'paused' } },
        answer: { description: 'The webhook.', data: webhook, example: { ...webhookExample, status: 'paused' } },
      },
      async ({ ctx, caller, params: { webhook_id: id }, body, db }) => {
        const { url } = body;
        const change = {
          ...(url !== undefined && {
            url: (format: ChatFormat | null) => urlColumns(deps, id, url, format),
          }),
          ...(body.events !== undefined && { events: body.events }),
          ...(body.status !== undefined && { status: body.status }),
          ...optionsOf(deps, id, body),
          check: requireTradeFilter,
        };
        const changed = await updateSubscription(db, caller.accountId, id, change, (cancelled) =>
          logCancelledDeliveries(ctx.state.log, id, 'webhook paused', cancelled),
        );
        if (!changed) throw webhookNotFound();
        return { data: presentSubscription(changed) };
      },
    ),
    accountRoute(
      {
        method: 'delete',
        path: '/v1/webhooks/:webhook_id',
        operationId: 'deleteWebhook',
        recordedAs: 'webhook.delete',
        summary: 'Delete a webhook',
        description:
          'Cancels the pending deliveries. Active alerts that name this webhook lose it: they go to the default webhook, as alerts ' +
          'without `webhookId` do.',
        tag,
        group,
        answer: {
          description: 'Deleted.',
          data: deletedWebhook,
          example: { id: webhookExample.id, deleted: true, alertsChanged: 2 },
        },
      },
      async ({ ctx, caller, params: { webhook_id: id }, db }) => {
        const done = await deleteSubscription(db, caller.accountId, id, (cancelled) =>
          logCancelledDeliveries(ctx.state.log, id, 'webhook deleted', cancelled),
        );
        if (!done) throw webhookNotFound();
        return { data: { id, deleted: true, alertsChanged: done.alerts } };
      },
    ),
  ];
}

/** @throws ApiError when the webhook would get all trades */
function requireTradeFilter({ events, filter }: Pick<Subscription, 'events' | 'filter'>): void {
  const problem = tradeFilterProblem(events, filter);
  if (problem !== null) throw invalidRequest([{ path: 'filter', message: problem }]);
}

/** The stored form of the options of a body; absent ones stay as they are. */
function optionsOf({ secretBox }: WriteDeps, id: string, body: OptionsBody): SubscriptionOptions {
  const { ordered, orderBy = 'market', filter, maxPerSecond, headers, description, format } = body;
  return {
    ...(ordered !== undefined && { orderBy: ordered ? orderBy : null }),
    ...(filter !== undefined && { filter }),
    ...(maxPerSecond !== undefined && { maxPerSecond }),
    ...(headers !== undefined && sealedHeaders(secretBox, id, headers ?? {})),
    ...(description !== undefined && { description }),
    ...(format !== undefined && { format: chatFormatOf(format) ?? null }),
  };
}

function chatFormatOf(format: WebhookFormat | undefined): ChatFormat | undefined {
  return format === 'json' ? undefined : format;
}

/** The columns of a URL: one of a chat service is a secret. @throws ApiError for a URL that its service cannot have */
function urlColumns(
  { secretBox }: WriteDeps,
  id: string,
  url: string,
  format: ChatFormat | null,
): { url: string; sealedUrl: string | null } {
  if (format === null) return { url, sealedUrl: null };
  const problem = chatUrlProblem(format, url);
  if (problem !== null) throw invalidRequest([{ path: 'url', message: problem }]);
  return { url: redactedUrl(url), sealedUrl: secretBox.seal(url, urlOwner(id)) };
}

function sealedHeaders(box: SecretBox, id: string, headers: ExtraHeaders): SubscriptionOptions {
  const headerNames = Object.keys(headers);
  if (headerNames.length === 0) return { sealedHeaders: null, headerNames: null };
  return { sealedHeaders: box.seal(JSON.stringify(headers), headersOwner(id)), headerNames };
}

export function presentSubscription(subscription: Subscription): WebhookBody {
  return {
    id: subscription.id,
    url: subscription.url,
    events: subscription.events,
    status: subscription.status,
    createdAt: subscription.createdAt.toISOString(),
    pauseReason: subscription.pauseReason ?? undefined,
    ...(subscription.orderBy !== null && { ordered: true, orderBy: subscription.orderBy }),
    filter: subscription.filter?.map((condition) => ({ ...condition })),
    maxPerSecond: subscription.maxPerSecond ?? undefined,
    headerNames: subscription.headerNames ?? undefined,
    description: subscription.description ?? undefined,
    format: subscription.format ?? undefined,
  };
}
