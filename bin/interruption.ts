/** 128 and the number of SIGINT, as a shell reports a program that Ctrl-C ended. */
export const EXIT_INTERRUPTED = 130;

/** A stop that a person requested. */
interface Interruption {
  /** Fires at the first SIGINT or SIGTERM. A second one ends the process at once. */
  readonly signal: AbortSignal;
  close(): void;
}

export function awaitInterruption(): Interruption {
  const stop = new AbortController();
  const onSignal = () => stop.abort();
  const names = ['SIGINT', 'SIGTERM'] as const;
  for (const name of names) process.once(name, onSignal);
  return {
    signal: stop.signal,
    close() {
      for (const name of names) process.removeListener(name, onSignal);
    },
  };
}
