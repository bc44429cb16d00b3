/** All processes together look this often for ended ones. */
const LOOK_EVERY_MS = 400;
/** A process looks at every fifth turn at the latest: its look is also the heartbeat of its session. */
const MOST_TURNS = 5;

/** A process among those that look, and the database's clock. */
interface Place {
  /** The processes that are present, with this one. */
  present: number;
  /** The processes before this one. */
  place: number;
  /** Epoch milliseconds. */
  atMs: number;
}

/**
 * The wait for the next turn of a process to look. The processes take turns by the order of their keys and the database's clock, which is the
 * same for all. A process that ended leaves its turn out until another one has noticed.
 */
export function waitForTurn({ present, place, atMs }: Place): number {
  const turns = Math.min(Math.max(present, 1), MOST_TURNS);
  const cycleMs = turns * LOOK_EVERY_MS;
  const waitMs = ((((place % turns) * LOOK_EVERY_MS - atMs) % cycleMs) + cycleMs) % cycleMs;
  // A timer that fired early, and a look at the moment of the turn, are this turn.
  return waitMs < LOOK_EVERY_MS / 2 ? waitMs + cycleMs : waitMs;
}
