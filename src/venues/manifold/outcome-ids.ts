/** Contract and answer ids: 20 letters and digits of old, 10 to 12 now. None ever held a colon. */
export const VENUE_ID = /^[\w-]{1,64}$/;

/** `<contractId>:YES|NO` for binary markets, `<contractId>:<answerId>` for the YES of an answer of a multiple-choice one. */
export function outcomeIdOf(contractId: string, part: string): string {
  return `${contractId}:${part}`;
}

/** The two parts of an outcome id, or undefined when it is none of ours. */
export function partsOfOutcomeId(outcomeId: string): { contractId: string; part: string } | undefined {
  const [contractId = '', part = '', ...rest] = outcomeId.split(':');
  return rest.length === 0 && VENUE_ID.test(contractId) && VENUE_ID.test(part) ? { contractId, part } : undefined;
}
