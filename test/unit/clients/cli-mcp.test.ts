import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from 'vitest';
import { oddswireCli } from '../../support/cli-io.ts';

let close: (() => void) | undefined;
afterEach(() => close?.());

/** A service that answers each message by its method. */
async function aService(answers: Record<string, { status: number; body?: object }>) {
  const received: { headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    received.push({ headers: request.headers, body });
    const { status, body: answer } = answers[JSON.parse(body).method] ?? { status: 500 };
    response.writeHead(status, { 'content-type': 'application/json', 'x-request-id': 'req_7' });
    response.end(answer === undefined ? '' : JSON.stringify(answer, null, 2));
  });
  close = () => server.close();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/api`, received };
}

async function proxied(url: string, lines: readonly string[]) {
  const input = Readable.from(lines.map((line) => `${line}\n`));
  const env = { ODDSWIRE_URL: url, ODDSWIRE_KEY: 'ow_live_x' };
  const { stdout, code } = await oddswireCli(['mcp'], { env, input });
  return {
    code,
    lines: stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line)),
  };
}

describe('oddswire-cli mcp', () => {
  it('sends each line to /mcp with the key, and later lines with the negotiated version', async () => {
    const { url, received } = await aService({
      initialize: { status: 200, body: { jsonrpc: '2.0', id: 1, result: { protocolVersion: '2025-06-18' } } },
      'notifications/initialized': { status: 202 },
      'tools/list': { status: 200, body: { jsonrpc: '2.0', id: 2, result: { tools: [] } } },
    });
    const methods = [
      { id: 1, method: 'initialize' },
      { method: 'notifications/initialized' },
      { id: 2, method: 'tools/list' },
    ];
    const { code, lines } = await proxied(
      url,
      methods.map((message) => JSON.stringify({ jsonrpc: '2.0', ...message })),
    );
    expect(code).toBe(0);
    expect(lines.map(({ id }) => id)).toEqual([1, 2]);
    expect(received.map(({ headers }) => headers.authorization)).toEqual(Array(3).fill('Bearer ow_live_x'));
    expect(received.map(({ headers }) => headers['mcp-protocol-version'])).toEqual([
      undefined,
      '2025-06-18',
      '2025-06-18',
    ]);
  });

  it('answers a request with the error of the API, and a notification with nothing', async () => {
    const body = { success: false, error: { code: 'rate_limited', message: 'too many' } };
    const { url } = await aService({ ping: { status: 429, body }, 'notifications/x': { status: 429, body } });
    const { lines } = await proxied(url, ['{"id":"a","method":"ping"}', '{"method":"notifications/x"}', 'no json']);
    expect(lines).toEqual(
      expect.arrayContaining([
        { jsonrpc: '2.0', id: 'a', error: { code: -32_000, message: 'rate_limited: too many (request req_7)' } },
        { jsonrpc: '2.0', id: null, error: { code: -32_700, message: 'the line is not valid JSON' } },
      ]),
    );
    expect(lines.length).toBe(2);
  });

  it('answers with the reason when the service cannot be reached', async () => {
    const { url } = await aService({});
    close?.();
    const { lines } = await proxied(url, ['{"id":1,"method":"ping"}']);
    expect(lines).toMatchObject([
      { id: 1, error: { message: expect.stringContaining('no answer from http://127.0.0.1') } },
    ]);
  });

  it('passes a line that is JSON and no message on, and continues', async () => {
    const error = { jsonrpc: '2.0', id: null, error: { code: -32_700, message: 'not a message' } };
    const server = createServer((_request, response) => {
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify(error));
    });
    close = () => server.close();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    expect(await proxied(`http://127.0.0.1:${port}`, ['null', '7'])).toEqual({ code: 0, lines: [error, error] });
    server.closeAllConnections();
    close();
    expect(await proxied(`http://127.0.0.1:${port}`, ['null', '7'])).toEqual({ code: 0, lines: [] });
  });
});
