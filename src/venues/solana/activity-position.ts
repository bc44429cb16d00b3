import { z } from 'zod';
import { TRANSACTION_VERSION } from './hosts.ts';

const signature = z.string().min(1).max(100);
const slot = z.number().int().nonnegative();

/** A transaction that a node lists and does not serve yet. */
const waiting = z.object({ signature, slot, atMs: z.number(), sinceMs: z.number() });

/** A round over the owner and its token accounts. */
const round = z.object({
  slot,
  /** Absent with too many token accounts to read. */
  amounts: z.record(z.string(), z.string()).exactOptional(),
  /** Accounts with unread signatures, the current one first, and accounts that were read. */
  queue: z.array(z.string()),
  done: z.array(z.string()),
  /** The last page's second to last signature and its last: the next page must begin with the latter. */
  before: signature.exactOptional(),
  anchor: signature.exactOptional(),
});

const position = z.object({
  /**
   * Every page since the watch began was read with at least this transaction version. Releases that know no versions
   * drop the key when they advance a position, so the records that they reject are read again.
   */
  version: z.number().int().nonnegative().exactOptional(),
  /** The second read of everything since the watch began, at a version above that one. */
  reread: z.object({ version: z.number().int().nonnegative(), round }).exactOptional(),
  /** Everything up to this slot was read; absent before the end of the first round. */
  slot: slot.exactOptional(),
  /** Raw amounts of the token accounts at that slot; absent with too many to keep. */
  amounts: z.record(z.string(), z.string()).exactOptional(),
  /** Signatures that were read lately, with their slots: the next round's overlap skips them. */
  known: z.array(z.tuple([signature, slot])),
  waiting: z.array(waiting),
  /** The current round. */
  round: round.exactOptional(),
});

/** The position of the walk over a wallet's transactions. Private to this folder. */
export type ActivityPosition = z.infer<typeof position>;
export type Round = NonNullable<ActivityPosition['round']>;
export type Waiting = z.infer<typeof waiting>;

const START: ActivityPosition = { version: TRANSACTION_VERSION, known: [], waiting: [] };

/**
 * A stored position for a release that reads transactions up to `version`; an unreadable one begins anew. A position of a newer release
 * loses its higher version: the newer release reads the rejections of this one again.
 */
export function readPosition(stored: unknown, version = TRANSACTION_VERSION): ActivityPosition {
  const read = position.safeParse(stored);
  if (!read.success) return { ...START, version };
  const { reread, ...rest } = read.data;
  if (rest.version !== undefined) rest.version = Math.min(rest.version, version);
  return reread?.version === version ? { ...rest, reread } : rest;
}
