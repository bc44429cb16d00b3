/** Kalshi trades both sides of a market in one book and has no ids for them; oddswire derives the ids from the ticker. */
interface OutcomeIds {
  yes: string;
  no: string;
}

const OUTCOME_ID = /^([^\s,:]{1,200}):(yes|no)$/;

export function outcomeIdsOf(ticker: string): OutcomeIds {
  return { yes: `${ticker}:yes`, no: `${ticker}:no` };
}

/** The distinct tickers of outcome ids; ids of another form are skipped. */
export function tickersOf(outcomeIds: readonly string[]): string[] {
  return [...new Set(outcomeIds.flatMap((outcomeId) => OUTCOME_ID.exec(outcomeId)?.[1] ?? []))];
}

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
