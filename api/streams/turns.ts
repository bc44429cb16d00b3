/** Limits how many tasks run at once. The others wait in their order. */
export function createTurns(limit: number): { run<T>(task: () => Promise<T>): Promise<T> } {
  const waiting: (() => void)[] = [];
  let running = 0;
  return {
    async run(task) {
      if (running >= limit) await new Promise<void>((resolve) => void waiting.push(resolve));
      else running += 1;
      try {
        return await task();
      } finally {
        const next = waiting.shift();
        // The next task takes the turn over.
        if (next) next();
        else running -= 1;
      }
    },
  };
}
