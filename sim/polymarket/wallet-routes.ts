import type { CdnCache } from '../server/cdn-cache.ts';
import { dataError, isRefusal, pageReply, readPlace, refuseUnknown } from '../server/data-page.ts';
import { type Reply, type SimRequest, wholeNumber } from '../server/reply.ts';
import type { WalletActivity, WalletLedger } from '../world/wallet-ledger.ts';
import { dataActivity, dataPosition, positionValue } from './data-wallet.ts';

/** Types that are hidden by default. */
const TRANSFERS: readonly string[] = ['DEPOSIT', 'WITHDRAWAL'];
const ROUTES = {
  '/v2/activity': {
    maxAgeSeconds: 15,
    parameters: ['user', 'type', 'side', 'start', 'end', 'sort_direction', 'exclude_deposits_withdrawals'],
    rows: activity,
  },
  '/v2/positions': { maxAgeSeconds: 5, parameters: ['user'], rows: positions },
};

/** The wallets of a running engine; a folder of recordings has none. */
export type WalletSource = Pick<WalletLedger, 'activity' | 'positions'>;

/** `/v2/activity` and `/v2/positions` of data-api.polymarket.com behind their CDN. */
export function walletRoutes(source: WalletSource, cache: CdnCache): (request: SimRequest) => Reply | undefined {
  return (request) => {
    const route = ROUTES[request.path as keyof typeof ROUTES] as (typeof ROUTES)[keyof typeof ROUTES] | undefined;
    if (request.method !== 'GET' || route === undefined) return undefined;
    return cache.answer(request, route.maxAgeSeconds, () => {
      const refusal = refuseUnknown(request, route.parameters);
      if (refusal) return refusal;
      const user = request.query.get('user')?.toLowerCase() ?? '';
      if (!/^0x[0-9a-f]{40}$/.test(user)) return dataError(400, "required query param 'user' not provided", 'user');
      const rows = route.rows(source, user, request.query);
      return typeof rows === 'string' ? dataError(400, rows) : paged(rows, request);
    });
  };
}

/** Rows in the order of the answer, written on demand. */
type Rows = readonly (() => unknown)[];

function activity(source: WalletSource, user: string, query: URLSearchParams): Rows | string {
  const start = wholeNumber(query.get('start'));
  const end = wholeNumber(query.get('end'));
  if (start === null || end === null) return 'invalid start or end';
  const types = (query.get('type') ?? '').split(',').filter(Boolean);
  const side = query.get('side');
  const leavesTransfersOut = query.get('exclude_deposits_withdrawals') !== 'false';
  const found = source.activity(user);
  if (found === undefined) return [];
  const rows = found.rows.filter(
    ({ second, type, intent }: WalletActivity) =>
      (start === undefined || second >= start) &&
      (end === undefined || second <= end) &&
      (types.length === 0 || types.includes(type)) &&
      (side === null || intent?.side === side) &&
      !(leavesTransfersOut && TRANSFERS.includes(type)),
  );
  const isOldestFirst = query.get('sort_direction') === 'ASC';
  return (isOldestFirst ? rows : rows.reverse()).map((row) => () => dataActivity(row, found.wallet));
}

function positions(source: WalletSource, user: string): Rows {
  const found = source.positions(user);
  if (found === undefined) return [];
  return found.rows
    .toSorted((a, b) => positionValue(b) - positionValue(a))
    .map((row) => () => dataPosition(row, found.wallet));
}

/** The place of a page is the number of rows before it. */
function paged(all: Rows, request: SimRequest): Reply {
  const place = readPlace<number>(request);
  if (isRefusal(place)) return place;
  const begin = place.after ?? 0;
  const end = begin + place.limit;
  const rows = all.slice(begin, end).map((row) => JSON.stringify(row()));
  return pageReply(request, rows, place.limit, end < all.length ? end : undefined);
}
