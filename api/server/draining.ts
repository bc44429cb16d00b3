import type { Server, ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { OddswireError } from '../../src/domain/values/errors.ts';
import type { Dependency } from '../../src/observe/probe-server.ts';
import { drain } from './http-server.ts';

/**
 * Ends a server without failing a request: from the call on, every answer tells its client to close the connection, for
 * `delayMs` requests are still accepted, and afterwards only requests in flight are finished. Create it before the server listens.
 */
export function createDraining(server: Server): { end(delayMs: number): Promise<void> } {
  const underWay = new Set<ServerResponse>();
  let isEnding = false;
  // Before the handler, which may answer at once.
  server.prependListener('request', (_request, response: ServerResponse) => {
    if (isEnding) {
      closeAfter(response);
      return;
    }
    underWay.add(response);
    response.once('close', () => underWay.delete(response));
  });
  return {
    async end(delayMs) {
      isEnding = true;
      for (const response of underWay) closeAfter(response);
      if (delayMs > 0) await delay(delayMs);
      await drain(server);
    },
  };
}

/** A client that reuses a connection while it is closed loses its request; one that was told does not. */
function closeAfter(response: ServerResponse): void {
  if (!response.headersSent) response.setHeader('Connection', 'close');
}

/** The readiness failure that a load balancer sees first when a process stops. */
export function notStopping(signal: AbortSignal): Dependency {
  return {
    name: 'process',
    async check() {
      if (signal.aborted) throw new OddswireError('stopping', 'told to stop');
    },
  };
}
