import type { GapReason } from './port.ts';

/** Bursts of losses of one market, or requests of its snapshot within one burst, until the connection begins again. */
const LOSSES_UNTIL_RECONNECT = 3;
/** Bursts until the market is left to the polls. */
const BURSTS_UNTIL_GIVEN_UP = 5;
/** Requests within one burst until the market is left to the polls: 13 s of losses. */
const REQUESTS_UNTIL_GIVEN_UP = 8;
/** A loss so long after the request of the last snapshot begins another burst. Longer than the longest pause. */
export const BURST_MS = 10_000;
/** Bursts that are further apart are independent. */
const LOSS_MEMORY_MS = 120_000;

/** The losses of one market. */
interface Losses {
  reason: GapReason;
  /** Lost since the last request of a snapshot. */
  isLost: boolean;
  bursts: number;
  /** Requests within the last burst. */
  requests: number;
  requestedMs: number;
}

/** The answer to losses: market ids, of which a market is in one list at most. */
interface LossAnswer {
  /** Markets that need new snapshots. */
  readonly refresh: readonly string[];
  /** Markets that lose changes in spite of a new connection. */
  readonly givenUp: readonly string[];
  /** Set when the connection must begin again, which brings all snapshots: the reason of the last loss. */
  readonly reconnect: GapReason | undefined;
}

/** The losses of the markets of one connection, and the answer to them: docs/feeds.md, "How a connection is kept". */
export class MarketLosses {
  readonly #losses = new Map<string, Losses>();
  readonly #pauseMs: number;

  /** @param pauseMs The pause before the second snapshot within a burst. Further pauses are twice as long. */
  constructor(pauseMs: number) {
    this.#pauseMs = pauseMs;
  }

  note(marketIds: readonly string[], reason: GapReason): void {
    for (const id of marketIds) {
      const losses = this.#losses.get(id);
      if (losses) Object.assign(losses, { reason, isLost: true });
      else this.#losses.set(id, { reason, isLost: true, bursts: 0, requests: 0, requestedMs: -Infinity });
    }
  }

  /** After a new subscription, which brings new snapshots. */
  recovered(): void {
    for (const losses of this.#losses.values()) losses.isLost = false;
  }

  /** Whether the market lost nothing for the time that ends a burst. */
  isSound(marketId: string, nowMs: number): boolean {
    const losses = this.#losses.get(marketId);
    return losses === undefined || (!losses.isLost && nowMs - losses.requestedMs >= BURST_MS);
  }

  forget(marketIds: Iterable<string>): void {
    for (const id of marketIds) this.#losses.delete(id);
  }

  /** Counts a request for each lost market whose pause has passed. The caller forgets markets that it gave up. */
  answer(nowMs: number): LossAnswer {
    const refresh: string[] = [];
    const givenUp: string[] = [];
    let reconnect: GapReason | undefined;
    for (const [id, losses] of this.#losses) {
      if (!losses.isLost || nowMs - losses.requestedMs < this.#pauseMs * Math.min(losses.requests, 2)) continue;
      countRequest(losses, nowMs);
      const { bursts, requests } = losses;
      if (bursts >= BURSTS_UNTIL_GIVEN_UP || requests >= REQUESTS_UNTIL_GIVEN_UP) {
        givenUp.push(id);
        continue;
      }
      refresh.push(id);
      if (requests === LOSSES_UNTIL_RECONNECT || (requests === 1 && bursts === LOSSES_UNTIL_RECONNECT))
        reconnect = losses.reason;
    }
    return { refresh, givenUp, reconnect };
  }
}

function countRequest(losses: Losses, nowMs: number): void {
  const sinceMs = nowMs - losses.requestedMs;
  if (sinceMs >= LOSS_MEMORY_MS) losses.bursts = 0;
  if (sinceMs >= BURST_MS) {
    losses.bursts += 1;
    losses.requests = 1;
  } else losses.requests += 1;
  losses.requestedMs = nowMs;
  losses.isLost = false;
}
