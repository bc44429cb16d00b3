/** Seeded numbers: every draw and every id of the simulator depends on the seed. */

const TWO_POW_32 = 4_294_967_296;

/** murmur3's finalizer: each output bit depends on each input bit. */
function scramble(value: number): number {
  let h = value >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** One unsigned 32-bit word that is a pure function of its arguments. */
export function hashWord(...parts: readonly number[]): number {
  let h = 0x9e3779b9;
  for (const part of parts) {
    h = scramble(h ^ scramble(part));
    h = (Math.imul(h, 5) + 0xe6546b64) >>> 0;
  }
  return scramble(h);
}

/** Lower-case hex of `words` 32-bit words, a pure function of its arguments (64 bits of state). */
export function hashHex(words: number, ...parts: readonly number[]): string {
  const low = hashWord(1, ...parts);
  const high = hashWord(2, ...parts);
  const bytes = Buffer.allocUnsafe(4 * words);
  for (let at = 1; at <= words; at += 1) {
    const word = (scramble(low + Math.imul(at, 0x9e3779b9)) ^ scramble(high + Math.imul(at, 0x7f4a7c15))) >>> 0;
    bytes.writeUInt32BE(word, 4 * (at - 1));
  }
  return bytes.toString('hex');
}

/** A stream of draws (xoshiro128**). Two streams with different keys are independent. */
export class RandomStream {
  private a: number;
  private b: number;
  private c: number;
  private d: number;

  constructor(...key: readonly number[]) {
    this.a = hashWord(1, ...key);
    this.b = hashWord(2, ...key);
    this.c = hashWord(3, ...key);
    this.d = hashWord(4, ...key) | 1;
  }

  /** An unsigned 32-bit integer. */
  next(): number {
    const scaled = Math.imul(this.b, 5);
    const result = Math.imul((scaled << 7) | (scaled >>> 25), 9) >>> 0;
    const shifted = this.b << 9;
    this.c ^= this.a;
    this.d ^= this.b;
    this.b ^= this.c;
    this.a ^= this.d;
    this.c ^= shifted;
    this.d = (this.d << 11) | (this.d >>> 21);
    return result;
  }

  /** An integer in `[0, bound)`. */
  below(bound: number): number {
    return Math.floor((this.next() / TWO_POW_32) * bound);
  }

  /** An integer in `[low, high]`. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  /** True with a probability of `perMillion` in a million. */
  chance(perMillion: number): boolean {
    return this.below(1_000_000) < perMillion;
  }

  /** One element of a non-empty list. */
  pick<T>(list: readonly T[]): T {
    const item = list[this.below(list.length)];
    if (item === undefined) throw new RangeError('pick from an empty list');
    return item;
  }
}
