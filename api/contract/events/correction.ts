import { z } from 'zod';
import { numberField } from '../../../src/domain/values/api-json.ts';
import { numberValue } from '../wire.ts';

export const payoutList = z.array(
  z.object({ outcomeId: z.string(), payout: numberValue.meta({ description: 'Per unit of the outcome.' }) }),
);

/** The fields of a correction: the result of a market differs from the one that an earlier event reported. */
export const correctionShape = {
  correction: z.literal(true).optional().meta({
    description:
      'Present when the result differs from the one that an earlier event of this alert or webhook reported.',
  }),
  previousWinningOutcomeId: z.string().nullable().optional().meta({
    description: 'With `correction`: the winner before this change. Null when there was none.',
  }),
  payouts: payoutList
    .optional()
    .meta({ description: 'With `correction`: the known payouts now. Empty when the result was undone.' }),
};

/** The fields of a correction of a market whose other outcome won before. */
export const correctionExample = (winner: string, loser: string) => ({
  correction: true as const,
  previousWinningOutcomeId: loser,
  payouts: [
    { outcomeId: winner, payout: numberField('1') },
    { outcomeId: loser, payout: numberField('0') },
  ],
});
