import { expect } from 'vitest';
import { type Exchange, type ExchangeOptions, startExchange } from '../../../sim/exchange.ts';
import { forTests } from '../../support/for-tests.ts';

/** The second at which live time begins on the exchanges of these tests. */
export const NOW = 1_790_000_000;

export interface GammaMarket {
  id: string;
  conditionId: string;
  clobTokenIds: string;
  closed: boolean;
  outcomePrices?: string;
  lastTradePrice?: number;
  bestBid?: number;
  bestAsk?: number;
  volume24hr?: number;
  volumeNum?: number;
  acceptingOrders?: boolean;
}
export interface GammaPage {
  markets: GammaMarket[];
  next_cursor?: string;
}
export interface DataTrade {
  token_id: string;
  condition_id: string;
  slug: string;
  event_slug: string;
  outcome_index: number;
  side: string;
  price: number;
  size: number;
  timestamp: number;
  proxy_wallet: string;
  transaction_hash: string;
}
export interface DataPage<R = DataTrade> {
  data: R[];
  pagination: { limit: number; has_more: boolean; next_cursor: string | null };
}

/** An exchange with calls that check their answers. */
export interface HttpExchange {
  readonly exchange: Exchange;
  get<T>(url: string, status?: number): Promise<T>;
  post<T>(url: string, body: unknown, status?: number): Promise<T>;
  /** All pages of the Data API's `/v2/trades`, newest first, past its CDN. */
  trades(query: string): Promise<DataTrade[]>;
  /** Addresses of the hosts. */
  gamma(path: string): string;
  clob(path: string): string;
  data(path: string): string;
  kalshi(path: string): string;
  manifold(path: string): string;
  /** All pages of Gamma's keyset listing. */
  walk(query: string): Promise<GammaMarket[]>;
}

/** A small exchange on a clock that only tests advance. */
export async function startHttpExchange(options: ExchangeOptions = {}): Promise<HttpExchange> {
  const exchange = await startExchange({
    seed: 11,
    markets: 40,
    historyHours: 1,
    nowSecond: NOW,
    paused: true,
    ...options,
  });

  async function get<T>(url: string, status = 200): Promise<T> {
    const response = await fetch(url);
    expect([response.status, url]).toEqual([status, url]);
    expect(response.headers.get('content-type')).toBe('application/json');
    return (await response.json()) as T;
  }

  const gamma = (path: string) => `${exchange.gammaUrl}${path}`;
  let salt = 0;
  return {
    exchange,
    get,
    async post<T>(url: string, body: unknown, status = 200): Promise<T> {
      const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
      expect([response.status, url]).toEqual([status, url]);
      return (await response.json()) as T;
    },
    async trades(query) {
      const rows: DataTrade[] = [];
      salt += 1;
      // Each call has an address of its own.
      const filters = `${query}&filter_amount=${(salt / 1e9).toFixed(9)}`;
      for (let cursor: string | null = null, isFirst = true; isFirst || cursor !== null; isFirst = false) {
        const place: string = cursor === null ? 'limit=1000' : `cursor=${cursor}`;
        const page: DataPage = await get(`${exchange.dataUrl}/v2/trades?${filters}&${place}`);
        rows.push(...page.data);
        cursor = page.pagination.next_cursor;
      }
      return rows;
    },
    gamma,
    clob: (path) => `${exchange.clobUrl}${path}`,
    data: (path) => `${exchange.dataUrl}${path}`,
    kalshi: (path) => `${exchange.kalshiUrl}${path}`,
    manifold: (path) => `${exchange.manifoldUrl}${path}`,
    async walk(query) {
      const found: GammaMarket[] = [];
      let cursor: string | undefined;
      for (let pages = 0; pages < 200; pages += 1) {
        const after = cursor === undefined ? '' : `&after_cursor=${encodeURIComponent(cursor)}`;
        const page = await get<GammaPage>(gamma(`/markets/keyset?${query}${after}`));
        found.push(...page.markets);
        if (!('next_cursor' in page)) return found;
        cursor = page.next_cursor;
      }
      throw new Error('the walk does not end');
    },
  };
}

/** An exchange for the tests of a file, some seconds after its start. */
export function useHttpExchange(options: ExchangeOptions, seconds: number): { http: HttpExchange; exchange: Exchange } {
  const http = forTests(
    async () => {
      const started = await startHttpExchange(options);
      started.exchange.step(seconds);
      return started;
    },
    ({ exchange }) => exchange.close(),
  );
  return { http, exchange: forTests(async () => http.exchange) };
}
