import type { OutcomePayout } from '../markets/resolution.ts';
import { numberField } from '../values/api-json.ts';

/** A result of a market that differs from the one that an earlier event reported. */
export interface CorrectedResult {
  /** Null: the earlier event named no winner, or reported that the result was undone. */
  previousWinner: string | null;
  /** The known payouts now. */
  payouts: readonly OutcomePayout[];
}

/** The fields of a correction, of the event of an alert and of `market_status`. */
export function correctionFields({ previousWinner, payouts }: CorrectedResult) {
  return {
    correction: true as const,
    previousWinningOutcomeId: previousWinner,
    payouts: payoutFields(payouts),
  };
}

export function payoutFields(payouts: readonly OutcomePayout[]) {
  return payouts.map(({ outcomeId, payout }) => ({ outcomeId, payout: numberField(payout) }));
}
