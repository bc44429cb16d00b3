import { z } from 'zod';

export const live = z.object({ status: z.literal('live') });
export const ready = z.object({ status: z.literal('ready') });
