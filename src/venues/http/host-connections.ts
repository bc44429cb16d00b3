/** The connections of a host, given to requests in order of arrival. */
interface HostConnections {
  /** Waits for a free connection, and resolves with the function that returns it. Rejects with the reason of the signal when aborted. */
  acquire(signal: AbortSignal): Promise<() => void>;
}

export function createHostConnections(count: number): HostConnections {
  const waiting = new Set<() => void>();
  let free = count;

  function release(): void {
    free += 1;
    const [next] = waiting;
    next?.();
  }

  return {
    async acquire(signal) {
      if (free === 0) {
        await new Promise<void>((resolve, reject) => {
          const end = () => {
            waiting.delete(give);
            signal.removeEventListener('abort', giveUp);
          };
          const give = () => {
            end();
            free -= 1;
            resolve();
          };
          const giveUp = () => {
            end();
            reject(signal.reason as Error);
          };
          if (signal.aborted) return giveUp();
          waiting.add(give);
          signal.addEventListener('abort', giveUp, { once: true });
        });
      } else {
        free -= 1;
      }
      return release;
    },
  };
}
