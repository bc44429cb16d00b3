import type { SimRequest } from './reply.ts';

export interface DelayOptions {
  readonly delayMs?: number | undefined;
  readonly kalshiPageDelayMs?: number | undefined;
}

const KALSHI_LISTS = new Set(['/trade-api/v2/markets', '/trade-api/v2/events']);

/** The time that the venue takes to answer a request; other requests are answered meanwhile. */
export function delayOf(
  { host, path, query }: Pick<SimRequest, 'host' | 'path' | 'query'>,
  options: DelayOptions,
): number {
  const { delayMs = 0, kalshiPageDelayMs = delayMs } = options;
  // A look-up by ticker is no page of a list.
  const isPage = host === 'kalshi' && KALSHI_LISTS.has(path) && !query.has('tickers');
  return isPage ? kalshiPageDelayMs : delayMs;
}
