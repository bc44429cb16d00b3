import { once } from 'node:events';
import { Agent, createServer, get, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { createDraining, notStopping } from '../../../../api/server/draining.ts';
import { readiness } from '../../../../src/observe/probe-server.ts';

/** Long enough for a request to be made in it on a busy machine. */
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

describe('a server that is to end', () => {
  it('answers requests in flight, and closes their connections afterwards', async () => {
    let take: (response: ServerResponse) => void = () => undefined;
    const asked = new Promise<ServerResponse>((resolve) => {
      take = resolve;
    });
    const { draining, port } = await startServer((response) => take(response));
    const answer = ask(port);
    const response = await asked;
    const ended = draining.end(0);
    response.end('late');
    expect((await answer).headers.connection).toBe('close');
    await ended;
    await expect(ask(port)).rejects.toThrow('ECONNREFUSED');
  });

  it('goes on answering for a while, and keeps no connection', async () => {
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

  it('says that it is not ready', async () => {
    const told = new AbortController();
    const dependencies = [notStopping(told.signal)];
    expect(await readiness(dependencies)).toEqual({ isReady: true, missing: [] });
    told.abort();
    expect(await readiness(dependencies)).toEqual({ isReady: false, missing: ['process'] });
  });
});
