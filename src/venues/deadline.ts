/** A moment after which work stops, and the signal that fires then. Always `close()` it: it holds a timer and a listener. */
interface Deadline {
  readonly signal: AbortSignal;
  remainingMs(): number;
  close(): void;
}

/**
 * Aborts when `parent` aborts or after `ms`, whichever comes first. `AbortSignal.any` is not used: on Node 20 it keeps every derived signal
 * alive as long as a long-lived parent.
 */
export function openDeadline(parent: AbortSignal, ms: number): Deadline {
  const controller = new AbortController();
  const endsAt = performance.now() + ms;
  const onParentAbort = () => controller.abort(parent.reason);
  const timer = setTimeout(() => controller.abort(new Error(`deadline of ${ms} ms passed`)), ms);
  if (parent.aborted) onParentAbort();
  else parent.addEventListener('abort', onParentAbort, { once: true });
  return {
    signal: controller.signal,
    remainingMs: () => Math.max(0, endsAt - performance.now()),
    close: () => {
      clearTimeout(timer);
      parent.removeEventListener('abort', onParentAbort);
    },
  };
}
