/** Kalshi trades both sides of a market in one book and has no ids for them; ours are made of the ticker. */
interface OutcomeIds {
  yes: string;
  no: string;
}

const OUTCOME_ID = /^([^\s,:]{1,200}):(yes|no)$/;

export function outcomeIdsOf(ticker: string): OutcomeIds {
  return { yes: `${ticker}:yes`, no: `${ticker}:no` };
}

/** The distinct tickers behind outcome ids; ids that this venue cannot have made are left out. */
export function tickersOf(outcomeIds: readonly string[]): string[] {
  return [...new Set(outcomeIds.flatMap((outcomeId) => OUTCOME_ID.exec(outcomeId)?.[1] ?? []))];
}
