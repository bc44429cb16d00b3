import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { createAnswerCache } from '../../../../api/reads/answer-cache.ts';
import { type TestApi, useTestApi } from '../api-harness.ts';
import { AS_BROWSER, testOps } from '../ops/ops-client.ts';

const api = useTestApi({ ops: testOps(), answers: createAnswerCache() });
const named = useTestApi({ ops: testOps({ hosts: ['ops.example.com'] }) });

/** Sends a request with exactly these header lines. */
async function send(to: TestApi, path: string, lines: readonly string[], version = '1.1') {
  const { hostname, port } = new URL(to.url);
  const socket = connect(Number(port), hostname);
  socket.write([`GET ${path} HTTP/${version}`, ...lines, 'Connection: close', '', ''].join('\r\n'));
  const text = await textOf(socket);
  to.checkAnswers();
  return { status: Number(text.split(' ')[1]), text, body: text.slice(text.indexOf('\r\n\r\n') + 4) };
}

describe('the Host header', () => {
  it('is rejected with the envelope when it appears twice or not at all', async () => {
    const { key } = await api.client();
    const authorization = `Authorization: Bearer ${key}`;
    for (const path of ['/v1/venues', '/v1/all/markets', '/health/live', '/ops', '/nowhere']) {
      for (const [hosts, message] of [
        [['Host: a', 'Host: b'], 'headers.host: must appear once'],
        [['Host: a', 'HOST: a'], 'headers.host: must appear once'],
        [[], 'headers.host: is required'],
      ] as const) {
        const { status, body } = await send(api, path, [...hosts, authorization]);
        expect([path, status, JSON.parse(body).error]).toMatchObject([
          path,
          400,
          { code: 'invalid_request', message, details: [{ path: 'headers.host' }] },
        ]);
      }
    }
    expect((await send(api, '/health/live', [], '1.0')).status).toBe(200);
  });

  it('is rejected also when the answer is in the cache of the last second', async () => {
    const { key } = await api.client();
    const lines = ['Host: a', `Authorization: Bearer ${key}`];
    expect((await send(api, '/v1/all/markets?limit=1', lines)).status).toBe(200);
    expect((await send(api, '/v1/all/markets?limit=1', lines)).status).toBe(200);
    expect((await send(api, '/v1/all/markets?limit=1', ['Host: b', ...lines])).status).toBe(400);
  });
});

describe('the operator pages', () => {
  const page = (to: TestApi, host: string, path = '/ops/login') =>
    send(to, path, [`Host: ${host}`, `Accept: ${AS_BROWSER.Accept}`]);

  it('serve loopback names and addresses by default, and answer 421 for a domain that was pointed at them', async () => {
    for (const host of ['localhost:8080', 'LOCALHOST', 'ops.localhost', '127.0.0.1', '10.1.2.3:80', '[::1]:8080']) {
      expect([host, (await page(api, host)).status]).toEqual([host, 200]);
    }
    for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example:8080', 'evil:80', '']) {
      for (const path of ['/ops', '/ops/login', '/ops/queues', '/ops/assets/x/pages.css', '/ops/overview.json']) {
        expect([host, path, (await page(api, host, path)).status]).toEqual([host, path, 421]);
      }
    }
    const { text } = await page(api, 'evil.example');
    expect(text).toContain('OPS_HOSTS and OPS_PUBLIC_URL name their hosts');
    const script = await send(api, '/ops/overview.json', ['Host: evil.example']);
    expect(JSON.parse(script.body).error.code).toBe('misdirected_request');
  });

  it('serve only the configured names when there are any', async () => {
    for (const [host, status] of [
      ['ops.example.com', 200],
      ['OPS.example.com:443', 200],
      ['ops.example.com.', 200],
      ['example.com', 421],
      ['localhost', 421],
      ['127.0.0.1', 421],
    ] as const) {
      expect([host, (await page(named, host)).status]).toEqual([host, status]);
    }
    // The API itself has no operator session that another origin could use.
    expect((await send(named, '/health/live', ['Host: evil.example'])).status).toBe(200);
  });
});
