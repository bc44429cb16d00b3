import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { createClient, type StreamItem } from '../../../clients/typescript/src/index.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';

const DATA = { checked_at: 'then', interval_seconds: 0.1, venues: [] };
const HEARTBEAT = `event: heartbeat\nid: c\ndata: ${JSON.stringify({ type: 'heartbeat', seq: 1, data: DATA })}\n\n`;

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** A client's stream from a server with these answers in turn; the last one repeats. */
async function follow(...answers: ((response: ServerResponse) => void)[]) {
  let asked = 0;
  const places: unknown[] = [];
  const made = createServer((request, response) => {
    asked += 1;
    places.push(request.headers['last-event-id']);
    response.writeHead(200, { 'content-type': 'text/event-stream', connection: 'close' });
    answers[Math.min(asked, answers.length) - 1]?.(response);
  });
  server = made;
  await new Promise<void>((resolve) => made.listen(0, '127.0.0.1', resolve));
  const baseUrl = `http://127.0.0.1:${(made.address() as AddressInfo).port}`;
  const messages = createClient({ baseUrl, apiKey: 'ow_live_x' }).stream({}, { maxDelayMs: 10, graceMs: 100 });
  return { next: async () => (await messages.next()).value as StreamItem, messages, places, asked: () => asked };
}

describe('stream()', () => {
  it('reports silent when the service ends the stream and does not answer again', async () => {
    const { next, messages } = await follow((response) => {
      server?.close();
      response.end(HEARTBEAT);
    });
    expect((await next()).type).toBe('heartbeat');
    expect(await next()).toEqual({ type: 'silent', data: { reason: 'connection_lost', checked_at: 'then' } });
    await messages.return();
  });

  it('reports silent when another server answers with a page', async () => {
    const { next, messages } = await follow((response) => response.end('<h1>Maintenance</h1>'));
    expect(await next()).toMatchObject({ type: 'silent', data: { reason: 'connection_lost' } });
    await messages.return();
  });

  it('reports silent when garbage is collected between the last heartbeat and the end of its interval', async () => {
    const { next, messages } = await follow((response) => response.write(HEARTBEAT));
    expect((await next()).type).toBe('heartbeat');
    const read = next();
    await collectGarbage();
    expect(await read).toEqual({ type: 'silent', data: { reason: 'no_heartbeat', checked_at: 'then' } });
    await messages.return();
  });

  it('reports silent when garbage is collected while the service does not answer', async () => {
    const { next, messages } = await follow(
      (response) => response.end(HEARTBEAT),
      // The server keeps the answer to itself.
      () => undefined,
    );
    expect((await next()).type).toBe('heartbeat');
    const read = next();
    await collectGarbage();
    expect(await read).toEqual({ type: 'silent', data: { reason: 'no_heartbeat', checked_at: 'then' } });
    await messages.return();
  });

  it('connects again and continues before a message that is not JSON', async () => {
    const { next, messages, asked, places } = await follow(
      (response) => response.end(`${HEARTBEAT}event: trade\nid: d\ndata: {"type":\n\n`),
      (response) => response.end(HEARTBEAT),
    );
    expect([(await next()).type, (await next()).type, (await next()).type]).toEqual([
      'heartbeat',
      'silent',
      'heartbeat',
    ]);
    expect(asked()).toBe(2);
    expect(places).toEqual([undefined, 'c']);
    await messages.return();
  });

  it('hands each change out once when it arrives again', async () => {
    const trade = (seq: number) => `event: trade\nid: t${seq}\ndata: {"type":"trade","seq":${seq},"data":{}}\n\n`;
    const { next, messages } = await follow((response) =>
      response.end(`${HEARTBEAT}${trade(2)}${trade(1)}${trade(2)}${trade(3)}`),
    );
    const seqs = [await next(), await next(), await next()].map((item) => ('seq' in item ? item.seq : item.type));
    expect(seqs).toEqual([1, 2, 3]);
    await messages.return();
  });

  it('reports each silence once', async () => {
    const { next, messages, asked } = await follow(
      (response) => response.end(HEARTBEAT),
      (response) => response.destroy(),
      (response) => response.destroy(),
      (response) => response.end(HEARTBEAT),
    );
    expect([(await next()).type, (await next()).type, (await next()).type]).toEqual([
      'heartbeat',
      'silent',
      'heartbeat',
    ]);
    expect(asked()).toBe(4);
    await messages.return();
  });

  it('does not report silent when the service ends the stream and answers again', async () => {
    const { next, messages, asked } = await follow((response) => response.end(HEARTBEAT));
    expect([(await next()).type, (await next()).type, (await next()).type]).toEqual(Array(3).fill('heartbeat'));
    expect(asked()).toBe(3);
    await messages.return();
  });

  it('does not report silent when its caller is busy for longer than a heartbeat may take', async () => {
    const { next, messages, asked } = await follow((response) => {
      const beating = setInterval(() => response.write(HEARTBEAT), 20);
      response.once('close', () => clearInterval(beating));
    });
    await next();
    await delay(500);
    const types = new Set<string>();
    for (let read = 0; read < 100; read += 1) types.add((await next()).type);
    expect([...types]).toEqual(['heartbeat']);
    expect(asked()).toBe(1);
    await messages.return();
  });

  it('does not report silent when its process was suspended for longer than a heartbeat may take', async () => {
    const { next, messages, asked } = await follow((response) => {
      const beating = setInterval(() => response.write(HEARTBEAT), 20);
      response.once('close', () => clearInterval(beating));
    });
    const types = new Set<string>();
    for (let suspended = 0; suspended < 5; suspended += 1) {
      const read = next();
      const untilMs = performance.now() + 500;
      while (performance.now() < untilMs);
      types.add((await read).type);
      for (let more = 0; more < 3; more += 1) types.add((await next()).type);
    }
    expect([...types]).toEqual(['heartbeat']);
    expect(asked()).toBe(1);
    await messages.return();
  });
});
