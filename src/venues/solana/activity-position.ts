import { z } from 'zod';

const signature = z.string().min(1).max(100);
const slot = z.number().int().nonnegative();

/** A transaction that a node lists and does not serve yet. */
const waiting = z.object({ signature, slot, atMs: z.number(), sinceMs: z.number() });

const position = z.object({
  /** Everything up to this slot has been read; absent before the first round is over. */
  slot: slot.exactOptional(),
  /** Raw amounts of the token accounts at that slot; absent when there are too many to keep. */
  amounts: z.record(z.string(), z.string()).exactOptional(),
  /** Read lately, with their slots: the next round's overlap need not read them again. */
  known: z.array(z.tuple([signature, slot])),
  waiting: z.array(waiting),
  /** The round under way. */
  round: z
    .object({
      slot,
      amounts: z.record(z.string(), z.string()).exactOptional(),
      /** Accounts whose signatures are to be read, the one under way first, and those that are done. */
      queue: z.array(z.string()),
      done: z.array(z.string()),
      /** The last page's second to last signature and its last: the next page must begin with the latter. */
      before: signature.exactOptional(),
      anchor: signature.exactOptional(),
    })
    .exactOptional(),
});

/** Where the walk over a wallet's transactions stands. Private to this folder. */
export type ActivityPosition = z.infer<typeof position>;
export type Round = NonNullable<ActivityPosition['round']>;
export type Waiting = z.infer<typeof waiting>;

export const START: ActivityPosition = { known: [], waiting: [] };

/** A stored position; what is no (longer a) position begins anew. */
export function readPosition(stored: unknown): ActivityPosition {
  const read = position.safeParse(stored);
  return read.success ? read.data : START;
}
