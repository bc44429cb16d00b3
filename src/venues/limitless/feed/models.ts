import { z } from 'zod';
import { SLUG } from '../outcome-ids.ts';

/** Socket.IO events that oddswire reads; other fields are ignored. */

const slug = z.string().regex(SLUG);

/** A whole book. `version` counts over the venue and may reset, so it orders nothing. */
export const bookUpdate = z.object({
  marketSlug: slug,
  orderbook: z.looseObject({}),
  timestamp: z.string().min(1).max(60),
});

/** Sent three times. */
export const lifecycleEvent = z.object({ slug, resolutionDate: z.string().max(60).nullish().catch(undefined) });
