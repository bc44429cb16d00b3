import type { GapReason } from '../../src/domain/live/change.ts';
import type { DecimalFormat } from '../../src/domain/values/api-json.ts';
import type { JournalHead } from '../../src/store/journal/read-journal.ts';
import type { StreamCursors } from './cursors.ts';
import { type Message, streamMessage } from './frame.ts';

interface Gap {
  /** The missing numbers. With the reason `epoch`, `from` is a number of the earlier epoch and `to` one of the present epoch. */
  from: number;
  to: number;
  reason: GapReason;
  venue: string;
  head: JournalHead;
  /** The stream continues after this number. */
  seq: number;
}

/** A `gap`: the stream lacks the changes of these numbers. */
export function gapMessage(
  { from, to, reason, venue, head, seq }: Gap,
  { cursors, decimalFormat }: { cursors: StreamCursors; decimalFormat: DecimalFormat },
): Message {
  const cursor = cursors.encode({ epoch: head.epoch, seq });
  const fields = { type: 'gap', seq, at: head.readAt, venue } as const;
  return streamMessage(fields, { from, to, reason }, { cursor, decimalFormat });
}
