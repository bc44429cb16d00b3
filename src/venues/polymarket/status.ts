import type { MarketStatus } from '../../domain/markets/market.ts';
import type { Decimal } from '../../domain/values/decimal.ts';
import type { GammaMarket } from './models.ts';

interface GammaLife {
  status: MarketStatus;
  resolution?: 'outcome' | 'void';
  winningIndex?: number;
  /** Per outcome, in order; absent until they are final. */
  payouts?: Decimal[];
  /** An unknown `umaResolutionStatus`. */
  unknownUmaStatus?: string;
}

/** Whether the venue accepts orders for a market. Otherwise its books are empty or left over. */
export function isTrading(market: GammaMarket): boolean {
  return !market.closed && market.archived !== true && isAcceptingOrders(market);
}

function isAcceptingOrders(market: GammaMarket): boolean {
  return market.acceptingOrders !== false && market.enableOrderBook !== false && market.active !== false;
}

/**
 * The status of a market from Gamma's flags, evaluated top-down ([table](../../../docs/venues.md#markets)). `prices` are the parsed
 * `outcomePrices`, undefined when absent or unreadable.
 */
export function gammaLife(
  market: GammaMarket,
  prices: Decimal[] | undefined,
  startMs: number | undefined,
  nowMs: number,
): GammaLife {
  const uma = market.umaResolutionStatus?.toLowerCase() ?? '';
  const hasStopped = !isTrading(market);
  if (uma === 'proposed' || uma === 'disputed') return { status: hasStopped ? 'closed' : 'open' };
  if (uma !== '' && uma !== 'resolved') return { status: hasStopped ? 'closed' : 'open', unknownUmaStatus: uma };

  const isUmaResolved = uma === 'resolved';
  if (market.closed && prices) {
    if (prices.every((price) => price === '0')) return { status: 'resolved', resolution: 'void' };
    if (isUmaResolved && prices.every((price) => price === '0.5')) {
      return { status: 'resolved', resolution: 'void', payouts: prices };
    }
  }
  if ((market.closed || isUmaResolved) && prices && isSettledSplit(prices)) {
    return { status: 'resolved', resolution: 'outcome', winningIndex: prices.indexOf('1' as Decimal), payouts: prices };
  }
  if (isUmaResolved) return { status: 'resolved' };
  if (market.closed || market.archived === true) return { status: 'closed' };
  if (!hasStopped) return { status: 'open' };
  return { status: startMs !== undefined && startMs > nowMs ? 'created' : 'halted' };
}

/** Exactly one outcome at 1 and all others at 0. */
function isSettledSplit(prices: readonly Decimal[]): boolean {
  return (
    prices.every((price) => price === '0' || price === '1') && prices.filter((price) => price === '1').length === 1
  );
}
