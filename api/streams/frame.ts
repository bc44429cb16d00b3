import {
  CHANNELS_OF_KIND,
  type Change,
  type ChangeKind,
  type Channel,
  CONFLATED_KINDS,
  changeData,
  type GapReason,
  type MessageType,
  TYPE_OF_KIND,
} from '../../src/domain/live/change.ts';
import { type ApiJson, type DecimalFormat, toJsonText } from '../../src/domain/values/api-json.ts';
import { type CursorCodec, InvalidCursorError } from '../../src/domain/values/cursor.ts';
import type { JournalHead } from '../../src/store/journal/read-journal.ts';

/** A message as text, without the parts that depend on its connection. */
export interface Message {
  readonly type: string;
  /** The client has everything up to this number of the journal after it got the message. Absent for account events. */
  readonly seq?: number;
  /** The first fields as JSON, without braces. */
  readonly head: string;
  /** The JSON text of `data`. */
  readonly data: string;
  /** The cursor from which a stream continues after this message. */
  readonly cursor: string;
  /** The message as an event of SSE. */
  readonly sse: Buffer;
}

/** A message that a later one may replace while its reader is slow. */
export interface Replaceable extends Message {
  /** Unsent messages with the same key are replaced by the latest. Undefined: every message is sent. */
  readonly conflationKey: string | undefined;
}

/** The message of a change, made once for all clients. */
export interface Frame extends Replaceable {
  readonly seq: number;
  readonly kind: ChangeKind;
  readonly venue: string;
  readonly marketId: string;
  readonly outcomeId: string | undefined;
  /** The channels that send it. */
  readonly channels: readonly Channel[];
}

interface FrameOptions {
  cursors: StreamCursors;
  epoch: string;
  decimalFormat: DecimalFormat;
}

/** Encodes a change. The cursor and the bytes are made at their first use. */
export function frameOf(change: Change, options: FrameOptions): Frame {
  return new ChangeFrame(change, options);
}

/** V8 keeps a text that was joined as a tree of its parts, which takes several times the memory of the copy. */
function inOnePiece(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8');
}

/** The `data` of a message. Two kinds of change are messages of the type `gap`, which its reason tells apart. */
function dataOf(change: Change): ApiJson {
  const { kind, body } = change;
  if (kind === 'history')
    return { reason: 'backfill', series: seriesOf(change), start: Number(body['start']), end: Number(body['end']) };
  if (kind === 'gap') {
    const { gap_id, from, to, affected, reason } = body;
    return {
      reason: 'feed',
      gap_id: String(gap_id),
      start: Number(from),
      end: to === null ? null : Number(to),
      affected: String(affected),
      cause: String(reason),
    };
  }
  // No stream sends them, but the numbers of kept frames have no holes.
  if (kind === 'facts') return null;
  return changeData(change);
}

/** The series of a range of history. */
function seriesOf({ body }: Change): 'trades' | 'candles' {
  return body['series'] === 'candles' ? 'candles' : 'trades';
}

/** Thousands of them are kept for clients that reconnect, so a frame has texts and no part of its change. */
class ChangeFrame implements Frame {
  readonly type: MessageType | 'facts';
  readonly seq: number;
  readonly kind: ChangeKind;
  readonly venue: string;
  readonly marketId: string;
  readonly outcomeId: string | undefined;
  readonly channels: readonly Channel[];
  readonly head: string;
  readonly data: string;
  /** The bucket of a candle. */
  readonly #bucket: string;
  readonly #epoch: string;
  readonly #cursors: StreamCursors;
  #cursor: string | undefined;
  #sse: Buffer | undefined;

  constructor(change: Change, { cursors, epoch, decimalFormat }: FrameOptions) {
    this.kind = change.kind;
    this.type = change.kind === 'facts' ? change.kind : TYPE_OF_KIND[change.kind];
    this.seq = change.seq;
    this.venue = change.venue;
    this.marketId = change.marketId;
    this.outcomeId = change.outcomeId;
    this.channels = change.kind === 'history' ? [seriesOf(change)] : CHANNELS_OF_KIND[change.kind];
    this.head = inOnePiece(
      headOf({
        type: this.type,
        seq: change.seq,
        at: change.at,
        venue: change.venue,
        marketId: change.marketId,
        outcomeId: change.outcomeId,
      }),
    );
    this.data = inOnePiece(toJsonText(dataOf(change), decimalFormat));
    this.#bucket = change.kind === 'candle' ? String(change.body['timestamp'] ?? '') : '';
    this.#epoch = epoch;
    this.#cursors = cursors;
  }

  /** A candle replaces only candles of its own bucket, so that no closed bucket is lost. */
  get conflationKey(): string | undefined {
    if (!CONFLATED_KINDS.has(this.kind)) return undefined;
    return `${this.kind}\n${this.venue}\n${this.marketId}\n${this.outcomeId ?? ''}\n${this.#bucket}`;
  }

  get cursor(): string {
    this.#cursor ??= this.#cursors.encode({ epoch: this.#epoch, seq: this.seq });
    return this.#cursor;
  }

  get sse(): Buffer {
    this.#sse ??= sseOf(this);
    return this.#sse;
  }
}

interface Head {
  type: string;
  seq?: number | undefined;
  at: Date;
  venue?: string | undefined;
  marketId?: string | undefined;
  outcomeId?: string | undefined;
}

function headOf({ type, seq, at, venue, marketId, outcomeId }: Head): string {
  let text = `"type":"${type}"`;
  if (seq !== undefined) text += `,"seq":${seq}`;
  text += `,"at":"${at.toISOString()}"`;
  if (venue !== undefined) text += `,"venue":${JSON.stringify(venue)}`;
  if (marketId !== undefined && marketId !== '') text += `,"market_id":${JSON.stringify(marketId)}`;
  if (outcomeId !== undefined) text += `,"outcome_id":${JSON.stringify(outcomeId)}`;
  return text;
}

/** A message that is no change of the journal, such as a heartbeat. */
export function streamMessage(
  head: Head & { type: MessageType },
  data: ApiJson,
  { cursor, decimalFormat }: { cursor: string; decimalFormat: DecimalFormat },
): Message {
  const { type, seq } = head;
  const text = {
    type,
    ...(seq !== undefined && { seq }),
    head: headOf(head),
    data: toJsonText(data, decimalFormat),
    cursor,
  };
  return { ...text, sse: sseOf(text) };
}

/** The JSON of a message: `extra` has further fields, each behind a comma. */
export function jsonOf({ head, data }: Pick<Message, 'head' | 'data'>, extra = ''): string {
  return `{${head}${extra},"data":${data}}`;
}

/** An event of SSE. JSON contains no line break, so the text needs one `data` line. */
export function sseOf({ type, cursor, head, data }: Omit<Message, 'sse'>, extra = ''): Buffer {
  return Buffer.from(`event: ${type}\nid: ${cursor}\ndata: ${jsonOf({ head, data }, extra)}\n\n`, 'utf8');
}

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

/** A position in the journal. */
export interface JournalPosition {
  /** Numbers of different epochs are not comparable: a restored database begins another epoch. */
  readonly epoch: string;
  /** The client has everything up to this number. */
  readonly seq: number;
}

/**
 * Cursors of market streams. They name no account and no filter: a position holds for every stream, and one encryption per change serves
 * all clients.
 */
export interface StreamCursors {
  encode(position: JournalPosition): string;
  /** @throws InvalidCursorError */
  decode(cursor: string): JournalPosition;
}

const SCOPE = JSON.stringify(['stream']);

export function createStreamCursors(codec: CursorCodec): StreamCursors {
  return {
    encode: ({ epoch, seq }) => codec.encode(SCOPE, [epoch, String(seq)]),
    decode(cursor) {
      const [epoch = '', text = ''] = codec.decode(SCOPE, cursor);
      const seq = Number(text);
      if (epoch === '' || !Number.isSafeInteger(seq) || seq < 0) throw new InvalidCursorError();
      return { epoch, seq };
    },
  };
}
