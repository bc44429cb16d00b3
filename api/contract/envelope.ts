import { z } from 'zod';
import { opaqueId } from './wire.ts';

/** The answer of every deletion. */
export const deleted = z.object({ id: opaqueId, deleted: z.literal(true) });
export const cursorMeta = z.object({
  next_cursor: z.string().nullable().meta({ description: 'Null on the last page.' }),
});
