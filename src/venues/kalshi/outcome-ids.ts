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
