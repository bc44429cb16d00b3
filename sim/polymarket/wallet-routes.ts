import type { CdnCache } from '../server/cdn-cache.ts';
import { dataError, isRefusal, pageReply, readPlace, refuseUnknown } from '../server/data-page.ts';
import { type Reply, type SimRequest, wholeNumber } from '../server/reply.ts';
import { type Wallet, wholeConditionId } from '../world/identity.ts';
import { UNITS } from '../world/market.ts';
import type { WalletActivity, WalletLedger, WalletPosition } from '../world/wallet-ledger.ts';
import { ICON } from './gamma-event.ts';
import type { Wire } from './gamma-market.ts';

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

/** A row of `/v2/activity`. */
function dataActivity(row: WalletActivity, wallet: Wallet): Wire {
  const { market, intent } = row;
  return {
    proxy_wallet: wallet.address,
    timestamp: row.second,
    condition_id: market === undefined ? '' : wholeConditionId(market.spec.conditionId),
    type: row.type,
    size: row.size / UNITS,
    usdc_size: row.cash / UNITS,
    transaction_hash: row.transactionHash,
    price: market === undefined || row.ticks === undefined ? 0 : row.ticks / market.spec.ticksPerUnit,
    token_id: market === undefined || intent === undefined ? '' : market.spec.tokenIds[intent.outcomeIndex],
    side: intent?.side ?? '',
    outcome_index: intent?.outcomeIndex ?? 999,
    title: market?.spec.question ?? '',
    slug: market?.spec.slug ?? '',
    icon: market === undefined ? '' : ICON,
    event_slug: market?.event.slug ?? '',
    outcome: market === undefined || intent === undefined ? '' : market.spec.outcomes[intent.outcomeIndex],
    name: wallet.name,
    pseudonym: wallet.pseudonym,
    bio: '',
    profile_image: '',
    profile_image_optimized: '',
  };
}

/** The worth of a position in dollars at its market's last price. */
function positionValue({ market, outcomeIndex, size }: WalletPosition): number {
  const { ticksPerUnit } = market.spec;
  const yesTicks = market.lastYesTicks ?? Math.floor(ticksPerUnit / 2);
  return ((size / UNITS) * market.yesTicks(yesTicks, outcomeIndex)) / ticksPerUnit;
}

/** A row of `/v2/positions`. */
function dataPosition(position: WalletPosition, wallet: Wallet): Wire {
  const { market, outcomeIndex, size } = position;
  const { spec } = market;
  const shares = size / UNITS;
  const value = positionValue(position);
  const price = shares === 0 ? 0 : value / shares;
  const other = outcomeIndex === 0 ? 1 : 0;
  return {
    proxy_wallet: wallet.address,
    token_id: spec.tokenIds[outcomeIndex],
    condition_id: spec.conditionId,
    // The engine keeps no cost of a position, so each counts as bought at its present price.
    avg_price: price,
    entry_cost_usdc: value,
    entry_fees_usdc: 0,
    total_cost_usdc: value,
    realized_pnl: 0,
    unrealized_pnl: 0,
    total_pnl: 0,
    percent_pnl: 0,
    percent_realized_pnl: 0,
    redeemable: market.phase === 'resolved',
    mergeable: false,
    title: spec.question,
    slug: spec.slug,
    icon: ICON,
    event_id: market.event.id,
    event_slug: market.event.slug,
    last_event_at: 0,
    name: wallet.name,
    profile_image: '',
    verified: false,
    outcome: spec.outcomes[outcomeIndex],
    outcome_index: outcomeIndex,
    opposite_outcome: spec.outcomes[other],
    opposite_token_id: spec.tokenIds[other],
    end_date: new Date(spec.endSecond * 1000).toISOString().slice(0, 10),
    negative_risk: market.event.negRiskId !== undefined,
    current_size: shares,
    total_size: shares,
    current_price: price,
    current_value: value,
    status: 'OPEN',
    archived: false,
  };
}
