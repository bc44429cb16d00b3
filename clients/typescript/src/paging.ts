/** One page of a list. `next_cursor` is null on the last page. */
export interface Page<Item> {
  data: Item[];
  meta: { next_cursor: string | null };
}

export interface PageOptions {
  /** Items per request, 1 to 1,000. Default 100. */
  pageSize?: number;
}

/** All items of a list in order. Fetches a page when its first item is needed. */
export async function* eachItem<Item>(
  signal: AbortSignal | undefined,
  readPage: (cursor: string | undefined) => Promise<Page<Item>>,
): AsyncGenerator<Item, void, undefined> {
  let cursor: string | undefined;
  do {
    const page = await readPage(cursor);
    for (const item of page.data) {
      signal?.throwIfAborted();
      yield item;
    }
    cursor = page.meta.next_cursor ?? undefined;
  } while (cursor !== undefined);
}

/** Adds the `meta` of a single page to a list without `meta`. */
export function asPage<Item>(answer: { data: Item[]; meta?: { next_cursor: string | null } }): Page<Item> {
  return { data: answer.data, meta: answer.meta ?? { next_cursor: null } };
}
