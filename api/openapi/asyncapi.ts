import { createDocument, type ZodOpenApiComponentsObject } from 'zod-openapi';
import { VERSION } from '../../src/config/version.ts';
import type { DecimalFormat } from '../../src/domain/values/api-json.ts';
import { NAMED_BROADCASTS } from '../contract/events/broadcast-event.ts';
import {
  alertExpiredEvent,
  balanceChangeEvent,
  priceAlertEvent,
  transactionEvent,
  webhookFailingEvent,
  webhookPausedEvent,
} from '../contract/events/event.ts';
import { CLIENT_FRAMES, EVENT_STREAM_MESSAGES, MARKET_MESSAGES, SERVER_FRAMES } from '../contract/live.ts';
import { adjust } from '../contract/wire.ts';

const ACCOUNT_EVENTS = {
  PriceAlertEvent: priceAlertEvent,
  AlertExpiredEvent: alertExpiredEvent,
  TransactionEvent: transactionEvent,
  BalanceChangeEvent: balanceChangeEvent,
  WebhookFailingEvent: webhookFailingEvent,
  WebhookPausedEvent: webhookPausedEvent,
  ...NAMED_BROADCASTS,
};
const SCHEMAS = {
  ...MARKET_MESSAGES,
  ...ACCOUNT_EVENTS,
  ...EVENT_STREAM_MESSAGES,
  ...CLIENT_FRAMES,
  ...SERVER_FRAMES,
} as const;
type MessageName = keyof typeof SCHEMAS;

const DESCRIPTION = `Live output of oddswire: server-sent events and a WebSocket with the same messages, and the events of an account.

- A \`heartbeat\` states that you have everything up to its \`seq\`. No heartbeat is sent while this is unknown; \`stale\` names the cause.
- \`gap\` names changes that the stream lacks. \`lagged\` ends a stream whose reader is too slow.
- A stream with the cursor of the last message continues after it.
- Ignore types and fields that you do not know.`;

const CLOSE_CODES = `Close codes: 1003 not text, 1007 not UTF-8, 1009 frame too large, 1011 failed before the start (connect again), 1012 the process stops (connect again), 4401 key missing,
revoked or expired, 4403 scope missing, 4408 no key in time, 4409 lagged, 4429 too many connections or frames.`;

const refOf = (path: string) => ({ $ref: `#/${path}` });
const messagesOf = (names: readonly MessageName[]) =>
  Object.fromEntries(names.map((name) => [name, refOf(`components/messages/${name}`)]));
const namesOf = (schemas: object) => Object.keys(schemas) as MessageName[];
const ofChannel = (channel: string, names: readonly MessageName[]) =>
  names.map((name) => refOf(`channels/${channel}/messages/${name}`));
const security = (scheme: 'bearer' | 'apiKey') => [refOf(`components/securitySchemes/${scheme}`)];

const FROM_SERVER = [...namesOf(MARKET_MESSAGES), ...namesOf(SERVER_FRAMES)];
const FROM_CLIENT = namesOf(CLIENT_FRAMES);
const OF_EVENTS = [...namesOf(ACCOUNT_EVENTS), ...namesOf(EVENT_STREAM_MESSAGES)];

/** The AsyncAPI 3 document of the streams, generated from the schemas that check and describe their messages. */
export function asyncApiDocument(options: { decimalFormat: DecimalFormat; venues: readonly string[] }): object {
  return {
    asyncapi: '3.1.0',
    info: { title: 'oddswire streams', version: VERSION, description: DESCRIPTION },
    defaultContentType: 'application/json',
    channels: {
      marketStream: {
        address: '/v1/{venue}/stream',
        title: 'Market stream',
        description: 'Server-sent events: `event` is the type, `id` the cursor, `data` the message.',
        parameters: { venue: { description: 'A venue, or `all`.', enum: [...options.venues, 'all'] } },
        messages: messagesOf(namesOf(MARKET_MESSAGES)),
      },
      socket: {
        address: '/v1/stream',
        title: 'WebSocket',
        description: `The messages of the market stream, for several subscriptions.\n\n${CLOSE_CODES}`,
        messages: messagesOf([...FROM_SERVER, ...FROM_CLIENT]),
        bindings: { ws: { method: 'GET', bindingVersion: '0.1.0' } },
      },
      accountEvents: {
        address: '/v1/events/stream',
        title: 'Account events',
        description: 'Server-sent events. `data` is the body that a webhook gets.',
        messages: messagesOf(OF_EVENTS),
      },
    },
    operations: {
      sendMarketMessages: {
        action: 'send',
        channel: refOf('channels/marketStream'),
        messages: ofChannel('marketStream', namesOf(MARKET_MESSAGES)),
        security: security('bearer'),
      },
      sendSocketMessages: {
        action: 'send',
        channel: refOf('channels/socket'),
        messages: ofChannel('socket', FROM_SERVER),
        security: security('bearer'),
      },
      receiveSocketFrames: {
        action: 'receive',
        channel: refOf('channels/socket'),
        messages: ofChannel('socket', FROM_CLIENT),
        security: security('bearer'),
        reply: {
          channel: refOf('channels/socket'),
          messages: ofChannel('socket', namesOf(SERVER_FRAMES)),
        },
      },
      sendAccountEvents: {
        action: 'send',
        channel: refOf('channels/accountEvents'),
        messages: ofChannel('accountEvents', OF_EVENTS),
        security: security('apiKey'),
      },
    },
    components: {
      messages: Object.fromEntries(
        (Object.keys(SCHEMAS) as MessageName[]).map((name) => [
          name,
          { name, summary: SCHEMAS[name].description ?? name, payload: refOf(`components/schemas/${name}`) },
        ]),
      ),
      schemas: schemasOf(options.decimalFormat),
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'Or the frame `auth`, on the WebSocket.' },
        apiKey: { type: 'httpApiKey', in: 'header', name: 'X-API-Key' },
      },
    },
  };
}

/** The JSON Schemas of the messages, made as those of the OpenAPI document. */
function schemasOf(decimalFormat: DecimalFormat): object {
  const components: ZodOpenApiComponentsObject = { schemas: SCHEMAS };
  const document = createDocument(
    { openapi: '3.1.1', info: { title: '', version: '' }, components },
    { override: (context) => adjust(context, decimalFormat) },
  );
  return document.components?.schemas ?? {};
}
