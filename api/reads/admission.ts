/** One of so many first reads takes the place of another entry of a full memory. */
const ADMIT_EVERY = 16;

/**
 * Which first reads a memory of limited size keeps. When it is full, each would evict an entry: reads of more entries in turn than it takes
 * would evict every entry before its next read.
 */
export class Admission {
  #refused = 0;

  admits(isFull: boolean): boolean {
    this.#refused = isFull ? (this.#refused + 1) % ADMIT_EVERY : 0;
    return this.#refused === 0;
  }
}
