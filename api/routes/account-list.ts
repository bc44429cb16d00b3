import { z } from 'zod';
import type { ApiJson } from '../../src/domain/values/api-json.ts';
import type { ApiContext, ApiDeps } from '../deps.ts';
import { param } from '../http/input.ts';
import type { AccountAnswer } from '../http/respond.ts';

/** What every list of the account's own things takes. */
export const listQuery = z.object({ limit: param.limit, cursor: param.cursor });

interface AccountPage<Item extends ApiJson> {
  items: Item[];
  /** The key to go on behind when more follow. */
  next?: bigint | undefined;
}

interface ListRequest {
  ctx: ApiContext;
  query: z.output<typeof listQuery>;
}

/**
 * A list of the account's own things, newest first. `meta.next_cursor` is there when the caller pages, or has to: the plain
 * call stays the spec's `{success, data}`. A cursor belongs to `scope`.
 */
export async function accountList<Item extends ApiJson>(
  { ctx, query: { limit, cursor } }: ListRequest,
  deps: Pick<ApiDeps, 'cursors'>,
  scope: string,
  read: (limit: number, after: bigint | undefined) => Promise<AccountPage<Item>>,
): Promise<AccountAnswer<Item[]>> {
  const [position] = cursor === undefined ? [] : deps.cursors.decode(scope, cursor);
  const { items, next } = await read(limit, position === undefined ? undefined : BigInt(position));
  const given = new URLSearchParams(ctx.querystring);
  const isPaged = next !== undefined || given.has('limit') || given.has('cursor');
  const next_cursor = next === undefined ? null : deps.cursors.encode(scope, [String(next)]);
  return { data: items, ...(isPaged && { meta: { next_cursor } }) };
}
