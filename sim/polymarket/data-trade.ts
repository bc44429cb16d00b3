import { transactionHashOf, walletOf, wholeConditionId } from '../world/identity.ts';
import { type Market, UNITS } from '../world/market.ts';
import type { Trade } from '../world/trade-tape.ts';
import { ICON } from './gamma-event.ts';
import type { Wire } from './gamma-market.ts';

/** Time for which a row lacks the names of its event and outcome. */
const UNNAMED_SECONDS = 30;

/** One row of `/v2/trades` of the Data API: the view of the taker, or of the maker of the same fill. */
export function dataTrade(
  trade: Trade,
  market: Market,
  role: 'taker' | 'maker',
  { seed, second }: { seed: number; second: number },
): Wire {
  const { spec, event } = market;
  const intent = role === 'taker' ? trade.takerIntent : trade.makerIntent;
  const wallet = walletOf(seed, role === 'taker' ? trade.taker : trade.maker);
  const isNamed = second - trade.second >= UNNAMED_SECONDS;
  return {
    proxy_wallet: wallet.address,
    side: intent.side,
    token_id: spec.tokenIds[intent.outcomeIndex],
    // A condition of protocol V2 occurs with and without its last byte, which is zero.
    condition_id: trade.index % 2 === 0 ? spec.conditionId : wholeConditionId(spec.conditionId),
    size: trade.size / UNITS,
    price: market.yesTicks(trade.ticks, intent.outcomeIndex) / spec.ticksPerUnit,
    timestamp: trade.second,
    title: spec.question,
    slug: spec.slug,
    icon: ICON,
    event_slug: isNamed ? event.slug : '',
    outcome: spec.outcomes[intent.outcomeIndex],
    outcome_index: isNamed ? intent.outcomeIndex : 999,
    name: wallet.name,
    pseudonym: wallet.pseudonym,
    bio: '',
    profile_image: '',
    profile_image_optimized: '',
    transaction_hash: transactionHashOf(seed, trade.orderNo),
  };
}

/** A fill of a combination, which the feed of all markets contains. Both of its legs are the market of `trade`. */
export function comboTrade(row: Wire, trade: Trade): Wire {
  const module = trade.index.toString(16).padStart(32, '0');
  return {
    ...row,
    token_id: String(10n ** 76n + BigInt(trade.index)),
    condition_id: `0x03${module}${'0'.repeat(28)}`,
    title: `${String(row['title'])} AND ${String(row['title'])}`,
    slug: '',
    event_slug: '',
    outcome: '',
    outcome_index: 999,
  };
}
