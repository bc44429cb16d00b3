import { z } from 'zod';
import { numberField } from '../../../src/domain/values/api-json.ts';
import type { EventType } from '../../../src/domain/webhooks/event.ts';
import { isoTime, numberValue, opaqueId } from '../wire.ts';

/** The id and the time of the examples of events. */
export const EVENT_ID = 'evt_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01';
export const EVENT_AT = '2026-01-02T03:04:05.678Z';

/** The body of an event with this data. */
export function event<Type extends EventType, Data extends z.ZodType>(type: Type, data: Data) {
  return z.object({
    id: opaqueId.meta({ description: 'Identical for every attempt and every webhook.' }),
    type: z.literal(type),
    timestamp: isoTime.meta({ description: 'Time of the event: ISO 8601, UTC, milliseconds.' }),
    data,
  });
}

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
