import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, expectTypeOf, it } from 'vitest';
import {
  createClient,
  OddswireApiError,
  type StreamItem,
  type StreamOptions,
  type StreamQuery,
} from '../../../clients/typescript/src/index.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { aStoredBook } from '../../factories/stored-series.ts';
import { startTestApi } from '../api/api-harness.ts';
import { aPrice, aTrade, withStreams } from '../api/streams/stream-world.ts';

const world = withStreams();
const ended = new AbortController();

const clientOf = (baseUrl = world.api.url, apiKey = world.client.key) => createClient({ baseUrl, apiKey });

/** The messages of a stream, read on demand. */
function reading(query: StreamQuery = {}, options: StreamOptions = {}, client = clientOf()) {
  const messages = client.stream(query, { signal: ended.signal, maxDelayMs: 100, ...options });
  return {
    messages,
    async next<Type extends StreamItem['type']>(type: Type): Promise<Extract<StreamItem, { type: Type }>> {
      for (;;) {
        const { value } = await messages.next();
        if (!value) throw new Error('the stream ended');
        if (value.type === type) return value as Extract<StreamItem, { type: Type }>;
      }
    },
  };
}

describe('stream()', () => {
  it('returns typed messages with their cursors', async () => {
    const { messages, next } = reading({ channels: ['prices', 'trades'] });
    await next('heartbeat');
    const seq = await world.append(aPrice());
    const price = await next('price');
    expectTypeOf(price.data.price).toEqualTypeOf<number | undefined>();
    expect(price).toMatchObject({ seq, cursor: expect.any(String), data: { price: expect.any(Number) } });
    await messages.return();
  });

  it('returns executable prices of the sizes of the caller', async () => {
    const { db } = world.api;
    const { outcomes } = await aStoredMarket(db);
    const [{ tokenId, outcomeId } = { tokenId: 0n, outcomeId: '' }] = outcomes;
    await aStoredBook(db, tokenId, { asOf: new Date(), bids: [], asks: [['0.5', '100']] });
    const query: StreamQuery = { channels: ['executable'], outcome_ids: [outcomeId], sizes: ['25'], side: 'buy' };
    const { messages, next } = reading(query);
    const { data } = await next('executable');
    expectTypeOf(data.price_with_fee).toEqualTypeOf<number | null>();
    expect(data).toMatchObject({ outcome_id: outcomeId, size: 25, average_price: 0.5, live: true });
    await messages.return();
  });

  it('keeps every digit with decimals as text', async () => {
    const exact = createClient({ baseUrl: world.api.url, apiKey: world.client.key, decimals: 'string' });
    const messages = exact.stream({ channels: ['trades'] }, { signal: ended.signal });
    await messages.next();
    await world.append(aTrade('m1', '12345678901234567890.123456789'));
    for await (const message of messages) {
      if (message.type !== 'trade') continue;
      expectTypeOf(message.data.size).toEqualTypeOf<string>();
      expect(message.data.size).toBe('12345678901234567890.123456789');
      break;
    }
  });

  it('connects again after a loss, and resumes without a lost or repeated message', async () => {
    const first = await startTestApi({}, { beside: world.api });
    const second = await startTestApi({}, { beside: world.api });
    let address = first.url;
    const client = createClient({
      baseUrl: first.url,
      apiKey: world.client.key,
      fetch: (request) => fetch(new Request(request.url.replace(first.url, address), request)),
    });
    try {
      const { messages, next } = reading({ channels: ['trades'] }, {}, client);
      await next('heartbeat');
      const start = await world.append(aTrade());
      expect((await next('trade')).seq).toBe(start);
      address = second.url;
      await first.close();
      await world.append(aTrade(), aTrade());
      await world.append(aTrade());
      const seqs = [await next('trade'), await next('trade'), await next('trade')].map(({ seq }) => seq);
      expect(seqs).toEqual([start + 1, start + 2, start + 3]);
      await messages.return();
    } finally {
      await second.close();
    }
  });

  it('continues at a cursor that the caller kept', async () => {
    const { messages, next } = reading({ channels: ['trades'] });
    const { cursor } = await next('heartbeat');
    await messages.return();
    const seq = await world.append(aTrade());
    const later = reading({ channels: ['trades'], cursor });
    expect((await later.next('trade')).seq).toBe(seq);
    await later.messages.return();
  });

  it('throws for a request or a key that another attempt would not repair', async () => {
    await expect(clientOf().stream({ venue: 'intrade' }).next()).rejects.toMatchObject({ code: 'venue_not_found' });
    await expect(clientOf(world.api.url, 'ow_live_x').stream().next()).rejects.toBeInstanceOf(OddswireApiError);
  });

  it('ends with the reason of its signal', async () => {
    const stop = new AbortController();
    const { messages, next } = reading({}, { signal: stop.signal });
    await next('heartbeat');
    const waiting = messages.next().then(async ({ value }) => {
      for (let item = value; item; ) item = (await messages.next()).value;
    });
    stop.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
  });
});

describe('eventStream()', () => {
  it('begins with a heartbeat', async () => {
    const messages = clientOf().eventStream({}, { signal: ended.signal });
    expect((await messages.next()).value).toMatchObject({ type: 'heartbeat', cursor: expect.any(String) });
    await messages.return();
  });
});

describe('a service that falls silent', () => {
  let server: Server | undefined;
  const open = new Set<ServerResponse>();
  afterEach(() => {
    for (const response of open) response.destroy();
    server?.close();
  });

  it('is reported as silent, with the time of the last heartbeat, and the stream resumes at it', async () => {
    const asked: (string | undefined)[] = [];
    const made = createServer((request, response) => {
      asked.push(request.headers['last-event-id'] as string | undefined);
      open.add(response);
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const data = { checked_at: `time ${asked.length}`, interval_seconds: 0.05, venues: [] };
      const message = { type: 'heartbeat', seq: asked.length, at: '', venue: 'all', data };
      response.write(`event: heartbeat\nid: c${asked.length}\ndata: ${JSON.stringify(message)}\n\n`);
    });
    server = made;
    await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve));
    const client = clientOf(`http://127.0.0.1:${(made.address() as AddressInfo).port}`);
    const { messages, next } = reading({}, { graceMs: 50 }, client);
    expect((await next('silent')).data).toEqual({ reason: 'no_heartbeat', checked_at: 'time 1' });
    await next('heartbeat');
    expect(asked.slice(0, 2)).toEqual([undefined, 'c1']);
    await messages.return();
  });

  it.each([502, 504])('is retried when a proxy answers %i instead', async (status) => {
    let requests = 0;
    const made = createServer((_request, response) => {
      requests += 1;
      open.add(response);
      if (requests === 1) {
        response.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>');
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const data = { checked_at: 'now', interval_seconds: 15, venues: [] };
      const message = { type: 'heartbeat', seq: 1, at: '', venue: 'all', data };
      response.write(`event: heartbeat\nid: c\ndata: ${JSON.stringify(message)}\n\n`);
    });
    server = made;
    await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve));
    const client = clientOf(`http://127.0.0.1:${(made.address() as AddressInfo).port}`);
    const { messages, next } = reading({}, {}, client);
    expect((await next('heartbeat')).seq).toBe(1);
    expect(requests).toBe(2);
    await messages.return();
  });
});
