/** The skip reason of a sound record of a combination ([reasons](../../../docs/venues.md#not-represented-1)). */
export const COMBINATION = 'combination';

const PREFIX = 'KXMVE';

/**
 * A combination pays when all its legs, which are sides of other markets, come true. Its trades and books have only its ticker. All
 * recorded tickers of combinations, and no others, have this prefix.
 */
export function isCombinationTicker(ticker: unknown): boolean {
  return typeof ticker === 'string' && ticker.startsWith(PREFIX);
}

/** Whether a market object is a combination: by its ticker, its collection or its legs. */
export function isCombination(market: unknown): boolean {
  if (market === null || typeof market !== 'object') return false;
  const { ticker, mve_collection_ticker: collection, mve_selected_legs: legs } = market as Record<string, unknown>;
  const hasCollection = typeof collection === 'string' && collection !== '';
  return hasCollection || (Array.isArray(legs) && legs.length > 0) || isCombinationTicker(ticker);
}
