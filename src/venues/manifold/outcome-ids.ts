/** Contract and answer ids: 10 to 12 letters and digits, formerly 20. No recorded id contains a colon. */
export const VENUE_ID = /^[\w-]{1,64}$/;

/** `<contractId>:YES|NO` for binary markets, `<contractId>:<answerId>` for the YES of an answer of a multiple-choice market. */
export function outcomeIdOf(contractId: string, part: string): string {
  return `${contractId}:${part}`;
}

/** The two parts of an outcome id; undefined for ids of another form. */
export function partsOfOutcomeId(outcomeId: string): { contractId: string; part: string } | undefined {
  const [contractId = '', part = '', ...rest] = outcomeId.split(':');
  return rest.length === 0 && VENUE_ID.test(contractId) && VENUE_ID.test(part) ? { contractId, part } : undefined;
}
