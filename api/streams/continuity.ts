import type { StaleReason } from '../../src/domain/live/change.ts';
import { MAX_STALE_MS } from '../reads/journal-view.ts';
import type { StreamClient } from './client.ts';
import type { Unsent, WriteRounds } from './outbox.ts';

/** A client gets a heartbeat this long after its last change, so that it soon knows that no more followed. */
const IDLE_MS = 1_000;

interface ContinuityOptions {
  rounds: Pick<WriteRounds<StreamClient>, 'mark'>;
  /** Milliseconds since the streams were known to be complete. */
  staleMs(nowMs: number): number;
  /** Why this is unknown; undefined until the cause is found. */
  reason(nowMs: number): StaleReason | undefined;
  /** The messages that a client gets; none while it must wait for them. */
  heartbeat(client: StreamClient): readonly Unsent[];
  stale(client: StreamClient, reason: StaleReason): readonly Unsent[];
}

type Cause = StaleReason | 'unknown' | undefined;

/** The last messages to a client, in milliseconds of the monotonic clock. */
interface Sent {
  heartbeatAtMs: number;
  heartbeatDueMs: number;
  /** The cause of a silence that the client knows, and when it is repeated. */
  cause: StaleReason | undefined;
  staleDueMs: number;
}

/**
 * States to clients that their streams are complete, or why this is unknown. Heartbeats stop while completeness is not confirmed: their
 * absence shows that a quiet stream may not be a quiet market. A `stale` message then names the cause.
 */
export class Continuity {
  readonly #options: ContinuityOptions;
  readonly #clients = new Map<StreamClient, Sent>();

  constructor(options: ContinuityOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#clients.size;
  }

  /** The client gets its first heartbeat at once. */
  add(client: StreamClient): void {
    const never = Number.NEGATIVE_INFINITY;
    this.#clients.set(client, { heartbeatAtMs: never, heartbeatDueMs: never, cause: undefined, staleDueMs: never });
    this.#options.rounds.mark(client);
  }

  remove(client: StreamClient): void {
    this.#clients.delete(client);
  }

  /** A heartbeat claims completeness only when it was confirmed a short time ago. */
  isFresh(nowMs: number): boolean {
    return this.#options.staleMs(nowMs) <= MAX_STALE_MS;
  }

  /** Makes the next heartbeat of these clients due now. */
  hasten(clients: Iterable<StreamClient> = this.#clients.keys()): void {
    for (const client of clients) {
      const sent = this.#clients.get(client);
      if (sent) sent.heartbeatDueMs = Number.NEGATIVE_INFINITY;
    }
  }

  /** Includes the clients that a message is due for in the next write. */
  markDue(nowMs: number): void {
    const cause = this.#causeAt(nowMs);
    for (const [client, sent] of this.#clients) {
      if (isDue(client, sent, cause, nowMs)) this.#options.rounds.mark(client);
    }
  }

  /** The messages of a client for which nothing else waits: a heartbeat, or the cause of the silence. */
  whenIdle(client: StreamClient, nowMs: number): readonly Unsent[] {
    const sent = this.#clients.get(client);
    const cause = this.#causeAt(nowMs);
    if (!sent || cause === 'unknown' || !isDue(client, sent, cause, nowMs)) return [];
    const messages = cause === undefined ? this.#options.heartbeat(client) : this.#options.stale(client, cause);
    if (messages.length === 0) return [];
    sent.cause = cause;
    if (cause !== undefined) sent.staleDueMs = nowMs + client.heartbeatMs;
    else {
      sent.heartbeatAtMs = nowMs;
      sent.heartbeatDueMs = nowMs + client.heartbeatMs;
    }
    return messages;
  }

  /** Why no heartbeat is sent at this moment; undefined when one may be sent. */
  #causeAt(nowMs: number): Cause {
    return this.isFresh(nowMs) ? undefined : (this.#options.reason(nowMs) ?? 'unknown');
  }
}

function isDue(client: StreamClient, sent: Sent, cause: Cause, nowMs: number): boolean {
  if (cause === 'unknown') return false;
  if (cause !== undefined) return sent.cause !== cause || nowMs >= sent.staleDueMs;
  if (nowMs >= sent.heartbeatDueMs || sent.cause !== undefined) return true;
  return sent.heartbeatAtMs < client.changedAtMs && nowMs - client.writtenAtMs >= IDLE_MS;
}
