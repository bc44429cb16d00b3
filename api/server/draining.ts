import type { Server, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { OddswireError } from '../../src/domain/values/errors.ts';
import type { Dependency } from '../../src/observe/probe-server.ts';
import { drain } from './http-server.ts';

/**
 * Stops a server without failing a request. After `end` every answer has `Connection: close`. The server accepts requests for
 * another `delayMs`, then finishes only the requests in flight. Create it before the server listens.
 */
export function createDraining(server: Server): { end(delayMs: number): Promise<void> } {
  const inFlight = new Set<ServerResponse>();
  let isEnding = false;
  // Runs before the handler, which may answer at once.
  server.prependListener('request', (_request, response: ServerResponse) => {
    if (isEnding) {
      closeAfter(response);
      return;
    }
    inFlight.add(response);
    response.once('close', () => inFlight.delete(response));
  });
  return {
    async end(delayMs) {
      isEnding = true;
      for (const response of inFlight) closeAfter(response);
      if (delayMs > 0) await delay(delayMs);
      await drain(server);
    },
  };
}

/** Without this header a client may send a request on a connection that is closing, and lose it. */
function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

/** Makes readiness fail first when a process stops, so that load balancers react. */
export function notStopping(signal: AbortSignal): Dependency {
  return {
    name: 'process',
    async check() {
      if (signal.aborted) throw new OddswireError('stopping', 'the process is stopping');
    },
  };
}
