import { afterEach, describe, expect, it, vi } from 'vitest';
import { GUARD_MS } from '../../support/eventually.ts';
import { useHttpExchange } from './http-exchange.ts';

const { http, exchange } = useHttpExchange({ historyHours: 0.1 }, 200);
afterEach(() => {
  exchange.clearFaults();
});

describe('an injected fault', () => {
  const url = () => http.data('/v2/trades?limit=50');
  const inject = (fault: object) => http.post<{ id: number }>(`${exchange.url}/_sim/faults`, fault, 201);

  it('delays an answer', async () => {
    await inject({ host: 'data', kind: 'latency', latencyMs: 120, count: 1 });
    const startedAt = performance.now();
    await http.get(url());
    // Timers may fire a millisecond early.
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(118);
    expect(exchange.requests().at(-1)).toMatchObject({ host: 'data', path: '/v2/trades', faults: ['latency'] });
  });

  it('answers 429 with Retry-After, then ends', async () => {
    await inject({ host: '*', path: '/v2/trades', kind: 'status429', retryAfterSeconds: 7, count: 1 });
    const refused = await fetch(url());
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '7']);
    await refused.text();
    await http.get(url());
  });

  it('answers 500 on one host only', async () => {
    await inject({ host: 'gamma', kind: 'status500' });
    expect(await http.get(http.gamma('/markets'), 500)).toHaveProperty('error');
    await http.get(url());
    const listed = await http.get<{ applied: number }[]>(`${exchange.url}/_sim/faults`);
    expect(listed).toMatchObject([{ host: 'gamma', kind: 'status500', applied: 1 }]);
    const cleared = await fetch(`${exchange.url}/_sim/faults`, { method: 'DELETE' });
    expect(await cleared.json()).toEqual({ cleared: 1 });
    await http.get(http.gamma('/markets'));
  });

  it('cuts a body under a matching length, or breaks off in the middle of the announced length', async () => {
    const whole = await (await fetch(url())).text();
    await inject({ host: 'data', kind: 'truncate', count: 1 });
    const cut = await fetch(url());
    expect(cut.status).toBe(200);
    const text = await cut.text();
    expect(whole.startsWith(text)).toBe(true);
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
    await inject({ host: 'data', kind: 'truncate', contentLength: 'full', count: 1 });
    const broken = await fetch(url());
    expect(Number(broken.headers.get('content-length'))).toBe(Buffer.byteLength(whole));
    await expect(broken.text()).rejects.toThrow();
  });

  it('renames a field', async () => {
    await inject({ host: 'data', kind: 'rename_field', field: { from: 'price', to: 'px' }, count: 1 });
    const { data } = await http.get<{ data: Record<string, unknown>[] }>(url());
    expect(data.every((row) => 'px' in row && !('price' in row))).toBe(true);
  });

  it('repeats an answer with its age for its lifetime, by exact address (cdn_cache)', async () => {
    await inject({ host: 'kalshi', path: '/trade-api/v2/markets', kind: 'cdn_cache', maxAgeSeconds: 300 });
    const markets = http.kalshi('/markets?limit=5&mve_filter=exclude');
    const ask = async (target: string) => {
      const response = await fetch(target);
      const header = (name: string) => response.headers.get(name);
      const seen = {
        age: header('age'),
        cache: header('x-cache'),
        trace: header('x-trace-id'),
        text: await response.text(),
      };
      expect([response.status, header('cache-control')]).toEqual([200, 'public, max-age=300']);
      return seen;
    };
    const first = await ask(markets);
    expect([first.age, first.cache]).toEqual([null, 'Miss from cloudfront']);
    exchange.idle(299);
    expect(await ask(markets)).toEqual({ ...first, age: '299', cache: 'Hit from cloudfront' });
    const other = await ask(http.kalshi('/markets?limit=6&mve_filter=exclude'));
    expect([other.cache, other.trace === first.trace]).toEqual(['Miss from cloudfront', false]);
    exchange.idle(1);
    expect(await ask(markets)).toMatchObject({ age: null, cache: 'Miss from cloudfront' });
  });

  it('keeps neither an error nor a POST (cdn_cache)', async () => {
    await inject({ host: '*', kind: 'cdn_cache', maxAgeSeconds: 300 });
    const refused = await fetch(http.gamma('/markets?limit=0'));
    const posted = await fetch(http.clob('/books'), { method: 'POST', body: '[]' });
    for (const response of [refused, posted]) {
      await response.text();
      expect(response.headers.get('x-cache')).toBeNull();
    }
  });

  it('resets the connection', async () => {
    await inject({ host: 'data', kind: 'reset', count: 1 });
    await expect(fetch(url())).rejects.toMatchObject({
      cause: { code: expect.stringMatching(/ECONNRESET|UND_ERR/) },
    });
    await http.get(url());
  });

  it('sends an answer slowly, but completely', async () => {
    const whole = await (await fetch(url())).text();
    await inject({ host: 'polymarket', kind: 'drip', latencyMs: 100, count: 1 });
    const startedAt = performance.now();
    const dripping = await fetch(url());
    expect(await dripping.text()).toBe(whole);
    // Twenty timers, each of which may fire a millisecond early.
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(80);
  });

  it('never answers, and ends when the client disconnects', async () => {
    await inject({ host: 'data', kind: 'hang', count: 1 });
    const patience = new AbortController();
    const hanging = fetch(url(), { signal: patience.signal });
    // A client that gives up before its request arrives leaves the fault to the next request.
    await vi.waitUntil(() => exchange.requests().at(-1)?.faults.includes('hang'), { timeout: GUARD_MS });
    patience.abort();
    await expect(hanging).rejects.toMatchObject({ name: 'AbortError' });
    await http.get(url());
  });

  it('answers with a web page', async () => {
    await inject({ host: 'data', kind: 'html', count: 1 });
    const page = await fetch(url());
    expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(await page.text()).toMatch(/^<!DOCTYPE html>/);
  });

  it('sets a wrong value of a field', async () => {
    await inject({ host: 'data', kind: 'set_field', set: { field: 'price', value: { was: null } }, count: 1 });
    const { data } = await http.get<{ data: Record<string, unknown>[] }>(url());
    expect(data.length).toBeGreaterThan(0);
    for (const row of data) expect(row['price']).toEqual({ was: null });
  });

  it('answers another server error on request', async () => {
    await inject({ host: 'data', kind: 'status500', status: 503, count: 1 });
    await http.get(url(), 503);
  });

  it('affects the three hosts of Polymarket under one name', async () => {
    await inject({ host: 'polymarket', kind: 'status500' });
    for (const broken of [url(), http.gamma('/markets'), http.clob('/book')]) await http.get(broken, 500);
    await http.get(http.kalshi('/markets'));
  });

  it('is rejected when the request is invalid', async () => {
    await http.post(`${exchange.url}/_sim/faults`, { host: '*', kind: 'fire' }, 400);
  });
});
