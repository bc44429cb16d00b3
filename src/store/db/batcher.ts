/** One pending call of a later run. */
interface Waiting<Item, Result> {
  item: Item;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

interface BatcherOptions<Item, Result> {
  /** Runs a batch: one result per item, in their order. */
  run: (items: readonly Item[]) => Promise<readonly Result[]>;
  maxItems: number;
  /** Whether a batch with this error runs again item by item, so that a single item does not fail the others. */
  isWorthSplitting?: (error: unknown) => boolean;
}

/**
 * Collects the items that arrive while a run is in flight into the next run, so that many callers share a transaction. Without a run in
 * flight an item runs at once. Resolves when the item's run has ended.
 */
export function createBatcher<Item, Result>(options: BatcherOptions<Item, Result>): (item: Item) => Promise<Result> {
  const { run, maxItems, isWorthSplitting = () => false } = options;
  const waiting: Waiting<Item, Result>[] = [];
  let isRunning = false;

  async function settle(batch: readonly Waiting<Item, Result>[]): Promise<void> {
    try {
      const results = await run(batch.map(({ item }) => item));
      if (results.length !== batch.length) throw new TypeError('a batch must return one result per item');
      results.forEach((result, index) => {
        batch[index]?.resolve(result);
      });
    } catch (error) {
      if (batch.length > 1 && isWorthSplitting(error)) for (const one of batch) await settle([one]);
      else for (const { reject } of batch) reject(error);
    }
  }

  async function drain(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) await settle(waiting.splice(0, maxItems));
    isRunning = false;
  }

  return (item) =>
    new Promise((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!isRunning) void drain();
    });
}

/** Makes one value per owner and drops it with the owner: jobs of a process share it through their database. */
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

/** The same for each venue of an owner, by its name. */
export function oncePerVenue<Made>(make: () => Made): (owner: object, venue: string) => Made {
  const madeOf = oncePerOwner((_owner: object) => new Map<string, Made>());
  return (owner, venue) => {
    const made = madeOf(owner);
    const known = made.get(venue);
    if (known !== undefined) return known;
    const fresh = make();
    made.set(venue, fresh);
    return fresh;
  };
}
