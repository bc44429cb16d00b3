import { hash } from 'node:crypto';

/** Above this number of rows the sum of one word could lose digits. */
const MAX_SUMMED = 1 << 20;
const WORD = 1n << 32n;

const [ZERO, NINE, MINUS, POINT, COLON] = [...'09-.:'].map((each) => each.charCodeAt(0)) as [
  number,
  number,
  number,
  number,
  number,
];
/** Digits behind the point of a decimal. */
const SCALE = 18;

/**
 * The checksum of the rows of a file. The text of a row has, for each column, the length of its value in bytes, a colon and the value, or `-`
 * for null. The checksum is the sum of the first 64 bits of the md5 of each text, a point, and the sum of the last 64 bits, both unsigned: it
 * does not depend on the order of the rows. docs/archive.md states it.
 */
export class RowSum {
  rows = 0;
  #text = Buffer.allocUnsafe(4_096);
  #length = 0;
  readonly #sums = [0n, 0n, 0n, 0n];
  readonly #words = [0, 0, 0, 0];
  #summed = 0;

  addNull(): void {
    this.#reserve(1);
    this.#text[this.#length++] = MINUS;
  }

  /** A value as its bytes, from `from` up to `to`. */
  addBytes(bytes: Uint8Array, from: number, to: number): void {
    this.#begin(to - from);
    this.#copy(bytes, from, to);
  }

  addText(value: string, encoding: BufferEncoding = 'utf8'): void {
    const bytes = Buffer.from(value, encoding);
    this.addBytes(bytes, 0, bytes.length);
  }

  /** A decimal as text with at most 18 digits behind its point, which is padded to 18. */
  addDecimalText(bytes: Uint8Array, from: number, to: number): void {
    let point = to - 1;
    while (point >= from && bytes[point] !== POINT) point -= 1;
    const missing = SCALE - (point < from ? 0 : to - point - 1);
    if (missing < 0) throw new RangeError('a decimal has more than 18 digits behind its point');
    const hasPoint = point >= from;
    this.#begin(to - from + missing + (hasPoint ? 0 : 1));
    this.#copy(bytes, from, to);
    if (!hasPoint) this.#text[this.#length++] = POINT;
    for (let digit = 0; digit < missing; digit += 1) this.#text[this.#length++] = ZERO;
  }

  /** A time as text of the seconds since 1970 with six digits behind the point. Returns its microseconds. */
  addSecondsText(bytes: Uint8Array, from: number, to: number): number {
    const isNegative = bytes[from] === MINUS;
    const first = isNegative ? from + 1 : from;
    if (bytes[to - 7] !== POINT) throw new RangeError('a time has no microseconds');
    let micros = 0;
    for (let place = first; place < to; place += 1) {
      const byte = bytes[place] ?? 0;
      if (place === to - 7) continue;
      if (byte < ZERO || byte > NINE) throw new RangeError('a time is not a number');
      micros = micros * 10 + byte - ZERO;
    }
    return this.addInteger(isNegative ? -micros : micros);
  }

  /** An integer. Returns it. @throws RangeError when a double cannot hold it */
  addInteger(value: number): number {
    if (!Number.isSafeInteger(value)) throw new RangeError('a number is too large');
    const isNegative = value < 0;
    const size = Math.abs(value);
    let digits = 1;
    for (let power = 10; power <= size; power *= 10) digits += 1;
    this.#begin(digits + (isNegative ? 1 : 0));
    if (isNegative) this.#text[this.#length++] = MINUS;
    const upper = Math.floor(size / 1e9);
    if (upper > 0) this.#digits(upper, digits - 9);
    this.#digits(upper > 0 ? size - upper * 1e9 : size, upper > 0 ? 9 : digits);
    return value;
  }

  /** A decimal as its unscaled value: two's complement of 128 bits, the highest byte first. */
  addDecimal(bytes: Uint8Array): void {
    const isNegative = (bytes[0] ?? 0) >= 128;
    const groups = groupsOf(bytes, isNegative);
    let top = groups.length - 1;
    while (top > 2 && groups[top] === 0) top -= 1;
    let whole = 1;
    for (let power = 10; power <= (groups[top] ?? 0); power *= 10) whole += 1;
    this.#begin((isNegative ? 1 : 0) + whole + (top - 2) * 9 + 1 + SCALE);
    if (isNegative) this.#text[this.#length++] = MINUS;
    this.#digits(groups[top] ?? 0, whole);
    for (let group = top - 1; group >= 2; group -= 1) this.#digits(groups[group] ?? 0, 9);
    this.#text[this.#length++] = POINT;
    this.#digits(groups[1] ?? 0, 9);
    this.#digits(groups[0] ?? 0, 9);
  }

  endRow(): void {
    // The fastest encoding of a digest: a character per byte.
    const digest = hash('md5', this.#text.subarray(0, this.#length), 'binary');
    for (let word = 0; word < 4; word += 1) {
      const at = word * 4;
      const value =
        digest.charCodeAt(at) * 0x1_00_00_00 +
        ((digest.charCodeAt(at + 1) << 16) | (digest.charCodeAt(at + 2) << 8) | digest.charCodeAt(at + 3));
      this.#words[word] = (this.#words[word] ?? 0) + value;
    }
    this.#length = 0;
    this.rows += 1;
    this.#summed += 1;
    if (this.#summed === MAX_SUMMED) this.#fold();
  }

  get checksum(): string {
    this.#fold();
    const [a = 0n, b = 0n, c = 0n, d = 0n] = this.#sums;
    return `${a * WORD + b}.${c * WORD + d}`;
  }

  #fold(): void {
    for (let word = 0; word < 4; word += 1) {
      this.#sums[word] = (this.#sums[word] ?? 0n) + BigInt(this.#words[word] ?? 0);
      this.#words[word] = 0;
    }
    this.#summed = 0;
  }

  #begin(length: number): void {
    // Of a length, a colon and the value.
    this.#reserve(length + 24);
    let digits = 1;
    for (let power = 10; power <= length; power *= 10) digits += 1;
    this.#digits(length, digits);
    this.#text[this.#length++] = COLON;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#text.length) return;
    const larger = Buffer.allocUnsafe(Math.max(this.#text.length * 2, this.#length + bytes));
    this.#text.copy(larger, 0, 0, this.#length);
    this.#text = larger;
  }

  /** A number below 2^31, with zeros before it. */
  #digits(value: number, count: number): void {
    let rest = value | 0;
    const text = this.#text;
    for (let place = this.#length + count - 1; place >= this.#length; place -= 1) {
      const upper = (rest / 10) | 0;
      text[place] = ZERO + rest - upper * 10;
      rest = upper;
    }
    this.#length += count;
  }

  #copy(bytes: Uint8Array, from: number, to: number): void {
    if (to - from > 256) {
      this.#text.set(bytes.subarray(from, to), this.#length);
      this.#length += to - from;
      return;
    }
    // Faster than a call for a few bytes.
    const text = this.#text;
    let length = this.#length;
    for (let place = from; place < to; place += 1) text[length++] = bytes[place] ?? 0;
    this.#length = length;
  }
}

const LIMBS = new Float64Array(8);
const GROUPS = new Float64Array(5);

/** The nine-digit groups of the size of a number of 128 bits, the lowest one first. They hold until the next call. */
function groupsOf(bytes: Uint8Array, isNegative: boolean): Float64Array {
  let carry = 1;
  for (let limb = 7; limb >= 0; limb -= 1) {
    const value = ((bytes[limb * 2] ?? 0) << 8) | (bytes[limb * 2 + 1] ?? 0);
    if (!isNegative) {
      LIMBS[limb] = value;
      continue;
    }
    const inverted = (value ^ 0xff_ff) + carry;
    carry = inverted >> 16;
    LIMBS[limb] = inverted & 0xff_ff;
  }
  let first = 0;
  for (let group = 0; group < 5; group += 1) {
    while (first < 8 && LIMBS[first] === 0) first += 1;
    let rest = 0;
    // Each step is below 2^46: exact as a double.
    for (let limb = first; limb < 8; limb += 1) {
      const value = rest * 65_536 + (LIMBS[limb] ?? 0);
      const quotient = Math.floor(value / 1e9);
      LIMBS[limb] = quotient;
      rest = value - quotient * 1e9;
    }
    GROUPS[group] = rest;
  }
  return GROUPS;
}
