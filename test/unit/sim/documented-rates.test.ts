import { describe, expect, it } from 'vitest';
import { delayOf } from '../../../sim/server/delays.ts';
import { DocumentedRates } from '../../../sim/server/documented-rates.ts';
import type { SimHost } from '../../../sim/server/reply.ts';

const PATHS: Partial<Record<SimHost, string>> = { kalshi: '/trade-api/v2/markets', clob: '/books', data: '/v2/trades' };

function statuses(rates: DocumentedRates, host: SimHost, requests: number, path = PATHS[host] ?? '/'): number[] {
  return Array.from({ length: requests }, () => rates.refusalOf({ host, path })?.status ?? 200);
}

describe('DocumentedRates', () => {
  it.each([
    ['kalshi', 40, 2_000],
    ['clob', 500, 10_000],
    ['gamma', 300, 10_000],
  ] as const)('refuses the request after %s has accepted %i in %i ms', (host, requests, windowMs) => {
    let now = 0;
    const rates = new DocumentedRates(() => now);
    expect(new Set(statuses(rates, host, requests))).toEqual(new Set([200]));
    expect(statuses(rates, host, 2)).toEqual([429, 429]);
    now = windowMs - 1;
    expect(statuses(rates, host, 1)).toEqual([429]);
    now = windowMs;
    expect(statuses(rates, host, 1)).toEqual([200]);
  });

  it('answers above the limit of Kalshi without Retry-After, and of Solana with it', () => {
    const rates = new DocumentedRates(() => 0);
    statuses(rates, 'kalshi', 40);
    expect(rates.refusalOf({ host: 'kalshi', path: '/' })).toEqual({
      status: 429,
      body: '{"error":"too many requests"}',
    });
    statuses(rates, 'solana', 100);
    expect(rates.refusalOf({ host: 'solana', path: '/' })?.headers).toEqual({ 'retry-after': '10' });
  });

  it('counts the paths of a host that have separate limits separately', () => {
    const rates = new DocumentedRates(() => 0);
    statuses(rates, 'data', 300);
    expect(statuses(rates, 'data', 1)).toEqual([429]);
    expect(statuses(rates, 'data', 1, '/v2/activity')).toEqual([200]);
  });
});

describe('delayOf', () => {
  const request = (path: string, query = '') => ({ host: 'kalshi' as const, path, query: new URLSearchParams(query) });

  it('delays a page of a list of Kalshi by its own time, and a look-up by ticker like any request', () => {
    const options = { delayMs: 150, kalshiPageDelayMs: 400 };
    expect(delayOf(request('/trade-api/v2/markets', 'limit=1000'), options)).toBe(400);
    expect(delayOf(request('/trade-api/v2/events'), options)).toBe(400);
    expect(delayOf(request('/trade-api/v2/markets', 'tickers=A'), options)).toBe(150);
    expect(delayOf(request('/trade-api/v2/markets/trades'), options)).toBe(150);
    expect(delayOf({ ...request('/books'), host: 'clob' }, options)).toBe(150);
  });

  it('delays a page of Kalshi like any request without its own time', () => {
    expect(delayOf(request('/trade-api/v2/markets'), { delayMs: 20 })).toBe(20);
    expect(delayOf(request('/trade-api/v2/markets'), {})).toBe(0);
  });
});
