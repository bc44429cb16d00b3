/** One call of many that share a run. */
interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

interface BatcherOptions<Item, Result> {
  /** Runs a batch: a result for each item, in their order. */
  run: (items: readonly Item[]) => Promise<readonly Result[]>;
  maxItems: number;
  /** Whether a batch that failed so is run again item by item, so that one of them does not cost the others. */
  isWorthSplitting?: (error: unknown) => boolean;
}

/**
 * Runs together what is asked for while the run before is under way, so that many askers share a transaction. Nothing waits for
 * company: who asks alone is served at once. Resolves when the item's run has ended.
 */
export function createBatcher<Item, Result>(options: BatcherOptions<Item, Result>): (item: Item) => Promise<Result> {
  const { run, maxItems, isWorthSplitting = () => false } = options;
  const waiting: Waiting<Item, Result>[] = [];
  let isRunning = false;

  async function settle(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await run(batch.map(({ item }) => item));
      if (results.length !== batch.length) throw new TypeError('a batch gives one result for each item');
      results.forEach((result, index) => {
        batch[index]?.resolve(result);
      });
    } catch (error) {
      if (batch.length > 1 && isWorthSplitting(error)) for (const one of batch) await settle([one]);
      else for (const { reject } of batch) reject(error);
    }
  }

  async function workOff(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) await settle(waiting.splice(0, maxItems));
    isRunning = false;
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!isRunning) void workOff();
    });
}

/** Something made once for each owner, and gone with it: what the jobs of a process share is found by their database. */
export function oncePerOwner<Owner extends object, Made>(make: (owner: Owner) => Made): (owner: Owner) => Made {
  const made = new WeakMap<Owner, Made>();
  return (owner) => {
    const known = made.get(owner);
    if (known !== undefined) return known;
    const fresh = make(owner);
    made.set(owner, fresh);
    return fresh;
  };
}
