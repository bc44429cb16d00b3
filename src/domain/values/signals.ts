/** The controllers that follow a signal, and the end of its only listener. */
interface Followers {
  readonly controllers: Set<AbortController>;
  readonly unlisten: () => void;
}

const followersOf = new WeakMap<AbortSignal, Followers>();

/**
 * Aborts `controller` when `signal` aborts, with its reason, until the returned function is called: a long-lived signal keeps the link.
 * A signal has one listener, however many controllers follow it: each job of a process follows the same one, and Node warns of more than
 * ten listeners.
 *
 * Use this instead of `AbortSignal.any`: on Node 20 that leaves a reference in each source for ever, and a timeout among its sources never
 * fires after a garbage collection.
 */
export function forwardAbort(signal: AbortSignal, controller: AbortController): () => void {
  if (signal.aborted) {
    controller.abort(signal.reason);
    return () => undefined;
  }
  const followers = followersOf.get(signal) ?? follow(signal);
  followers.controllers.add(controller);
  return () => {
    if (!followers.controllers.delete(controller) || followers.controllers.size > 0) return;
    followers.unlisten();
    followersOf.delete(signal);
  };
}

function follow(signal: AbortSignal): Followers {
  const controllers = new Set<AbortController>();
  const forward = () => {
    followersOf.delete(signal);
    const all = [...controllers];
    controllers.clear();
    for (const controller of all) controller.abort(signal.reason);
  };
  signal.addEventListener('abort', forward, { once: true });
  const followers = { controllers, unlisten: () => signal.removeEventListener('abort', forward) };
  followersOf.set(signal, followers);
  return followers;
}

/** A moment after which work stops, and the signal that fires then. Always `close()` it: it holds a timer and listeners. */
interface Deadline {
  readonly signal: AbortSignal;
  remainingMs(): number;
  close(): void;
}

/** Aborts when one of `parents` aborts or after `ms`, whichever comes first. */
export function openDeadline(parents: readonly AbortSignal[], ms: number): Deadline {
  return open(parents, ms, () => ms);
}

/** A deadline that does not count the time in which this process was late, up to a limit, as `lag` measures it from now on. */
export function openStretchingDeadline<Lag extends { stretched(limitMs: number): number }>(
  parents: readonly AbortSignal[],
  ms: number,
  lag: Lag,
): Deadline & { readonly lag: Lag } {
  return { ...open(parents, ms, () => lag.stretched(ms)), lag };
}

function open(parents: readonly AbortSignal[], ms: number, limitMs: () => number): Deadline {
  const controller = new AbortController();
  const beganMs = performance.now();
  const leftMs = () => Math.max(0, beganMs + limitMs() - performance.now());
  let timer = setTimeout(end, ms);
  function end(): void {
    // A timer fires up to a millisecond early.
    const left = leftMs();
    if (left >= 1) timer = setTimeout(end, left);
    else controller.abort(new Error(`deadline of ${ms} ms passed`));
  }
  const unlinks = parents.map((parent) => forwardAbort(parent, controller));
  return {
    signal: controller.signal,
    remainingMs: leftMs,
    close: () => {
      clearTimeout(timer);
      for (const unlink of unlinks) unlink();
    },
  };
}

/**
 * A wait that another part ends early. A wake-up before the wait ends it at once, so none is lost between a look for work and the wait.
 * Cheaper than an `AbortController` per wait, whose abort makes two errors with their stacks. It has one wait at a time.
 */
export class WakeUp {
  #isWoken = false;
  #end: (() => void) | undefined;

  /** Ends the present wait, or the next one. */
  wake(): void {
    this.#isWoken = true;
    this.#end?.();
  }

  /** Forgets the wake-ups until now: the caller looks for their work. Returns whether there was one. */
  take(): boolean {
    const isWoken = this.#isWoken;
    this.#isWoken = false;
    return isWoken;
  }

  /** Resolves after `ms`, at a wake-up, or when the signal fires. Does not keep the process alive. */
  wait(ms: number, signal: AbortSignal): Promise<void> {
    if (this.#isWoken || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        if (this.#end === end) this.#end = undefined;
        resolve();
      };
      const timer = setTimeout(end, Math.max(0, ms)).unref();
      signal.addEventListener('abort', end, { once: true });
      this.#end = end;
    });
  }
}

/**
 * The result of `work`, or of `onLate` when `work` takes longer than `limitMs`. Late work continues, and its result is ignored.
 */
export async function within<T, L>(limitMs: number, work: Promise<T>, onLate: () => L): Promise<T | L> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs);
  });
  try {
    return await Promise.race([work, expiry.then(onLate)]);
  } finally {
    clearTimeout(timer);
  }
}
