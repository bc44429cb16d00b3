import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { ProcessLag } from '../../../src/observe/process-lag.ts';
import { VenueError } from '../../../src/venues/errors.ts';
import { createVenueHttp, type VenueHttp, type VenueHttpOptions } from '../../../src/venues/http/http.ts';
import type { RequestEvent } from '../../../src/venues/observer.ts';
import { GUARD_MS } from '../../support/eventually.ts';
import type { EventOf } from '../../support/venue-events.ts';
import { hangUp, json, raw, ScriptedServer, silence } from './scripted-server.ts';

const server = new ScriptedServer();
/** A busy machine must not turn the faults of these tests into its own. */
const NEVER_LATE = new ProcessLag(() => 0);
let baseUrl = '';
let http: VenueHttp;
let requests: RequestEvent[];
let breakers: EventOf<'onBreaker'>[];

function open(options: Partial<VenueHttpOptions> = {}): VenueHttp {
  return createVenueHttp({
    venue: 'test',
    baseUrl,
    requestsPerSecond: 10_000,
    retryDelayMs: 1,
    breakerFailures: 100,
    lag: NEVER_LATE,
    observer: { onRequest: (event) => requests.push(event), onBreaker: (event) => breakers.push(event) },
    ...options,
  });
}

function get(signal: AbortSignal = new AbortController().signal): Promise<unknown> {
  return http.getJson({ route: 'things', path: '/things', query: new URLSearchParams({ a: '1 & 2' }), signal });
}

async function errorOf(work: Promise<unknown>): Promise<VenueError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof VenueError) return error;
    throw error;
  }
  throw new Error('expected a VenueError');
}

beforeEach(async () => {
  baseUrl = await server.start();
  server.requests.length = 0;
  requests = [];
  breakers = [];
  http = open();
});
afterEach(async () => {
  vi.useRealTimers();
  await http.close();
  await server.close();
});

describe('createVenueHttp', () => {
  it('get returns the headers and the Age of a cached answer, and reports the age', async () => {
    server.script(json(200, { ok: 1 }, { age: '219', 'x-cache': 'Hit' }));
    const signal = new AbortController().signal;
    const answer = await http.get({ route: 'things', path: '/things', signal });
    expect(answer).toMatchObject({ json: { ok: 1 }, ageMs: 219_000, headers: { 'x-cache': 'Hit' } });
    expect(requests.map(({ ageMs }) => ageMs)).toEqual([219_000]);
  });

  it('get returns an age of 0 and reports none when the answer has no Age header', async () => {
    server.script(json(200, { ok: 1 }));
    const answer = await http.get({ route: 'things', path: '/things', signal: new AbortController().signal });
    expect(answer.ageMs).toBe(0);
    expect(requests[0]).not.toHaveProperty('ageMs');
  });

  it('gets and posts JSON under the base path', async () => {
    await http.close();
    http = open({ baseUrl: `${baseUrl}/proxy/` });
    server.script(json(200, { ok: 1 }));
    expect(await get()).toEqual({ ok: 1 });
    const signal = new AbortController().signal;
    expect(await http.postJson({ route: 'read', path: '/read', body: [{ id: 'x' }], signal })).toEqual({ ok: 1 });
    expect(server.requests.map(({ method, path, body }) => [method, path, body])).toEqual([
      ['GET', '/proxy/things', ''],
      ['POST', '/proxy/read', '[{"id":"x"}]'],
    ]);
    expect(server.requests[0]?.query.get('a')).toBe('1 & 2');
    expect(requests).toMatchObject([
      { venue: 'test', host: new URL(baseUrl).host, route: 'things', outcome: 'ok', statusCode: 200 },
      { route: 'read', outcome: 'ok' },
    ]);
  });

  it('reads gzip, and throws on a broken one', async () => {
    const body = gzipSync(JSON.stringify({ long: 'x'.repeat(10_000) }));
    server.script(raw(body, { 'content-encoding': 'gzip' }));
    expect(await get()).toEqual({ long: 'x'.repeat(10_000) });
    server.script(raw(body.subarray(0, body.length - 20), { 'content-encoding': 'gzip' }));
    expect(await errorOf(get())).toMatchObject({ code: 'invalid_payload', retryable: true });
  });

  it.each([500, 502, 503, 408])('retries after HTTP %i', async (status) => {
    server.script(json(status, {}), json(status, {}), json(200, 'back'));
    expect(await get()).toBe('back');
    expect(requests.map((event) => event.outcome)).toEqual(['http_status', 'http_status', 'ok']);
  });

  it('throws after its last attempt', async () => {
    server.script(json(500, {}));
    expect(await errorOf(get())).toMatchObject({
      code: 'http_status',
      statusCode: 500,
      retryable: true,
      venue: 'test',
    });
    expect(server.requests).toHaveLength(3);
  });

  it.each([400, 401, 404, 302])('does not retry after HTTP %i', async (status) => {
    server.script(json(status, { error: 'no' }, { location: '/elsewhere' }));
    expect(await errorOf(get())).toMatchObject({ code: 'http_status', statusCode: status, retryable: false });
    expect(server.requests).toHaveLength(1);
  });

  it('retries after a cut connection and after truncated JSON', async () => {
    server.script(hangUp, raw('{"a": [1, 2'), json(200, 'whole'));
    expect(await get()).toBe('whole');
    expect(requests.map((event) => event.outcome)).toEqual(['network', 'invalid_payload', 'ok']);
  });

  it('reports the code of a network fault', async () => {
    await http.close();
    http = open({ baseUrl: 'http://127.0.0.1:1', maxAttempts: 1 });
    expect(await errorOf(get())).toMatchObject({ code: 'network', retryable: true });
  });

  it('waits for Retry-After when the deadline allows it', async () => {
    server.script(json(429, {}, { 'retry-after': '1' }), json(200, 'after a second'));
    const started = performance.now();
    expect(await get()).toBe('after a second');
    expect(performance.now() - started).toBeGreaterThanOrEqual(990);
  });

  it('fails at once when Retry-After outlasts the call, and delays other calls until then', async () => {
    server.script(json(429, {}, { 'retry-after': new Date(Date.now() + 100_000).toUTCString() }));
    const error = await errorOf(get());
    expect(error).toMatchObject({ code: 'rate_limited', statusCode: 429, retryable: true });
    expect(error.retryAfterMs).toBeGreaterThan(90_000);
    expect(await errorOf(get())).toMatchObject({ code: 'rate_limited', retryable: true });
    expect(server.requests).toHaveLength(1);
  });

  it('has one deadline over headers and body', async () => {
    await http.close();
    http = open({ attemptTimeoutMs: 100, maxAttempts: 1 });
    server.script(silence);
    expect(await errorOf(get())).toMatchObject({ code: 'timeout', retryable: true });
    let timer: NodeJS.Timeout | undefined;
    server.script((_, response) => {
      response.writeHead(200);
      // A body that drips endlessly keeps every idle timer quiet.
      timer = setInterval(() => response.write(' '), 10);
      response.on('close', () => clearInterval(timer));
    });
    expect(await errorOf(get())).toMatchObject({ code: 'timeout' });
  });

  it('begins the deadline of an attempt when a connection is free, and counts no wait for one against the venue', async () => {
    await http.close();
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    http = open({ connections: 1, attemptTimeoutMs: 300, maxAttempts: 1, breakerFailures: 2 });
    server.script(() => vi.advanceTimersByTime(300), json(200, { ok: 2 }), json(200, { ok: 3 }));
    const [first, second, third] = await Promise.allSettled([get(), get(), get()]);
    expect(first).toMatchObject({ status: 'rejected', reason: { code: 'timeout' } });
    expect(second).toEqual({ status: 'fulfilled', value: { ok: 2 } });
    expect(third).toEqual({ status: 'fulfilled', value: { ok: 3 } });
    expect(breakers).toEqual([]);
  });

  it('has one deadline over all attempts', async () => {
    await http.close();
    http = open({ attemptTimeoutMs: 100, callTimeoutMs: 150, maxAttempts: 50 });
    server.script(silence);
    expect(await errorOf(get())).toMatchObject({ code: 'timeout' });
    expect(server.requests.length).toBeLessThanOrEqual(2);
  });

  it('stops when the caller aborts', async () => {
    const controller = new AbortController();
    server.answer = () => controller.abort();
    expect(await errorOf(get(controller.signal))).toMatchObject({ code: 'aborted', retryable: true });
    expect(await errorOf(get(AbortSignal.abort()))).toMatchObject({ code: 'aborted' });
    expect(server.requests).toHaveLength(1);
  });

  it('reads no more than its limit of bytes', async () => {
    await http.close();
    http = open({ maxBodyBytes: 1_000 });
    server.script(raw(gzipSync(JSON.stringify('x'.repeat(100_000))), { 'content-encoding': 'gzip' }));
    expect(await errorOf(get())).toMatchObject({ code: 'response_too_large', retryable: false });
    expect(server.requests).toHaveLength(1);
  });

  it('opens its breaker, fails at once, tries one call later, and closes it', async () => {
    await http.close();
    http = open({ breakerFailures: 3, breakerOpenMs: 60_000, maxAttempts: 1 });
    server.script(json(500, {}));
    for (let failed = 0; failed < 3; failed += 1) expect((await errorOf(get())).code).toBe('http_status');
    expect(http.breakerState()).toBe('open');
    expect(await errorOf(get())).toMatchObject({ code: 'circuit_open', retryable: true });
    expect(server.requests).toHaveLength(3);

    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 });
    let answer: () => void = () => undefined;
    server.script((request, response) => {
      answer = () => json(200, 'well')(request, response);
    });
    const probe = get();
    await vi.waitFor(() => expect(server.requests).toHaveLength(4), { timeout: GUARD_MS });
    expect(await errorOf(get())).toMatchObject({ code: 'circuit_open' });
    answer();
    expect(await probe).toBe('well');
    expect(http.breakerState()).toBe('closed');
    expect(breakers.map((event) => event.state)).toEqual(['open', 'half_open', 'closed']);
  });

  it('keeps its breaker closed after a 404, a 429 or an aborted call', async () => {
    await http.close();
    http = open({ breakerFailures: 1, maxAttempts: 1 });
    server.script(json(404, {}));
    await errorOf(get());
    server.script(json(429, {}));
    await errorOf(get());
    await errorOf(get(AbortSignal.abort()));
    expect(http.breakerState()).toBe('closed');
  });

  it('names the failure behind an open breaker', async () => {
    await http.close();
    http = open({ breakerFailures: 1, breakerOpenMs: 60_000, maxAttempts: 1 });
    server.script(json(500, {}));
    await errorOf(get());
    const error = await errorOf(get());
    expect(error.message).toBe('HTTP 500; the circuit breaker is open');
    expect(error.cause).toMatchObject({ code: 'http_status', statusCode: 500 });
  });

  it('names the failure of the attempt before when the deadline of the call ends its retry', async () => {
    await http.close();
    vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] });
    http = open({ callTimeoutMs: 300, maxAttempts: 2 });
    server.script(json(500, {}), () => vi.advanceTimersByTime(300));
    expect(await errorOf(get())).toMatchObject({ code: 'http_status', message: 'HTTP 500' });
  });

  it('names the reason of an abort', async () => {
    const reason = new Error('deadline of 60000 ms passed');
    expect(await errorOf(get(AbortSignal.abort(reason)))).toMatchObject({
      code: 'aborted',
      message: 'the call was aborted: deadline of 60000 ms passed',
    });
  });

  describe('in a process that is late', () => {
    /** Occupies the thread, as a long task does. */
    const block = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

    it('reads an answer that came while the process could not run', async () => {
      await http.close();
      http = open({ attemptTimeoutMs: 1_000, callTimeoutMs: 1_000, maxAttempts: 1, lag: new ProcessLag() });
      server.answer = (request, response) => {
        block(1_500);
        json(200, { ok: 1 })(request, response);
      };
      expect(await get()).toEqual({ ok: 1 });
    });

    it('counts no missed deadline against the venue, and opens no breaker', async () => {
      await http.close();
      http = open({ attemptTimeoutMs: 200, maxAttempts: 1, breakerFailures: 1, lag: new ProcessLag() });
      server.answer = () => block(1_000);
      const error = await errorOf(get());
      expect(error).toMatchObject({ code: 'process_late', retryable: true });
      expect(error.message).toMatch(/^this process was late by \d+ ms, and no answer was read in time$/);
      expect([http.breakerState(), requests.map(({ outcome }) => outcome)]).toEqual(['closed', ['process_late']]);
    });

    it('keeps an open breaker open when the answer to its test call is not read', async () => {
      await http.close();
      const lag = new ProcessLag();
      http = open({ attemptTimeoutMs: 200, maxAttempts: 1, breakerFailures: 1, breakerOpenMs: 60_000, lag });
      server.script(json(500, {}));
      await errorOf(get());
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 60_000 });
      server.answer = () => block(1_000);
      expect((await errorOf(get())).code).toBe('process_late');
      expect(http.breakerState()).toBe('open');
    });
  });
});

describe('requests of a batch', () => {
  const ask = (isPart: boolean) =>
    http.getJson({ route: 'batch', path: '/batch', signal: new AbortController().signal, batch: { isPart } });

  it('have one attempt when they are a part of a batch that failed', async () => {
    server.script(json(500, {}));
    await errorOf(ask(true));
    expect(server.requests.length).toBe(1);
    await errorOf(ask(false));
    expect(server.requests.length).toBe(4);
  });

  it('do not open the breaker unless their failures are blamed on the host', async () => {
    http = open({ breakerFailures: 5 });
    server.script(json(500, {}));
    const failures: VenueError[] = [];
    for (let call = 0; call < 6; call += 1) failures.push(await errorOf(ask(true)));
    expect(breakers).toEqual([]);
    await http.blame(failures);
    expect(breakers.map(({ state }) => state)).toEqual(['open']);
  });

  it('open the breaker again when they test it', async () => {
    http = open({ breakerFailures: 1, breakerOpenMs: 1 });
    server.script(json(500, {}));
    await errorOf(get());
    await vi.waitFor(async () => expect((await errorOf(ask(true))).code).toBe('http_status'));
    const states = breakers.map(({ state }) => state);
    expect(states.slice(-2)).toEqual(['half_open', 'open']);
    expect(states).not.toContain('closed');
  });

  it('know a failing host by three routes without a success between them', async () => {
    server.script(json(500, {}));
    const failing = async (route: string) => {
      await errorOf(http.getJson({ route, path: '/x', signal: new AbortController().signal, batch: { isPart: true } }));
      return http.isFailing();
    };
    expect([await failing('a'), await failing('a'), await failing('b'), await failing('c')]).toEqual([
      false,
      false,
      false,
      true,
    ]);
    server.script(json(200, {}));
    await get();
    expect(http.isFailing()).toBe(false);
  });
});
