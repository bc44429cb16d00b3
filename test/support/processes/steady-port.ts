import { randomInt } from 'node:crypto';
import { nextFreePort } from '../../../src/embedded/free-port.ts';

/**
 * A free port of 127.0.0.1 for a server that stops and returns. It is outside the range of outgoing ports, which could
 * otherwise be assigned to a client that connects while the server is stopped.
 */
export function steadyPort(): Promise<number> {
  return nextFreePort(randomInt(20_000, 30_000), '127.0.0.1', new Set());
}
