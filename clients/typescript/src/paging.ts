/** One page of a list. `next_cursor` is null at the end. */
export interface Page<Item> {
  data: Item[];
  meta: { next_cursor: string | null };
}

export interface PageOptions {
  /** Items per request, 1 to 1,000. Default 100. */
  pageSize?: number;
}

/** Every item of a list, page by page, in the list's order. A page is asked for when its first item is. */
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

/** The same for a list whose `meta` may be absent, which is that of one page. */
export function asPage<Item>(answer: { data: Item[]; meta?: { next_cursor: string | null } }): Page<Item> {
  return { data: answer.data, meta: answer.meta ?? { next_cursor: null } };
}
