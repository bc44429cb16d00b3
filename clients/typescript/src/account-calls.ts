import type { DecimalType } from './decimals.ts';
import { place } from './market-calls.ts';
import { asPage, eachItem, type PageOptions } from './paging.ts';
import type { operations } from './schema.ts';
import type { CallOptions, Transport, WriteOptions } from './transport.ts';
import type { AlertBacktest, AlertBacktestResult } from './types.ts';

type BodyOf<Id extends keyof operations> = NonNullable<operations[Id]['requestBody']>['content']['application/json'];
type QueryOf<Id extends keyof operations> = NonNullable<operations[Id]['parameters']['query']>;
type ListQuery = QueryOf<'listWebhooks'>;
type ListOptions = CallOptions & PageOptions;
type AlertQuery = QueryOf<'listAlerts'>;
type EventQuery = QueryOf<'listAccountEvents'>;
type WalletEventQuery = QueryOf<'listWalletEvents'>;
type KeyQuery = QueryOf<'listKeys'>;
type MarketPath = operations['watchMarket']['parameters']['path'];
type DeliveryQuery = Omit<QueryOf<'listDeliveries'>, 'since'> & { since?: string | Date };

type AccountDeliveryQuery = Omit<QueryOf<'listAccountDeliveries'>, 'since'> & { since?: string | Date };

/** Calls for the resources of an account. They return the resource itself; lists return `{data, meta}`. */
export function accountCalls<D extends DecimalType>({ http, send }: Transport<D>) {
  const listWebhooks = async (query: ListQuery = {}, options?: CallOptions) =>
    asPage(await send('read', options, (attempt) => http.GET('/v1/webhooks', { ...attempt, params: { query } })));
  const listDeliveries = async (webhook_id: string, { since, ...query }: DeliveryQuery = {}, options?: CallOptions) =>
    asPage(
      await send('read', options, (attempt) =>
        http.GET('/v1/webhooks/{webhook_id}/deliveries', {
          ...attempt,
          params: { path: { webhook_id }, query: { ...query, ...(since !== undefined && { since: isoTime(since) }) } },
        }),
      ),
    );
  const listAllDeliveries = async ({ since, ...query }: AccountDeliveryQuery = {}, options?: CallOptions) =>
    asPage(
      await send('read', options, (attempt) =>
        http.GET('/v1/deliveries', {
          ...attempt,
          params: { query: { ...query, ...(since !== undefined && { since: isoTime(since) }) } },
        }),
      ),
    );
  const listEvents = async (query: EventQuery = {}, options?: CallOptions) =>
    asPage(await send('read', options, (attempt) => http.GET('/v1/events', { ...attempt, params: { query } })));
  const listAlerts = async (query: AlertQuery = {}, options?: CallOptions) =>
    asPage(await send('read', options, (attempt) => http.GET('/v1/alerts', { ...attempt, params: { query } })));
  const listWallets = async (query: ListQuery = {}, options?: CallOptions) =>
    asPage(await send('read', options, (attempt) => http.GET('/v1/wallets', { ...attempt, params: { query } })));
  const listWatchlist = async (query: ListQuery = {}, options?: CallOptions) =>
    asPage(await send('read', options, (attempt) => http.GET('/v1/watchlist', { ...attempt, params: { query } })));
  const listBalances = async (wallet_id: string, query: ListQuery = {}, options?: CallOptions) =>
    asPage(
      await send('read', options, (attempt) =>
        http.GET('/v1/wallets/{wallet_id}/balances', { ...attempt, params: { path: { wallet_id }, query } }),
      ),
    );
  const listWalletEvents = async (wallet_id: string, query: WalletEventQuery = {}, options?: CallOptions) =>
    asPage(
      await send('read', options, (attempt) =>
        http.GET('/v1/wallets/{wallet_id}/events', { ...attempt, params: { path: { wallet_id }, query } }),
      ),
    );
  const listKeys = async (query: KeyQuery = {}, options?: CallOptions) =>
    asPage(await send('read', options, (attempt) => http.GET('/v1/keys', { ...attempt, params: { query } })));

  return {
    webhooks: {
      /** No other answer holds the secret, so store it. */
      create: async (body: BodyOf<'createWebhook'>, options?: WriteOptions) =>
        (await send('create', options, (attempt) => http.POST('/v1/webhooks', { ...attempt, body }))).data,
      /** One page, newest first. */
      list: listWebhooks,
      /** All items, page by page. */
      iterate: (options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) => listWebhooks(place(options, cursor), options)),
      get: async (webhook_id: string, options?: CallOptions) =>
        (
          await send('read', options, (attempt) =>
            http.GET('/v1/webhooks/{webhook_id}', { ...attempt, params: { path: { webhook_id } } }),
          )
        ).data,
      /** A pause cancels pending deliveries. */
      update: async (webhook_id: string, body: BodyOf<'updateWebhook'>, options?: CallOptions) =>
        (
          await send('replace', options, (attempt) =>
            http.PUT('/v1/webhooks/{webhook_id}', { ...attempt, params: { path: { webhook_id } }, body }),
          )
        ).data,
      /** Cancels pending deliveries. */
      delete: async (webhook_id: string, options?: CallOptions) =>
        (
          await send('delete', options, (attempt) =>
            http.DELETE('/v1/webhooks/{webhook_id}', { ...attempt, params: { path: { webhook_id } } }),
          )
        ).data,
      /** Sends a test event, or a sample of an event type. Returns the delivery. */
      test: async (webhook_id: string, body: BodyOf<'testWebhook'> = {}, options?: WriteOptions) =>
        (
          await send('create', options, (attempt) =>
            http.POST('/v1/webhooks/{webhook_id}/test', { ...attempt, params: { path: { webhook_id } }, body }),
          )
        ).data,
      /** The previous secret also signs for 24 hours; see `verifyWebhook`. */
      rotateSecret: async (webhook_id: string, body: BodyOf<'rotateWebhookSecret'> = {}, options?: WriteOptions) =>
        (
          await send('create', options, (attempt) =>
            http.POST('/v1/webhooks/{webhook_id}/rotate-secret', {
              ...attempt,
              params: { path: { webhook_id } },
              body,
            }),
          )
        ).data,
    },
    deliveries: {
      /** One page of a webhook's deliveries, newest first. */
      list: listDeliveries,
      /** All items, page by page. */
      iterate: (
        webhook_id: string,
        query: Omit<DeliveryQuery, 'limit' | 'cursor'> = {},
        options: CallOptions & PageOptions = {},
      ) =>
        eachItem(options.signal, (cursor) =>
          listDeliveries(webhook_id, { ...query, ...place(options, cursor) }, options),
        ),
      /** One page of the deliveries of all webhooks, newest first. */
      listAll: listAllDeliveries,
      /** All items, page by page. */
      iterateAll: (
        query: Omit<AccountDeliveryQuery, 'limit' | 'cursor'> = {},
        options: CallOptions & PageOptions = {},
      ) => eachItem(options.signal, (cursor) => listAllDeliveries({ ...query, ...place(options, cursor) }, options)),
      /** One delivery with its attempts and its payload. */
      get: async (webhook_id: string, delivery_id: string, options?: CallOptions) =>
        (
          await send('read', options, (attempt) =>
            http.GET('/v1/webhooks/{webhook_id}/deliveries/{delivery_id}', {
              ...attempt,
              params: { path: { webhook_id, delivery_id } },
            }),
          )
        ).data,
      /** Sends a finished delivery again. */
      retry: async (webhook_id: string, delivery_id: string, options?: WriteOptions) =>
        (
          await send('create', options, (attempt) =>
            http.POST('/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry', {
              ...attempt,
              params: { path: { webhook_id, delivery_id } },
            }),
          )
        ).data,
      /** Sends the undelivered events of the webhook since a moment, at most 14 days ago. */
      recover: async (webhook_id: string, { since }: { since: string | Date }, options?: WriteOptions) =>
        (
          await send('create', options, (attempt) =>
            http.POST('/v1/webhooks/{webhook_id}/recover', {
              ...attempt,
              params: { path: { webhook_id } },
              body: { since: isoTime(since) },
            }),
          )
        ).data,
      /** One page of the events of the account, newest first, also of events that no webhook got. */
      listEvents,
      /** All of them, page by page. */
      iterateEvents: (query: Omit<EventQuery, 'limit' | 'cursor'> = {}, options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) => listEvents({ ...query, ...place(options, cursor) }, options)),
    },
    alerts: {
      create: async (body: BodyOf<'createAlert'>, options?: WriteOptions) =>
        (await send('create', options, (attempt) => http.POST('/v1/alerts', { ...attempt, body }))).data,
      /** One page, newest first. */
      list: listAlerts,
      /** All items, page by page. The options may also stand beside the filters. */
      iterate: (query: Omit<AlertQuery, 'limit' | 'cursor'> & ListOptions = {}, options: ListOptions = {}) => {
        const call: typeof query = { ...query, ...options };
        const { pageSize: _, signal, timeoutMs: __, retry: ___, requestId: ____, ...filter } = call;
        return eachItem(signal, (cursor) => listAlerts({ ...filter, ...place(call, cursor) }, call));
      },
      /** One result per item, in the order of the request. */
      createMany: async (body: BodyOf<'createAlerts'>, options?: WriteOptions) =>
        (await send('create', options, (attempt) => http.POST('/v1/alerts/bulk/create', { ...attempt, body }))).data,
      /** One result per id, in the order of the request. */
      deleteMany: async (body: BodyOf<'deleteAlerts'>, options?: WriteOptions) =>
        (await send('create', options, (attempt) => http.POST('/v1/alerts/bulk/delete', { ...attempt, body }))).data,
      /** Pauses, resumes or changes an alert. */
      update: async (alert_id: string, body: BodyOf<'updateAlert'>, options?: CallOptions) =>
        (
          await send('replace', options, (attempt) =>
            http.PATCH('/v1/alerts/{alert_id}', { ...attempt, params: { path: { alert_id } }, body }),
          )
        ).data,
      /** The firings that an alert would have had. A long range gives a job instead, with an `id` for `getBacktest`. */
      backtest: async (
        body: BodyOf<'backtestAlert'>,
        options?: WriteOptions,
      ): Promise<AlertBacktest | AlertBacktestResult> =>
        (await send('create', options, (attempt) => http.POST('/v1/alerts/backtest', { ...attempt, body }))).data,
      /** The state of a job; at its end with the result. */
      getBacktest: async (backtest_id: string, options?: CallOptions) =>
        (
          await send('read', options, (attempt) =>
            http.GET('/v1/alerts/backtests/{backtest_id}', { ...attempt, params: { path: { backtest_id } } }),
          )
        ).data,
      get: async (alert_id: string, options?: CallOptions) =>
        (
          await send('read', options, (attempt) =>
            http.GET('/v1/alerts/{alert_id}', { ...attempt, params: { path: { alert_id } } }),
          )
        ).data,
      delete: async (alert_id: string, options?: CallOptions) =>
        (
          await send('delete', options, (attempt) =>
            http.DELETE('/v1/alerts/{alert_id}', { ...attempt, params: { path: { alert_id } } }),
          )
        ).data,
    },
    wallets: {
      create: async (body: BodyOf<'createWallet'>, options?: WriteOptions) =>
        (await send('create', options, (attempt) => http.POST('/v1/wallets', { ...attempt, body }))).data,
      /** One page, newest first. */
      list: listWallets,
      /** All items, page by page. */
      iterate: (options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) => listWallets(place(options, cursor), options)),
      get: async (wallet_id: string, options?: CallOptions) =>
        (
          await send('read', options, (attempt) =>
            http.GET('/v1/wallets/{wallet_id}', { ...attempt, params: { path: { wallet_id } } }),
          )
        ).data,
      delete: async (wallet_id: string, options?: CallOptions) =>
        (
          await send('delete', options, (attempt) =>
            http.DELETE('/v1/wallets/{wallet_id}', { ...attempt, params: { path: { wallet_id } } }),
          )
        ).data,
      /** One page of the balances of the last complete read, by token. */
      listBalances,
      /** All of them, page by page. */
      iterateBalances: (wallet_id: string, options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) => listBalances(wallet_id, place(options, cursor), options)),
      /** One page of the events of a wallet, newest first. */
      listEvents: listWalletEvents,
      /** All of them, page by page. */
      iterateEvents: (
        wallet_id: string,
        query: Omit<WalletEventQuery, 'limit' | 'cursor'> = {},
        options: CallOptions & PageOptions = {},
      ) =>
        eachItem(options.signal, (cursor) =>
          listWalletEvents(wallet_id, { ...query, ...place(options, cursor) }, options),
        ),
    },
    watchlist: {
      /** One page of markets, the one that was added last first. */
      list: listWatchlist,
      /** All items, page by page. */
      iterate: (options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) => listWatchlist(place(options, cursor), options)),
      /** A market that is on the list stays where it is. */
      add: async (market: MarketPath, options?: CallOptions) =>
        (
          await send('replace', options, (attempt) =>
            http.PUT('/v1/watchlist/{venue}/{market_id}', { ...attempt, params: { path: market } }),
          )
        ).data,
      remove: async (market: MarketPath, options?: CallOptions) =>
        (
          await send('delete', options, (attempt) =>
            http.DELETE('/v1/watchlist/{venue}/{market_id}', { ...attempt, params: { path: market } }),
          )
        ).data,
    },
    keys: {
      /** No other answer holds the key, so store it. */
      create: async (body: BodyOf<'createKey'>, options?: WriteOptions) =>
        (await send('create', options, (attempt) => http.POST('/v1/keys', { ...attempt, body }))).data,
      /** One page, newest first. */
      list: listKeys,
      /** All items, page by page. */
      iterate: (query: Omit<KeyQuery, 'limit' | 'cursor'> = {}, options: CallOptions & PageOptions = {}) =>
        eachItem(options.signal, (cursor) => listKeys({ ...query, ...place(options, cursor) }, options)),
      get: async (key_id: string, options?: CallOptions) =>
        (
          await send('read', options, (attempt) =>
            http.GET('/v1/keys/{key_id}', { ...attempt, params: { path: { key_id } } }),
          )
        ).data,
      /** Ends a key permanently, with its streams and sessions; also the key of this client. */
      revoke: async (key_id: string, options?: CallOptions) =>
        (
          await send('delete', options, (attempt) =>
            http.DELETE('/v1/keys/{key_id}', { ...attempt, params: { path: { key_id } } }),
          )
        ).data,
    },
    health: {
      /** Liveness of the process. */
      live: async (options?: CallOptions) =>
        (await send('read', options, (attempt) => http.GET('/health/live', attempt))).data,
      /** Readiness. Throws `not_ready` when a dependency is unavailable. */
      ready: async (options?: CallOptions) =>
        (await send('read', options, (attempt) => http.GET('/health/ready', attempt))).data,
    },
    /** The OpenAPI document of the service. */
    openApi: (options?: CallOptions): Promise<object> =>
      send('read', options, (attempt) => http.GET('/openapi.json', attempt)),
    /** The AsyncAPI document of the streams. */
    asyncApi: (options?: CallOptions): Promise<object> =>
      send('read', options, (attempt) => http.GET('/asyncapi.json', attempt)),
  };
}

function isoTime(moment: string | Date): string {
  return typeof moment === 'string' ? moment : moment.toISOString();
}
