import { dataActivity, dataPosition, positionValue } from '../wire/data-wallet.ts';
import { UNITS } from '../world/market.ts';
import type { WalletActivity, WalletLedger } from '../world/wallet-ledger.ts';
import { json, plainError, type Reply, type SimRequest, wholeNumber } from './reply.ts';

const DEFAULT_LIMIT = 100;
const MAX_LIMIT = { 1: 500, 2: 1_000 };
const MAX_OFFSET = 10_000;
/** Types that version 2 leaves out unless it is told not to. */
const TRANSFERS: readonly string[] = ['DEPOSIT', 'WITHDRAWAL'];

/** What a running engine knows of its wallets; a folder of recordings knows none. */
export type WalletSource = Pick<WalletLedger, 'activity' | 'positions'>;

/** `/activity` and `/positions` of data-api.polymarket.com, in both versions. */
export function walletRoutes(source: WalletSource): (request: SimRequest) => Reply | undefined {
  return ({ method, path, query }) => {
    const match = /^(\/v2)?\/(activity|positions)$/.exec(path);
    if (method !== 'GET' || match === null) return undefined;
    const version = match[1] === undefined ? 1 : 2;
    const user = query.get('user')?.toLowerCase() ?? '';
    if (!/^0x[0-9a-f]{40}$/.test(user))
      return plainError(400, 'required query param user is missing or not an address');
    const rows =
      match[2] === 'activity' ? activity(source, user, query, version) : positions(source, user, query, version);
    return typeof rows === 'string' ? plainError(400, rows) : paged(rows, query, version, `${path} ${user}`);
  };
}

/** Rows in the order of the answer, written when their page is asked for. */
type Rows = readonly (() => unknown)[];

function activity(source: WalletSource, user: string, query: URLSearchParams, version: 1 | 2): Rows | string {
  const start = wholeNumber(query.get('start'));
  const end = wholeNumber(query.get('end'));
  if (start === null || end === null) return 'invalid start or end';
  const types = (query.get('type') ?? '').split(',').filter(Boolean);
  const leavesTransfersOut = version === 2 && query.get('exclude_deposits_withdrawals') !== 'false';
  const found = source.activity(user);
  if (found === undefined) return [];
  const rows = found.rows.filter(
    ({ second, type }: WalletActivity) =>
      (start === undefined || second >= start) &&
      (end === undefined || second <= end) &&
      (types.length === 0 || types.includes(type)) &&
      !(leavesTransfersOut && TRANSFERS.includes(type)),
  );
  const direction = query.get(version === 2 ? 'sort_direction' : 'sortDirection');
  return (direction === 'ASC' ? rows : rows.reverse()).map((row) => () => dataActivity(row, found.wallet, version));
}

function positions(source: WalletSource, user: string, query: URLSearchParams, version: 1 | 2): Rows | string {
  const threshold = Number(query.get('sizeThreshold') ?? (version === 1 ? 1 : 0));
  if (!Number.isFinite(threshold)) return 'invalid sizeThreshold';
  const found = source.positions(user);
  if (found === undefined) return [];
  return found.rows
    .filter(({ size }) => size / UNITS >= threshold)
    .sort((a, b) => positionValue(b) - positionValue(a))
    .map((row) => () => dataPosition(row, found.wallet, version));
}

function paged(all: Rows, query: URLSearchParams, version: 1 | 2, scope: string): Reply {
  const limit = Math.min(wholeNumber(query.get('limit')) ?? DEFAULT_LIMIT, MAX_LIMIT[version]);
  const rowsAt = (offset: number) => all.slice(offset, offset + limit).map((row) => row());
  if (version === 1) {
    const offset = wholeNumber(query.get('offset')) ?? 0;
    if (offset > MAX_OFFSET) return plainError(400, `max offset of ${MAX_OFFSET} exceeded`);
    return json(rowsAt(offset));
  }
  if (query.has('offset')) return plainError(400, 'offset is not supported, use cursor');
  const offset = offsetOf(query.get('cursor'), scope);
  if (offset === undefined) return plainError(400, 'invalid cursor');
  const hasMore = offset + limit < all.length;
  const next_cursor = hasMore ? Buffer.from(`${offset + limit} ${scope}`).toString('base64url') : null;
  return json({
    data: rowsAt(offset),
    pagination: { limit, offset, has_more: hasMore, next_cursor },
  });
}

/** A cursor belongs to its route and its wallet. */
function offsetOf(cursor: string | null, scope: string): number | undefined {
  if (cursor === null || cursor === '') return 0;
  const [offset = '', ...rest] = Buffer.from(cursor, 'base64url').toString().split(' ');
  return rest.join(' ') === scope && /^\d{1,9}$/.test(offset) ? Number(offset) : undefined;
}
