/** Returns the slot. Later calls have no effect. */
export type ReleaseSlot = () => void;

interface SlotRequest {
  /** Scheme, host and port. */
  origin: string;
  account: bigint;
  /** The longest wait. */
  maxWaitMs: number;
  /** Ends the wait at once. */
  signal?: AbortSignal;
}

/** Shares the connections of each origin among the accounts that send there. */
interface ConnectionSlots {
  /** A slot of the origin; null when none became free in time. */
  acquire(request: SlotRequest): Promise<ReleaseSlot | null>;
}

type Grant = (release: ReleaseSlot) => void;

/** The slots of one origin. */
interface Share {
  free: number;
  held: Map<bigint, number>;
  /** The requests of each account, in their order. The account that was served last is the last one. */
  waiting: Map<bigint, Set<Grant>>;
}

/**
 * `perOrigin` slots for each origin. An account gets a slot while it holds fewer than are free. One account alone uses half of them, two
 * use a third each, so a further account finds a free slot, however slow the receivers of the others are. A returned slot goes to the
 * waiting account with the fewest slots.
 */
export function createConnectionSlots(perOrigin: number): ConnectionSlots {
  const shares = new Map<string, Share>();

  function shareOf(origin: string): Share {
    const known = shares.get(origin);
    if (known !== undefined) return known;
    const made: Share = { free: perOrigin, held: new Map(), waiting: new Map() };
    shares.set(origin, made);
    return made;
  }

  function take(origin: string, share: Share, account: bigint): ReleaseSlot {
    share.free -= 1;
    share.held.set(account, heldBy(share, account) + 1);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      share.free += 1;
      const left = heldBy(share, account) - 1;
      if (left > 0) share.held.set(account, left);
      else share.held.delete(account);
      serve(origin, share);
      if (share.held.size === 0 && share.waiting.size === 0) shares.delete(origin);
    };
  }

  function serve(origin: string, share: Share): void {
    for (;;) {
      const [next] = [...share.waiting].sort(([a], [b]) => heldBy(share, a) - heldBy(share, b));
      if (next === undefined || !mayTake(share, next[0])) return;
      const [account, requests] = next;
      const [grant] = requests;
      share.waiting.delete(account);
      if (grant !== undefined) requests.delete(grant);
      if (requests.size > 0) share.waiting.set(account, requests);
      grant?.(take(origin, share, account));
    }
  }

  return {
    async acquire({ origin, account, maxWaitMs, signal }) {
      const share = shareOf(origin);
      if (mayTake(share, account)) return take(origin, share, account);
      if (signal?.aborted) return null;
      return new Promise((resolve) => {
        const requests = share.waiting.get(account) ?? new Set();
        const end = (release: ReleaseSlot | null) => {
          clearTimeout(timer);
          signal?.removeEventListener('abort', giveUp);
          resolve(release);
        };
        const giveUp = () => {
          requests.delete(end);
          if (requests.size === 0) share.waiting.delete(account);
          end(null);
        };
        const timer = setTimeout(giveUp, maxWaitMs);
        signal?.addEventListener('abort', giveUp, { once: true });
        requests.add(end);
        share.waiting.set(account, requests);
      });
    },
  };
}

function heldBy({ held }: Share, account: bigint): number {
  return held.get(account) ?? 0;
}

function mayTake(share: Share, account: bigint): boolean {
  return heldBy(share, account) < share.free;
}
