import { transactionHashOf, walletOf } from '../world/identity.ts';
import { type Market, UNITS } from '../world/market.ts';
import type { Trade } from '../world/trade-tape.ts';
import { ICON } from './gamma-event.ts';
import type { Wire } from './gamma-market.ts';

/** One row of the Data API's `/trades`: the view of the taker, or of the maker of the same fill. */
export function dataTrade(trade: Trade, market: Market, role: 'taker' | 'maker', seed: number): Wire {
  const { spec, event } = market;
  const intent = role === 'taker' ? trade.takerIntent : trade.makerIntent;
  const wallet = walletOf(seed, role === 'taker' ? trade.taker : trade.maker);
  return {
    proxyWallet: wallet.address,
    side: intent.side,
    asset: spec.tokenIds[intent.outcomeIndex],
    conditionId: spec.conditionId,
    size: trade.size / UNITS,
    price: market.yesTicks(trade.ticks, intent.outcomeIndex) / spec.ticksPerUnit,
    timestamp: trade.second,
    title: spec.question,
    slug: spec.slug,
    icon: ICON,
    eventSlug: event.slug,
    outcome: spec.outcomes[intent.outcomeIndex],
    outcomeIndex: intent.outcomeIndex,
    name: wallet.name,
    pseudonym: wallet.pseudonym,
    bio: '',
    profileImage: '',
    profileImageOptimized: '',
    transactionHash: transactionHashOf(seed, trade.orderNo),
  };
}
