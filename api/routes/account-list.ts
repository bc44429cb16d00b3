import { z } from 'zod';
import type { ApiJson } from '../../src/domain/api-json.ts';
import type { ApiContext, ApiDeps } from '../deps.ts';
import { param, readQuery } from '../input.ts';
import { sendAccountData } from '../respond.ts';

const listQuery = z.object({ limit: param.limit, cursor: param.cursor });

export interface AccountPage {
  items: ApiJson[];
  /** The key to go on behind when more follow. */
  next?: bigint;
}

/**
 * Answers a list of the account's own things, newest first. `meta.next_cursor` is there when the caller pages, or has to:
 * the plain call stays the spec's `{success, data}`.
 */
export async function sendAccountList(
  ctx: ApiContext,
  deps: ApiDeps,
  scope: string,
  read: (limit: number, after: bigint | undefined) => Promise<AccountPage>,
): Promise<void> {
  const { limit, cursor } = readQuery(ctx, listQuery);
  const [position] = cursor === undefined ? [] : deps.cursors.decode(scope, cursor);
  const { items, next } = await read(limit, position === undefined ? undefined : BigInt(position));
  const given = new URLSearchParams(ctx.querystring);
  const isPaged = next !== undefined || given.has('limit') || given.has('cursor');
  const next_cursor = next === undefined ? null : deps.cursors.encode(scope, [String(next)]);
  sendAccountData(ctx, deps, 200, items, isPaged ? { next_cursor } : undefined);
}
