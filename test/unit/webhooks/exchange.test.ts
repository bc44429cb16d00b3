import type { Dispatcher } from 'undici';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EXCERPT_BYTES } from '../../../src/domain/webhooks/response-headers.ts';
import { exchange } from '../../../src/webhooks/exchange.ts';

const MAX_READ_BYTES = 16 * 1024;

const REQUEST = { url: new URL('https://hooks.test/a/b?c=d#e'), headers: { 'x-a': '1' }, body: Buffer.from('{}') };
const DEADLINE_MS = 1000;

type Handler = Required<Dispatcher.DispatchHandler>;

/** Undici's side of the exchange, event by event, in orders that a real network cannot produce reliably. */
function start() {
  const abort = vi.fn();
  const controller = { abort } as unknown as Dispatcher.DispatchController;
  let options: Dispatcher.DispatchOptions | undefined;
  let handler: Handler | undefined;
  const dispatch = (given: Dispatcher.DispatchOptions, on: Dispatcher.DispatchHandler) => {
    options = given;
    handler = on as Handler;
    return true;
  };
  const ended = exchange({ dispatch }, REQUEST, DEADLINE_MS);
  const on = () => {
    if (handler === undefined) throw new Error('nothing was dispatched');
    return handler;
  };
  return {
    ended,
    abort,
    options: () => options,
    connected: () => on().onRequestStart(controller, null),
    headers: (statusCode: number, headers = {}) => on().onResponseStart(controller, statusCode, headers, 'text'),
    data: (chunk: Buffer) => on().onResponseData(controller, chunk),
    end: () => on().onResponseEnd(controller, {}),
    fail: (error: Error) => on().onResponseError(controller, error),
  };
}

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  // In every case nothing remains that would keep a process alive.
  expect(vi.getTimerCount()).toBe(0);
  vi.useRealTimers();
});

describe('exchange', () => {
  it('posts to path and query of the origin, and returns the status with its excerpt', async () => {
    const call = start();
    expect(call.options()).toEqual({
      origin: 'https://hooks.test',
      path: '/a/b?c=d',
      method: 'POST',
      headers: REQUEST.headers,
      body: REQUEST.body,
    });
    call.connected();
    call.headers(201, { 'x-a': ['1', '2'] });
    for (const part of ['he', 'll', 'o']) call.data(Buffer.from(part));
    call.end();
    expect(await call.ended).toStrictEqual({
      statusCode: 201,
      headers: { 'x-a': ['1', '2'] },
      excerpt: Buffer.from('hello'),
    });
    expect(call.abort).not.toHaveBeenCalled();
  });

  it('uses the first status that is not provisional', async () => {
    const call = start();
    call.headers(103, { 'retry-after': '7' });
    call.headers(199);
    call.headers(200);
    call.end();
    expect(await call.ended).toStrictEqual({ statusCode: 200, headers: {}, excerpt: Buffer.alloc(0) });
  });

  it('keeps the start of the body and closes the connection beyond its read limit', async () => {
    const call = start();
    call.connected();
    call.headers(200);
    call.data(Buffer.alloc(EXCERPT_BYTES - 1, 'a'));
    call.data(Buffer.from('bc'));
    call.data(Buffer.alloc(MAX_READ_BYTES - EXCERPT_BYTES - 1, 'd'));
    expect(call.abort).not.toHaveBeenCalled();
    call.data(Buffer.from('e'));
    expect(call.abort).toHaveBeenCalledTimes(1);
    const result = await call.ended;
    expect(result).toMatchObject({ statusCode: 200 });
    expect('excerpt' in result && Buffer.from(result.excerpt).toString()).toBe(`${'a'.repeat(EXCERPT_BYTES - 1)}b`);
  });

  it('times out when the deadline passes before any status, and no sooner', async () => {
    const call = start();
    call.connected();
    call.headers(102);
    vi.advanceTimersByTime(DEADLINE_MS - 1);
    expect(call.abort).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(await call.ended).toStrictEqual({ error: expect.objectContaining({ code: 'timeout' }) });
    expect(call.abort).toHaveBeenCalledWith(expect.objectContaining({ code: 'timeout' }));
  });

  it('keeps a status that came before the deadline or before the connection broke', async () => {
    const slow = start();
    slow.connected();
    slow.headers(200);
    slow.data(Buffer.from('ha'));
    vi.advanceTimersByTime(DEADLINE_MS);
    expect(await slow.ended).toStrictEqual({ statusCode: 200, headers: {}, excerpt: Buffer.from('ha') });
    expect(slow.abort).toHaveBeenCalledTimes(1);
    const broken = start();
    broken.headers(500);
    broken.fail(new Error('reset'));
    expect(await broken.ended).toStrictEqual({ statusCode: 500, headers: {}, excerpt: Buffer.alloc(0) });
  });

  it('never sends a request that was aborted while it waited for its connection', async () => {
    const call = start();
    vi.advanceTimersByTime(DEADLINE_MS);
    expect(await call.ended).toMatchObject({ error: { code: 'timeout' } });
    expect(call.abort).not.toHaveBeenCalled();
    call.connected();
    expect(call.abort).toHaveBeenCalledWith(expect.objectContaining({ code: 'timeout' }));
  });

  it('returns the error that came before any status', async () => {
    const error = new Error('refused');
    const failed = start();
    failed.fail(error);
    expect(await failed.ended).toStrictEqual({ error });
    const empty = start();
    empty.headers(101);
    empty.end();
    expect(await empty.ended).toStrictEqual({ error: new Error('the response ended without a status') });
  });
});
