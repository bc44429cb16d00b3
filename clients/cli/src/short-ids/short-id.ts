import { createHash } from 'node:crypto';

/** Begins each short id; no id of a venue begins with it, and no shell changes it. */
export const SIGN = '+';
/** The letters of a short id, unless another known one begins with the same. */
export const LETTERS = 7;
export type IdKind = 'market' | 'outcome';

/** All letters of the short id of a market or an outcome, without the sign: the same on every machine. */
export function lettersOf(kind: IdKind, venue: string, id: string): string {
  const hash = createHash('sha256')
    .update(JSON.stringify([kind, venue, id]))
    .digest('hex');
  return BigInt(`0x${hash}`).toString(32).padStart(52, '0');
}

/** Whether a text has the form of a short id. */
export function isShortId(text: string): boolean {
  return text.startsWith(SIGN);
}
