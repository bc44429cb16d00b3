import { type Wallet, wholeConditionId } from '../world/identity.ts';
import { UNITS } from '../world/market.ts';
import type { WalletActivity, WalletPosition } from '../world/wallet-ledger.ts';
import { ICON } from './gamma-event.ts';
import type { Wire } from './gamma-market.ts';

/** A row of `/v2/activity`. */
export function dataActivity(row: WalletActivity, wallet: Wallet): Wire {
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
export function positionValue({ market, outcomeIndex, size }: WalletPosition): number {
  const { ticksPerUnit } = market.spec;
  const yesTicks = market.lastYesTicks ?? Math.floor(ticksPerUnit / 2);
  return ((size / UNITS) * market.yesTicks(yesTicks, outcomeIndex)) / ticksPerUnit;
}

/** A row of `/v2/positions`. */
export function dataPosition(position: WalletPosition, wallet: Wallet): Wire {
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
