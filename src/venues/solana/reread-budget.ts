/** The share of a node's rate for re-reads: the live walks have the rest. */
const SHARE = 0.25;

export interface RereadBudget {
  /** Whether earlier re-reads have used no more than their share. */
  isAvailable(): boolean;
  /** Counts requests of a re-read. */
  take(requests: number): void;
}

/**
 * The share of a node's request rate for re-reads. A page is read at once or later, and never waits: a wallet is not leased while the share
 * fills up again.
 */
export function createRereadBudget(hostRequestsPerSecond: number, burst: number): RereadBudget {
  const perMs = (hostRequestsPerSecond * SHARE) / 1_000;
  let taken = 0;
  let atMs = performance.now();
  const drain = () => {
    const nowMs = performance.now();
    taken = Math.max(0, taken - (nowMs - atMs) * perMs);
    atMs = nowMs;
  };
  return {
    isAvailable() {
      drain();
      return taken < burst;
    },
    take(requests) {
      drain();
      taken += requests;
    },
  };
}
