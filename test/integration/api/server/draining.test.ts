import { once } from 'node:events';
import { Agent, createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createDraining, notStopping } from '../../../../api/server/draining.ts';
import { readiness } from '../../../../src/observe/probe-server.ts';

/** Long enough for a request on a busy machine. */
const DELAY_MS = 400;

const agent = new Agent({ keepAlive: true });
afterEach(() => agent.destroy());

function ask(port: number): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get({ port, agent }, (answer) => resolve(answer.resume())).on('error', reject);
  });
}

async function startServer(answer: (response: ServerResponse) => void) {
  const server = createServer((_request, response) => answer(response));
  const draining = createDraining(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { server, draining, port: (server.address() as AddressInfo).port };
}

describe('a stopping server', () => {
  it('answers requests in flight and then closes their connections', async () => {
    let take: (response: ServerResponse) => void = () => undefined;
    const requested = new Promise<ServerResponse>((resolve) => {
      take = resolve;
    });
    const { draining, port } = await startServer((response) => take(response));
    const answer = ask(port);
    const response = await requested;
    const ended = draining.end(0);
    response.end('late');
    expect((await answer).headers.connection).toBe('close');
    await ended;
    await expect(ask(port)).rejects.toThrow('ECONNREFUSED');
  });

  it('accepts requests during the delay without keeping connections', async () => {
    const { draining, port } = await startServer((response) => response.end('ok'));
    expect((await ask(port)).headers.connection).toBe('keep-alive');
    const ended = draining.end(DELAY_MS);
    for (let request = 0; request < 3; request++) {
      const { statusCode, headers } = await ask(port);
      expect([statusCode, headers.connection]).toEqual([200, 'close']);
    }
    await ended;
    await expect(ask(port)).rejects.toThrow('ECONNREFUSED');
  });

  it('is not ready', async () => {
    const stopping = new AbortController();
    const dependencies = [notStopping(stopping.signal)];
    expect(await readiness(dependencies)).toEqual({ isReady: true, missing: [] });
    stopping.abort();
    expect(await readiness(dependencies)).toEqual({ isReady: false, missing: ['process'] });
  });
});
