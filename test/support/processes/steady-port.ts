import { randomInt } from 'node:crypto';
import { nextFreePort } from '../../../src/embedded/free-port.ts';

/**
 * A free port of 127.0.0.1 for a server that goes away and comes back. It is outside the range that systems take the
 * ports of outgoing connections from: a client that knocks meanwhile would otherwise be given it, sooner or later.
 */
export function steadyPort(): Promise<number> {
  return nextFreePort(randomInt(20_000, 30_000), '127.0.0.1', new Set());
}
