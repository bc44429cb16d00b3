import { NEWEST_HEAD } from './read-journal.ts';

/** The place in the journal of a read: every change up to `seq` of this epoch was visible to it. */
export interface JournalStamp {
  epoch: string;
  seq: number;
}

/**
 * A column with the stamp of its statement, for `toStamp`. One statement has one snapshot, on one server: a change that it does not see
 * has a later number.
 */
export const STAMP = `(SELECT h.epoch || ' ' || h.seq FROM (${NEWEST_HEAD}) h) AS stamp`;

export function toStamp(text: string): JournalStamp {
  const [epoch = '', seq = ''] = text.split(' ');
  return { epoch, seq: Number(seq) };
}
