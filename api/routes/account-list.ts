import { z } from 'zod';
import type { ApiJson } from '../../src/domain/values/api-json.ts';
import type { ApiContext, Caller } from '../context.ts';
import { param } from '../http/input.ts';
import type { AccountAnswer } from '../http/respond.ts';
import type { ReadDeps } from '../reads/read-deps.ts';

/** The query of every list of account resources. */
export const listQuery = z.object({ limit: param.limit, cursor: param.cursor });

interface AccountPage<Item extends ApiJson> {
  items: Item[];
  /** The key of the last item when more items follow. */
  next?: bigint | undefined;
}

interface ListRequest {
  ctx: ApiContext;
  caller: Caller;
  query: z.output<typeof listQuery>;
}

/**
 * A list of account resources, newest first. `meta.next_cursor` is present when the caller pages or more items follow; otherwise the
 * answer is the `{success, data}` of the specification. A cursor is valid only for this account and `list`: a name and the
 * filters.
 */
export async function accountList<Item extends ApiJson>(
  { ctx, caller, query: { limit, cursor } }: ListRequest,
  deps: Pick<ReadDeps, 'cursors'>,
  list: readonly unknown[],
  read: (limit: number, after: bigint | undefined) => Promise<AccountPage<Item>>,
): Promise<AccountAnswer<Item[]>> {
  return placedList({ ctx, caller, query: { limit, cursor } }, deps, list, async (_, place) => {
    const [position] = place ?? [];
    const { items, next } = await read(limit, position === undefined ? undefined : BigInt(position));
    return { items, ...(next !== undefined && { next: [String(next)] }) };
  });
}

/** The same for a list whose order needs several values: `next` is the place of the last item. */
export async function placedList<Item extends ApiJson>(
  { ctx, caller, query: { limit, cursor } }: ListRequest,
  deps: Pick<ReadDeps, 'cursors'>,
  list: readonly unknown[],
  read: (
    limit: number,
    after: readonly string[] | undefined,
  ) => Promise<{ items: Item[]; next?: readonly string[] | undefined }>,
): Promise<AccountAnswer<Item[]>> {
  const scope = JSON.stringify([...list, String(caller.accountId)]);
  const { items, next } = await read(limit, cursor === undefined ? undefined : deps.cursors.decode(scope, cursor));
  const given = new URLSearchParams(ctx.querystring);
  const isPaged = next !== undefined || given.has('limit') || given.has('cursor');
  const next_cursor = next === undefined ? null : deps.cursors.encode(scope, [...next]);
  return { data: items, ...(isPaged && { meta: { next_cursor } }) };
}
