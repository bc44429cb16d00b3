import type { Wallet } from '../world/identity.ts';
import { UNITS } from '../world/market.ts';
import type { WalletActivity, WalletPosition } from '../world/wallet-ledger.ts';
import { ICON } from './gamma-event.ts';
import type { Wire } from './gamma-market.ts';

/** What a row of the Data API's wallet routes says, under the names of version 1. */
function activityFields(row: WalletActivity, wallet: Wallet): Wire {
  const { market, intent } = row;
  return {
    proxyWallet: wallet.address,
    timestamp: row.second,
    conditionId: market?.spec.conditionId ?? '',
    type: row.type,
    size: row.size / UNITS,
    usdcSize: row.cash / UNITS,
    transactionHash: row.transactionHash,
    price: market === undefined || row.ticks === undefined ? 0 : row.ticks / market.spec.ticksPerUnit,
    asset: market === undefined || intent === undefined ? '' : market.spec.tokenIds[intent.outcomeIndex],
    side: intent?.side ?? '',
    outcomeIndex: intent?.outcomeIndex ?? 999,
    title: market?.spec.question ?? '',
    slug: market?.spec.slug ?? '',
    icon: market === undefined ? '' : ICON,
    eventSlug: market?.event.slug ?? '',
    outcome: market === undefined || intent === undefined ? '' : market.spec.outcomes[intent.outcomeIndex],
    name: wallet.name,
    pseudonym: wallet.pseudonym,
    bio: '',
    profileImage: '',
    profileImageOptimized: '',
  };
}

/** A row of `/activity` (v1) or `/v2/activity`. */
export function dataActivity(row: WalletActivity, wallet: Wallet, version: 1 | 2): Wire {
  const fields = activityFields(row, wallet);
  return version === 1 ? fields : inSnakeCase(fields);
}

/** Dollars a position is worth at its market's last price. */
export function positionValue({ market, outcomeIndex, size }: WalletPosition): number {
  const { ticksPerUnit } = market.spec;
  const yesTicks = market.lastYesTicks ?? Math.floor(ticksPerUnit / 2);
  return ((size / UNITS) * market.yesTicks(yesTicks, outcomeIndex)) / ticksPerUnit;
}

/** A row of `/positions` (v1) or `/v2/positions`. */
export function dataPosition(position: WalletPosition, wallet: Wallet, version: 1 | 2): Wire {
  const { market, outcomeIndex, size } = position;
  const { spec } = market;
  const shares = size / UNITS;
  const value = positionValue(position);
  const price = shares === 0 ? 0 : value / shares;
  const other = outcomeIndex === 0 ? 1 : 0;
  const common = {
    proxyWallet: wallet.address,
    asset: spec.tokenIds[outcomeIndex],
    conditionId: spec.conditionId,
    avgPrice: price,
    realizedPnl: 0,
    redeemable: market.phase === 'resolved',
    mergeable: false,
    title: spec.question,
    slug: spec.slug,
    icon: ICON,
    eventSlug: market.event.slug,
    outcome: spec.outcomes[outcomeIndex],
    outcomeIndex,
    oppositeOutcome: spec.outcomes[other],
    oppositeAsset: spec.tokenIds[other],
    endDate: new Date(spec.endSecond * 1000).toISOString().slice(0, 10),
    negativeRisk: market.event.negRiskId !== undefined,
  };
  if (version === 1) return { ...common, size: shares, initialValue: value, currentValue: value, curPrice: price };
  return {
    ...inSnakeCase(common),
    current_size: shares,
    total_size: shares,
    current_price: price,
    current_value: value,
    status: 'OPEN',
    archived: false,
  };
}

/** `asset` and `oppositeAsset` are token ids in version 2. */
function inSnakeCase(fields: Wire): Wire {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name
        .replace(/asset$/i, (found) => (found === 'asset' ? 'tokenId' : 'TokenId'))
        .replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      value,
    ]),
  );
}
