import { OddswireError } from '../../src/domain/values/errors.ts';
import { openDeadline } from '../../src/domain/values/signals.ts';

const REQUEST_MS = 5_000;

/** The API answered a request of the demo with an error or an unexpected body. */
export class DemoApiError extends OddswireError {
  readonly status: number;

  constructor(method: string, path: string, status: number, answer: string) {
    super('demo_api', `${method} ${path} answered ${status}: ${answer.slice(0, 200)}`, { retryable: true });
    this.status = status;
  }
}

export interface DemoMarket {
  readonly market_id: string;
  readonly title: string;
}

interface DemoPrice {
  readonly market_id: string;
  readonly outcomes: readonly { readonly outcome_id: string; readonly price: number }[];
}

export interface DemoAlert {
  readonly id: string;
  readonly status: string;
}

interface DemoWebhook {
  readonly id: string;
  readonly url: string;
  readonly events: readonly string[];
  readonly status: string;
}

interface DemoWallet {
  readonly id: string;
  readonly address: string;
}

/** The public HTTP API as the demo uses it, with the demo's key. */
export interface DemoApi {
  /** Open markets; empty before the first poll. */
  readonly markets: (limit: number) => Promise<readonly DemoMarket[]>;
  /** Null while the market has no price. */
  readonly price: (marketId: string) => Promise<DemoPrice | null>;
  /** The prices of those of up to 100 markets that have some, in this order. */
  readonly prices: (marketIds: readonly string[]) => Promise<readonly DemoPrice[]>;
  /** The title of a market of any venue. */
  readonly title: (venue: string, marketId: string) => Promise<string>;
  /** Asks for the trades of a market since this time, epoch seconds: the venue's history of it is then read. */
  readonly askTrades: (marketId: string, start: number) => Promise<void>;
  readonly webhooks: () => Promise<readonly DemoWebhook[]>;
  readonly createWebhook: (body: object) => Promise<DemoWebhook>;
  readonly updateWebhook: (id: string, body: object) => Promise<void>;
  readonly deleteWebhook: (id: string) => Promise<void>;
  readonly alerts: () => Promise<readonly DemoAlert[]>;
  readonly createAlert: (body: object) => Promise<DemoAlert>;
  readonly deleteAlert: (id: string) => Promise<void>;
  readonly wallets: () => Promise<readonly DemoWallet[]>;
  readonly createWallet: (body: object) => Promise<DemoWallet>;
}

/** Every call throws DemoApiError on an unexpected answer, and the error of fetch without an answer. */
export function connectDemoApi(apiUrl: string, apiKey: string, signal: AbortSignal): DemoApi {
  const bearer = { authorization: `Bearer ${apiKey}` };
  const header = { 'x-api-key': apiKey };

  async function call<T>(method: string, path: string, headers: Record<string, string>, body?: object): Promise<T> {
    const deadline = openDeadline([signal], REQUEST_MS);
    try {
      const response = await fetch(`${apiUrl}${path}`, {
        method,
        headers: body === undefined ? headers : { ...headers, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: deadline.signal,
      });
      const text = await response.text();
      if (!response.ok) throw new DemoApiError(method, path, response.status, text);
      const { data } = JSON.parse(text) as { data: T };
      return data;
    } finally {
      deadline.close();
    }
  }

  return {
    markets: (limit) => call('GET', `/v1/polymarket/markets?status=open&limit=${limit}`, bearer),
    async price(marketId) {
      try {
        return await call<DemoPrice>('GET', `/v1/polymarket/markets/${encodeURIComponent(marketId)}/prices`, bearer);
      } catch (error) {
        if (error instanceof DemoApiError && error.status === 404) return null;
        throw error;
      }
    },
    prices: (marketIds) =>
      call('GET', `/v1/polymarket/prices?market_ids=${marketIds.map(encodeURIComponent).join(',')}`, bearer),
    async title(venue, marketId) {
      const path = `/v1/${encodeURIComponent(venue)}/markets/${encodeURIComponent(marketId)}`;
      return (await call<DemoMarket>('GET', path, bearer)).title;
    },
    async askTrades(marketId, start) {
      await call('GET', `/v1/polymarket/markets/${encodeURIComponent(marketId)}/trades?limit=1&start=${start}`, bearer);
    },
    webhooks: () => call('GET', '/v1/webhooks?limit=1000', header),
    createWebhook: (body) => call('POST', '/v1/webhooks', header, body),
    updateWebhook: (id, body) => call('PUT', `/v1/webhooks/${id}`, header, body),
    deleteWebhook: (id) => call('DELETE', `/v1/webhooks/${id}`, header),
    alerts: () => call('GET', '/v1/alerts?limit=1000', header),
    createAlert: (body) => call('POST', '/v1/alerts', header, body),
    deleteAlert: (id) => call('DELETE', `/v1/alerts/${id}`, header),
    wallets: () => call('GET', '/v1/wallets?limit=1000', header),
    createWallet: (body) => call('POST', '/v1/wallets', header, body),
  };
}
