import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestApi, type TestApi } from '../integration/api/api-harness.ts';
import { aPrice } from '../integration/api/streams/stream-world.ts';
import { type ConfirmedJournal, confirmJournal } from '../support/journal.ts';
import { describeInChromium } from './in-chromium.ts';

/** The client as one module for browsers. The verifier of webhooks is for receivers. */
async function bundle(): Promise<string> {
  const build = await rolldown({
    input: 'clients/typescript/src/index.ts',
    platform: 'browser',
    external: [/^node:/, 'standardwebhooks'],
  });
  const { output } = await build.generate({ format: 'esm' });
  return output[0].code.replaceAll(/^import .*(?:node:|standardwebhooks).*$/gm, '');
}

let site: Server;
let origin: string;

async function start(): Promise<TestApi> {
  const code = await bundle();
  site = createServer((request, response) => {
    const isCode = request.url === '/client.js';
    response.setHeader('Content-Type', isCode ? 'text/javascript' : 'text/html');
    response.end(isCode ? code : '<!doctype html><title>page</title>');
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  return startTestApi({ corsOrigins: [origin] });
}

describeInChromium('the client in Chromium', start, (opened) => {
  let journal: ConfirmedJournal;
  beforeAll(() => {
    journal = confirmJournal(opened.api.db);
  });
  afterAll(async () => {
    await journal?.stop();
    site?.close();
  });

  it('follows a stream of another origin, and resumes it', async () => {
    const { key } = await opened.api.client(['markets:read']);
    const page = await opened.browser.newPage();
    await page.goto(origin);
    const first = page.evaluate<{ seq: number; cursor: string }>(`(async () => {
      const { createClient } = await import('/client.js');
      window.client = createClient({ baseUrl: ${JSON.stringify(opened.api.url)}, apiKey: ${JSON.stringify(key)} });
      for await (const message of window.client.stream()) {
        if (message.type === 'heartbeat') window.isReady = true;
        if (message.type === 'price') return message;
      }
    })()`);
    await page.waitForFunction('window.isReady === true');
    const seq = await journal.append([aPrice()]);
    const { cursor, ...price } = await first;
    expect(price).toMatchObject({ seq, data: { price: expect.any(Number) } });
    const missed = await journal.append([aPrice()]);
    const resumed = await page.evaluate<{ seq: number }>(`(async () => {
      for await (const message of window.client.stream({ cursor: ${JSON.stringify(cursor)} })) if (message.type === 'price') return message;
    })()`);
    expect(resumed.seq).toBe(missed);
  });

  it('opens a WebSocket with its key in the first frame', async () => {
    const { key } = await opened.api.client(['markets:read']);
    const page = await opened.browser.newPage();
    await page.goto(origin);
    const types = await page.evaluate<string[]>(`new Promise((resolve) => {
      const socket = new WebSocket(${JSON.stringify(opened.api.url.replace('http', 'ws'))} + '/v1/stream');
      const types = [];
      socket.onopen = () => {
        socket.send(JSON.stringify({ type: 'auth', key: ${JSON.stringify(key)} }));
        socket.send(JSON.stringify({ type: 'subscribe', id: 'a', venue: 'all', channels: ['prices'] }));
      };
      socket.onmessage = ({ data }) => {
        types.push(JSON.parse(data).type);
        if (types.includes('heartbeat')) resolve(types);
      };
    })`);
    expect(types).toEqual(['subscribed', 'heartbeat']);
  });
});
