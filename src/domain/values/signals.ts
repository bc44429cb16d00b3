/**
 * Aborts `controller` when `signal` aborts, with its reason, until the returned function is called: a long-lived signal keeps the link.
 *
 * Use this instead of `AbortSignal.any`: on Node 20 that leaves a reference in each source for ever, and a timeout among its sources never
 * fires after a garbage collection.
 */
export function forwardAbort(signal: AbortSignal, controller: AbortController): () => void {
  const forward = () => controller.abort(signal.reason);
  if (signal.aborted) forward();
  else signal.addEventListener('abort', forward, { once: true });
  return () => signal.removeEventListener('abort', forward);
}

/** A moment after which work stops, and the signal that fires then. Always `close()` it: it holds a timer and listeners. */
interface Deadline {
  readonly signal: AbortSignal;
  remainingMs(): number;
  close(): void;
}

/** Aborts when one of `parents` aborts or after `ms`, whichever comes first. */
export function openDeadline(parents: readonly AbortSignal[], ms: number): Deadline {
  const controller = new AbortController();
  const endsAt = performance.now() + ms;
  const timer = setTimeout(() => controller.abort(new Error(`deadline of ${ms} ms passed`)), ms);
  const unlinks = parents.map((parent) => forwardAbort(parent, controller));
  return {
    signal: controller.signal,
    remainingMs: () => Math.max(0, endsAt - performance.now()),
    close: () => {
      clearTimeout(timer);
      for (const unlink of unlinks) unlink();
    },
  };
}
