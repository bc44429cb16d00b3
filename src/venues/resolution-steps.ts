import type { OutcomeRecord } from '../domain/markets/market.ts';
import type { PayoutReason, ResolutionStep } from '../domain/markets/resolution.ts';
import { scrubText } from '../domain/values/text.ts';

const MAX_WORD_LENGTH = 100;

/** The payouts of these outcomes in their order, or the reason for which none is known. */
export function statedPayouts(
  outcomes: readonly Pick<OutcomeRecord, 'outcomeId' | 'payout'>[],
  reason: PayoutReason = 'not_stated',
): Pick<ResolutionStep, 'payouts' | 'reason'> {
  const payouts = outcomes.flatMap(({ outcomeId, payout }) => (payout === undefined ? [] : [{ outcomeId, payout }]));
  return payouts.length > 0 ? { payouts } : { reason };
}

/** A state under a word of the venue that is not known. A word that Postgres cannot store must not reject its market. */
export function unknownStep(word: string): ResolutionStep {
  return { state: 'unknown', facts: { rawState: scrubText(word.slice(0, MAX_WORD_LENGTH)) } };
}
