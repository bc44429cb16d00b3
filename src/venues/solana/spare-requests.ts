/** The share of a node's rate that re-reads may take: the live walks have the rest. */
const SHARE = 0.25;

export interface SpareRequests {
  /** Whether earlier re-reads have taken no more than their share by now. */
  areLeft(): boolean;
  /** Notes requests of a re-read that go out now. */
  take(requests: number): void;
}

/**
 * The part of a node's request rate that is spare. A page is read at once or not now, and never waits: a wallet is not held
 * while the share fills up again.
 */
export function createSpareRequests(hostRequestsPerSecond: number, burst: number): SpareRequests {
  const perMs = (hostRequestsPerSecond * SHARE) / 1_000;
  let taken = 0;
  let atMs = performance.now();
  const drain = () => {
    const nowMs = performance.now();
    taken = Math.max(0, taken - (nowMs - atMs) * perMs);
    atMs = nowMs;
  };
  return {
    areLeft() {
      drain();
      return taken < burst;
    },
    take(requests) {
      drain();
      taken += requests;
    },
  };
}
