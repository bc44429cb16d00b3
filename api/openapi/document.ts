import { z } from 'zod';
import {
  createDocument,
  type ZodOpenApiOperationObject,
  type ZodOpenApiPathsObject,
  type ZodOpenApiResponseObject,
} from 'zod-openapi';
import { VERSION } from '../../src/config/version.ts';
import { type ApiJson, type DecimalFormat, toJsonText } from '../../src/domain/values/api-json.ts';
import { csvOfList } from '../../src/domain/wire/csv.ts';
import type { RouteGroup } from '../context.ts';
import { alert } from '../contract/alert.ts';
import { apiKey, apiKeyWithSecret } from '../contract/api-key.ts';
import { archiveFile } from '../contract/archive/file.ts';
import { backtestJob, backtestResult } from '../contract/backtest.ts';
import { book } from '../contract/book.ts';
import { coverageHour } from '../contract/completeness.ts';
import { attempt, delivery, deliveryWithLog } from '../contract/delivery.ts';
import { errorCode, errorDetail, errorMeta, warnings } from '../contract/error.ts';
import { accountEvent } from '../contract/events/account-event.ts';
import { NAMED_BROADCASTS } from '../contract/events/broadcast-event.ts';
import {
  alertExpiredEvent,
  anyEvent,
  balanceChangeEvent,
  priceAlertEvent,
  testEvent,
  transactionEvent,
  webhookFailingEvent,
  webhookPausedEvent,
} from '../contract/events/event.ts';
import { marketEvent, marketEventWithMarkets } from '../contract/events/market-event.ts';
import { comparison, executable, placedExecutable } from '../contract/executable.ts';
import { marketFees } from '../contract/fee.ts';
import { EVENT_STREAM_MESSAGES, eventStreamMessage, MARKET_MESSAGES, streamMessage } from '../contract/live.ts';
import { market, watchedMarket } from '../contract/market.ts';
import { pathParams } from '../contract/path-params.ts';
import { prices } from '../contract/price.ts';
import { resolution, resolutionRow } from '../contract/resolution.ts';
import { marketRules } from '../contract/rules.ts';
import { candle, history, snapshot, volumeWindow } from '../contract/series.ts';
import { trade } from '../contract/trade.ts';
import { venue } from '../contract/venue.ts';
import { wallet } from '../contract/wallet.ts';
import { rotatedWebhook, webhook, webhookItem, webhookWithSecret } from '../contract/webhook.ts';
import { adjust, cursorMeta, epochTime } from '../contract/wire.ts';
import { TOLERANT_OPERATIONS } from '../http/parameter-names.ts';
import type { RouteContract, RouteTag } from '../http/route.ts';
import {
  csvHeaders,
  DEPRECATION_HEADERS,
  FILE_HEADERS,
  failure,
  failures,
  HEADERS,
  type HeaderName,
  headerRefs,
  paramNames,
  RATE_LIMIT_HEADERS,
  REQUEST_HEADERS,
  type RequestHeaderName,
  TOLERANCE_HEADERS,
} from './responses.ts';
import { webhooksSection } from './webhooks-section.ts';

/** Named schemas. Generated clients use these names. */
const SCHEMAS = {
  AccountEvent: accountEvent,
  Alert: alert,
  AlertBacktest: backtestJob,
  AlertBacktestResult: backtestResult,
  ApiKey: apiKey,
  ApiKeyWithSecret: apiKeyWithSecret,
  ArchiveFile: archiveFile,
  CoverageHour: coverageHour,
  Attempt: attempt,
  BalanceChangeEvent: balanceChangeEvent,
  Candle: candle,
  Comparison: comparison,
  Delivery: delivery,
  DeliveryWithLog: deliveryWithLog,
  ErrorCode: errorCode,
  ErrorDetail: errorDetail,
  ErrorMeta: errorMeta,
  Event: anyEvent,
  EventStreamMessage: eventStreamMessage,
  Executable: executable,
  Market: market,
  MarketEvent: marketEvent,
  MarketEventWithMarkets: marketEventWithMarkets,
  MarketFees: marketFees,
  MarketRules: marketRules,
  Orderbook: book,
  PlacedExecutable: placedExecutable,
  PriceAlertEvent: priceAlertEvent,
  AlertExpiredEvent: alertExpiredEvent,
  Prices: prices,
  RotatedWebhook: rotatedWebhook,
  Resolution: resolution,
  ResolutionRow: resolutionRow,
  Snapshot: snapshot,
  StreamMessage: streamMessage,
  TestEvent: testEvent,
  Trade: trade,
  TradeHistory: history,
  TransactionEvent: transactionEvent,
  Venue: venue,
  VolumeWindow: volumeWindow,
  Wallet: wallet,
  WatchedMarket: watchedMarket,
  Webhook: webhook,
  WebhookFailingEvent: webhookFailingEvent,
  WebhookItem: webhookItem,
  WebhookPausedEvent: webhookPausedEvent,
  WebhookWithSecret: webhookWithSecret,
  ...NAMED_BROADCASTS,
  ...MARKET_MESSAGES,
  ...EVENT_STREAM_MESSAGES,
} as const;

const TAGS: Readonly<Record<RouteTag | 'events', string>> = {
  streams: 'Changes as they are stored. `/asyncapi.json` describes the WebSocket too.',
  markets: 'Markets, events, prices, books, trades and series: `Authorization: Bearer`, scope `markets:read`.',
  webhooks: 'Receivers of events: `X-API-Key`, scope `webhooks`.',
  deliveries: 'Events, delivery log, retry and recovery: `X-API-Key`, scope `webhooks`.',
  alerts: 'Price alerts: `X-API-Key`, scope `alerts`.',
  wallets: 'Watched wallets: `X-API-Key`, scope `wallets`.',
  watchlist: 'The markets that the account watches: `X-API-Key`, scope `markets:read`.',
  archive: 'History in files: `Authorization: Bearer`, scope `archive`.',
  keys: 'The API keys of the account: `X-API-Key`, scope `keys`.',
  events: 'The events that a webhook receives.',
  health: 'State of the service.',
  contract: 'This document and its page.',
};

const SECURITY = { Authorization: 'bearer', 'X-API-Key': 'apiKey' } as const satisfies Record<
  RouteGroup['header'],
  string
>;

const DESCRIPTION = `Reads of prediction markets, webhooks and price alerts.

- Market routes read the key from \`Authorization: Bearer\`, account routes from \`X-API-Key\`. A key in the other header only gets 401.
- Success is \`{success, data}\`, with \`meta\` on market routes; failure is \`{success, error, meta}\`. Unknown fields are absent.
  New versions may add fields and enumeration values, so clients must ignore names that they do not know.
- Times are epoch seconds on market routes, ISO 8601 on account routes.
- Every GET route also answers HEAD. A wrong method gets 405 \`method_not_allowed\` with \`Allow\`, an unknown path 404
  \`not_found\`.`;

/** Each deployment has its own operator. */
const CONTACT = { name: 'The operator of this server' } as const;

/** The inputs of the document besides the routes. */
interface DocumentOptions {
  decimalFormat: DecimalFormat;
  /** The venues that have markets. */
  venues: readonly string[];
}

/** The OpenAPI 3.1 document of these routes, generated from the schemas of their input checks. */
export function openApiDocument(contracts: readonly RouteContract[], options: DocumentOptions) {
  const shared = new Map<string, ZodOpenApiResponseObject>();
  const paths = pathsOf(contracts, options, shared);
  return createDocument(
    {
      openapi: '3.1.1',
      info: { title: 'oddswire', version: VERSION, description: DESCRIPTION, contact: CONTACT },
      servers: [{ url: '/', description: 'This server.' }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      paths,
      webhooks: webhooksSection(),
      components: {
        schemas: SCHEMAS,
        headers: HEADERS,
        parameters: REQUEST_HEADERS,
        responses: {
          ...Object.fromEntries([...shared].sort(([a], [b]) => (a < b ? -1 : 1))),
          method_not_allowed: failure(['method_not_allowed']),
          not_modified: {
            description: 'The answer has not changed.',
            headers: headerRefs('X-Request-Id', 'ETag', 'Cache-Control', 'Vary'),
          },
        },
        securitySchemes: {
          [SECURITY.Authorization]: { type: 'http', scheme: 'bearer', description: 'Market routes.' },
          [SECURITY['X-API-Key']]: { type: 'apiKey', in: 'header', name: 'X-API-Key', description: 'Account routes.' },
        },
      },
    },
    { override: (context) => adjust(context, options.decimalFormat) },
  );
}

function pathsOf(
  contracts: readonly RouteContract[],
  options: DocumentOptions,
  shared: Map<string, ZodOpenApiResponseObject>,
): ZodOpenApiPathsObject {
  const paths: ZodOpenApiPathsObject = {};
  const params = pathParams(options.venues);
  for (const contract of contracts) {
    const path = contract.path.replaceAll(/:(\w+)/g, '{$1}');
    paths[path] = { ...paths[path], [contract.method]: operationOf(contract, options, params, shared) };
  }
  return paths;
}

function operationOf(
  contract: RouteContract,
  options: DocumentOptions,
  params: Readonly<Record<string, z.ZodString>>,
  shared: Map<string, ZodOpenApiResponseObject>,
): ZodOpenApiOperationObject {
  const { answer, body, description, group, operationId, path, query, summary, tag } = contract;
  const named = paramNames(path);
  const headers: RequestHeaderName[] = ['X-Request-Id'];
  if (isCached(answer)) headers.push('If-None-Match');
  if (answer.envelope === 'stream') headers.push('Last-Event-ID');
  if (answer.envelope === 'download') headers.push('If-None-Match', 'Range', 'If-Range');
  if (contract.isIdempotent) headers.push('Idempotency-Key');
  return {
    operationId,
    tags: [tag],
    summary,
    description,
    ...(contract.deprecated && { deprecated: true }),
    security: group ? [{ [SECURITY[group.header]]: [] }] : [],
    ...(group && { 'x-scope': group.scope }),
    requestParams: {
      ...(named.length > 0 && {
        path: z.object(Object.fromEntries(named.map((name) => [name, paramOf(params, name)]))),
      }),
      ...(query && { query }),
    },
    parameters: headers.map((name) => ({ $ref: `#/components/parameters/${name}` })),
    ...(body && {
      requestBody: {
        required: !body.isOptional,
        content: { 'application/json': { schema: body.schema, example: body.example } },
      },
    }),
    responses: {
      [`${answer.status}`]: successOf(contract, options),
      ...(answer.envelope === 'account' &&
        answer.accepted && {
          '202': successOf({ ...contract, answer: { ...answer, ...answer.accepted, status: 202 } }, options),
        }),
      ...(answer.envelope === 'download' && partsOf(contract, options)),
      ...(isCached(answer) && { '304': { $ref: '#/components/responses/not_modified' } }),
      ...failures(contract, shared),
    },
  };
}

/** Whether the answer has an ETag. */
function isCached({ envelope }: RouteContract['answer']): boolean {
  return envelope === 'market' || envelope === 'file';
}

type ListAnswer = Extract<RouteContract['answer'], { columns?: readonly string[] }> & { columns: readonly string[] };

/** Whether the answer is also available as CSV. */
function isListed(answer: RouteContract['answer']): answer is ListAnswer {
  return 'columns' in answer && answer.columns !== undefined;
}

/** The fields of `meta` besides request id and timestamp. */
function metaFieldsOf(answer: ListAnswer, isTolerant: boolean): string[] {
  const fields = answer.envelope === 'market' ? Object.keys(answer.meta?.shape ?? {}) : [];
  if (answer.envelope === 'account' && answer.isPaged) fields.push('next_cursor');
  return isTolerant ? [...fields, 'warnings'] : fields;
}

/** @throws TypeError for a parameter without a schema. */
function paramOf(params: Readonly<Record<string, z.ZodString>>, name: string): z.ZodString {
  const schema = params[name];
  if (!schema) throw new TypeError(`the path parameter ${name} has no schema`);
  return schema;
}

function successOf(contract: RouteContract, { decimalFormat }: DocumentOptions): ZodOpenApiResponseObject {
  const { answer, deprecated, group, isIdempotent, operationId } = contract;
  const headers: HeaderName[] = ['X-Request-Id', 'Cache-Control'];
  const isTolerant = TOLERANT_OPERATIONS.has(operationId);
  const isList = isListed(answer);
  if (isCached(answer)) headers.push('ETag');
  if (isCached(answer) || isList || answer.envelope === 'download') headers.push('Vary');
  const isAccepted = answer.envelope === 'account' && answer.status === 202 && answer.accepted !== undefined;
  if (answer.status === 201 || isAccepted) headers.push('Location');
  if (isIdempotent) headers.push('Idempotent-Replayed');
  if (group) headers.push(...RATE_LIMIT_HEADERS);
  return {
    description: answer.description,
    headers: {
      ...headerRefs(...headers),
      ...(answer.envelope === 'download' && FILE_HEADERS),
      ...(isTolerant && TOLERANCE_HEADERS),
      ...(isList && csvHeaders(metaFieldsOf(answer, isTolerant), isTolerant)),
      ...(deprecated && DEPRECATION_HEADERS),
    },
    content: contentOf(contract, decimalFormat),
  };
}

/** The further answers of a download. */
function partsOf(contract: RouteContract, options: DocumentOptions): Record<'206' | '304', ZodOpenApiResponseObject> {
  const whole = successOf(contract, options);
  // The digest of a part would need another read of it.
  const headers = Object.entries(whole.headers ?? {}).filter(([name]) => name !== 'Content-Digest');
  return {
    '206': {
      ...whole,
      description: 'One part of the file.',
      headers: { ...Object.fromEntries(headers), ...headerRefs('Content-Range') },
    },
    '304': {
      description: 'You have the file.',
      headers: {
        ...headerRefs('X-Request-Id', 'Cache-Control', 'Vary', ...RATE_LIMIT_HEADERS),
        ETag: FILE_HEADERS.ETag,
      },
    },
  };
}

function contentOf(
  { answer, operationId }: RouteContract,
  decimalFormat: DecimalFormat,
): NonNullable<ZodOpenApiResponseObject['content']> {
  if (answer.envelope === 'file') {
    return Object.fromEntries(answer.mediaTypes.map((type) => [type, { schema: { ...FILE_SCHEMAS[type] } }]));
  }
  if (answer.envelope === 'download') return { [answer.mediaType]: { schema: {} } };
  if (answer.envelope === 'stream') {
    const example = JSON.parse(toJsonText(answer.example, decimalFormat));
    return { 'text/event-stream': { schema: answer.data, example } };
  }
  const success = z.literal(true);
  const { data } = answer;
  const base = { success: true, data: answer.example };
  const more = TOLERANT_OPERATIONS.has(operationId) ? { warnings } : {};
  const cursor = answer.envelope === 'account' && answer.isPaged ? cursorMeta.shape : {};
  const accountMeta = { ...cursor, ...more };
  const schema =
    answer.envelope === 'market'
      ? z.object({ success, data, meta: z.object({ ...requestMeta, ...answer.meta?.shape, ...more }) })
      : z.object({
          success,
          data,
          ...(Object.keys(accountMeta).length > 0 && { meta: z.object(accountMeta).optional() }),
        });
  const example: ApiJson =
    answer.envelope === 'market'
      ? { ...base, meta: { request_id: HEADERS['X-Request-Id'].example, timestamp: 1767323045, ...answer.metaExample } }
      : { ...base, ...(answer.isPaged && { meta: { next_cursor: null } }) };
  return {
    'application/json': { schema, example: JSON.parse(toJsonText(example, decimalFormat)) },
    ...(isListed(answer) && { 'text/csv': csvContent(answer, decimalFormat) }),
  };
}

function csvContent({ columns, example }: ListAnswer, decimalFormat: DecimalFormat) {
  return {
    schema: {
      type: 'string' as const,
      description: 'A header line, then a line per item. Arrays and objects are JSON.',
    },
    example: csvOfList(toJsonText(example, decimalFormat), columns),
  };
}

const requestMeta = { request_id: z.string(), timestamp: epochTime };
const FILE_SCHEMAS: Readonly<Record<string, { type?: 'object' | 'string' }>> = {
  'application/json': { type: 'object' },
};
