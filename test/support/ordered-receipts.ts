import { expect } from 'vitest';
import type { ReceivedRequest } from '../../sim/receiver.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';

const PENDING = sql(
  'test_pending_of_webhook',
  `SELECT count(*)::int AS rows FROM delivery WHERE subscription_pk = $1 AND status = 'pending'`,
);
const RETRY_NOW = sql(
  'test_retry_now',
  `UPDATE delivery SET next_attempt_at = now() WHERE subscription_pk = $1 AND status = 'pending' AND next_attempt_at < 'infinity'`,
);

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

/** Repeats `round`, one turn of the deliverers, with all retries due at once, until the webhook has no pending delivery. */
export async function deliverAll(db: Database, subscriptionPk: bigint, round: () => Promise<unknown>): Promise<void> {
  for (;;) {
    await round();
    const [pending] = await db.query<{ rows: number }>(PENDING, [subscriptionPk]);
    if (pending?.rows === 0) return;
    await db.query(RETRY_NOW, [subscriptionPk]);
  }
}
