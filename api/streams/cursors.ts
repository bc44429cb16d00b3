import { type CursorCodec, InvalidCursorError } from '../../src/domain/values/cursor.ts';

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
