import { z } from 'zod';
import { VENUE_ID } from '../outcome-ids.ts';

/**
 * Messages of the WebSocket, from the venue's documentation and source only: no recording exists. Fields that decide identity or money are
 * strict.
 */

const id = z.string().regex(VENUE_ID);

export const envelope = z.object({
  type: z.string().min(1).max(60),
  topic: z.string().min(1).max(300).nullish(),
  success: z.boolean().nullish(),
  error: z.string().nullish().catch(undefined),
  data: z.unknown().optional(),
});

/** `probAfter` is the probability of YES of the market, or of the answer, after the bet. */
export const feedBet = z.object({
  contractId: id,
  answerId: id.nullish(),
  createdTime: z.number(),
  probAfter: z.number().nullish(),
});

/** A part of a contract: the changed fields. */
export const feedContract = z.looseObject({ id });

export const feedAnswer = z.looseObject({ id, prob: z.number().nullish() });
