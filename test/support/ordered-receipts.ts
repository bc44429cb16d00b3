import { expect } from 'vitest';
import type { ReceivedRequest } from '../../sim/receiver.ts';

const idOf = ({ headers }: ReceivedRequest) => String(headers['webhook-id']);

/**
 * Expects that a receiver got the events of each key in their order, not counting repetitions: an event arrives first only after every
 * earlier event of its key arrived. `emitted` has the ids of each key in the order of their storage.
 */
export function expectOrdered(
  requests: readonly ReceivedRequest[],
  emitted: ReadonlyMap<string, readonly string[]>,
): void {
  for (const [key, ids] of emitted) {
    const ofKey = requests.map(idOf).filter((id) => ids.includes(id));
    expect([...new Set(ofKey)], `events of the key ${key}`).toEqual(ids);
  }
}

/**
 * Expects that the accepted requests name each event of `rejected` once, in the next accepted event of its key, and no other event.
 * `isAccepted` states which requests the receiver answered with 2xx.
 */
export function expectMarked(
  requests: readonly ReceivedRequest[],
  emitted: ReadonlyMap<string, readonly string[]>,
  rejected: ReadonlySet<string>,
): void {
  for (const [key, ids] of emitted) {
    const marks = new Map<string, string>();
    for (const request of requests) {
      const skipped = request.headers['x-webhook-skipped'];
      if (typeof skipped === 'string' && ids.includes(idOf(request))) marks.set(idOf(request), skipped);
    }
    let before: string[] = [];
    for (const id of ids) {
      if (before.length > 0) expect(marks.get(id), `skipped before ${id} of ${key}`).toBe(before.join(','));
      else expect(marks.has(id), `marker of ${id} of ${key}`).toBe(false);
      before = rejected.has(id) ? [...before, id] : [];
    }
  }
}
