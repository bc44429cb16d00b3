/** A part of a file: its first byte and its length. */
export interface ByteRange {
  readonly start: number;
  readonly length: number;
}

const SINGLE = /^bytes=\s*(?:(\d{1,15})\s*-\s*(\d{1,15})?|-\s*(\d{1,15}))\s*$/i;

/**
 * The part that a header `Range` asks for (RFC 9110 section 14). Undefined means the whole file: another unit, several parts and a text that
 * is no range do not count. Null when the file has no such byte.
 */
export function byteRangeOf(header: string, size: number): ByteRange | null | undefined {
  const match = SINGLE.exec(header);
  if (!match) return undefined;
  const [, first, last, suffix] = match;
  if (suffix !== undefined) {
    const length = Math.min(Number(suffix), size);
    return length === 0 ? null : { start: size - length, length };
  }
  const start = Number(first);
  const end = last === undefined ? size - 1 : Math.min(Number(last), size - 1);
  if (last !== undefined && Number(last) < start) return undefined;
  return start >= size ? null : { start, length: end - start + 1 };
}
