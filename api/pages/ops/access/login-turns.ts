import { ApiError } from '../../../errors.ts';

/** Waiting logins of browsers that never logged in. A check takes some tenths of a second, so the last one waits for some seconds. */
const MAX_WAITING = 50;

/** The place of a login in the queue. */
export interface LoginLane {
  /** Logins of one lane are checked in their order. */
  id: string;
  /** Whether an earlier login of this browser succeeded: then it precedes all others and is never refused. */
  isKnown: boolean;
}

/**
 * Checks one password at a time, because a check is expensive. Lanes take turns, so a lane with many logins delays another lane by one
 * check. When too many logins wait, the longest lane loses its newest one with 429 `rate_limited`.
 */
type LoginTurns = <T>(lane: LoginLane, check: () => Promise<T>) => Promise<T>;

interface Waiting {
  start(): void;
  refuse(error: ApiError): void;
}

export function createLoginTurns(maxWaiting = MAX_WAITING): LoginTurns {
  // In the order of their turns.
  const lanes = { known: new Map<string, Waiting[]>(), other: new Map<string, Waiting[]>() };
  let isBusy = false;
  let waitingOthers = 0;

  function enqueue({ id, isKnown }: LoginLane, waiting: Waiting): void {
    const group = isKnown ? lanes.known : lanes.other;
    const lane = group.get(id) ?? [];
    group.set(id, lane);
    lane.push(waiting);
    if (isKnown) return;
    waitingOthers += 1;
    if (waitingOthers > maxWaiting) refuseNewestOfLongest();
  }

  function refuseNewestOfLongest(): void {
    let longest: [id: string, waiting: Waiting[]] | undefined;
    // Of equally long lanes the last one loses: it waits for the longest time.
    for (const entry of lanes.other) if (longest === undefined || entry[1].length >= longest[1].length) longest = entry;
    if (longest === undefined) return;
    const [id, lane] = longest;
    lane
      .pop()
      ?.refuse(new ApiError('rate_limited', 'too many logins at the same time', { headers: { 'Retry-After': '5' } }));
    if (lane.length === 0) lanes.other.delete(id);
    waitingOthers -= 1;
  }

  function takeNext(): Waiting | undefined {
    const group = lanes.known.size > 0 ? lanes.known : lanes.other;
    const [first] = group;
    if (first === undefined) return undefined;
    const [id, lane] = first;
    const next = lane.shift();
    group.delete(id);
    if (lane.length > 0) group.set(id, lane);
    if (group === lanes.other) waitingOthers -= 1;
    return next;
  }

  return async (lane, check) => {
    if (isBusy) await new Promise<void>((start, refuse) => enqueue(lane, { start, refuse }));
    isBusy = true;
    try {
      return await check();
    } finally {
      const next = takeNext();
      // The next check starts before any later login can see a free place.
      if (next === undefined) isBusy = false;
      else next.start();
    }
  };
}
