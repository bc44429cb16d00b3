import { numberField } from '../values/api-json.ts';
import type { Decimal } from '../values/decimal.ts';

/** A result of a market that differs from the one that an earlier event reported. */
export interface CorrectedResult {
  /** Null: the earlier event named no winner, or reported that the result was undone. */
  previousWinner: string | null;
  /** The known payouts now. */
  payouts: readonly { outcomeId: string; payout: Decimal }[];
}

/** The fields of a correction, of the event of an alert and of `market_status`. */
export function correctionFields({ previousWinner, payouts }: CorrectedResult) {
  return {
    correction: true as const,
    previousWinningOutcomeId: previousWinner,
    payouts: payouts.map(({ outcomeId, payout }) => ({ outcomeId, payout: numberField(payout) })),
  };
}
