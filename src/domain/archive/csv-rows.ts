import type { FileColumn } from './kinds.ts';
import { RowSum } from './row-sum.ts';

const [QUOTE, COMMA, LINE] = [...'",\n'].map((each) => each.charCodeAt(0)) as [number, number, number];

/** The first letter of `true`. */
const TRUE = 't'.charCodeAt(0);

/** The rows of a day, all together. */
export interface RowsSummary {
  rows: number;
  /** Rows among them that hold the value in effect at the start of the day. */
  inEffect: number;
  /** The first and the last time of the others, epoch milliseconds; null without them. */
  startMs: number | null;
  endMs: number | null;
  checksum: string;
}

/**
 * Sums up rows while their CSV passes by. Every value is quoted and null is empty. Decimals have at most 18 digits behind the point, times are
 * seconds since 1970 with six digits behind it.
 */
export class CsvRows {
  readonly #columns: readonly FileColumn[];
  readonly #timeColumn: number;
  readonly #inEffectColumn: number;
  readonly #sum = new RowSum();
  /** Places of the values in the buffer; a null begins at -1. */
  readonly #from: Int32Array;
  readonly #to: Int32Array;
  readonly #isEscaped: Uint8Array;
  #rest: Buffer = Buffer.alloc(0);
  #inEffect = 0;
  #first = Number.POSITIVE_INFINITY;
  #last = Number.NEGATIVE_INFINITY;

  constructor(columns: readonly FileColumn[], timeColumn: string) {
    this.#columns = columns;
    this.#timeColumn = columns.findIndex(({ name }) => name === timeColumn);
    this.#inEffectColumn = columns.findIndex(({ name }) => name === 'in_effect');
    this.#from = new Int32Array(columns.length);
    this.#to = new Int32Array(columns.length);
    this.#isEscaped = new Uint8Array(columns.length);
  }

  /** @throws RangeError when the text is not such CSV */
  add(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let place = 0;
    for (let next = this.#find(bytes, 0); next >= 0; next = this.#find(bytes, next)) {
      this.#addRow(bytes);
      place = next;
    }
    this.#rest = bytes.subarray(place);
  }

  /** @throws RangeError when the last row is not whole */
  end(): RowsSummary {
    if (this.#rest.length > 0) throw new RangeError('the last row has no end');
    const [startMs, endMs] = this.#first > this.#last ? [null, null] : [this.#first / 1000, this.#last / 1000];
    return { rows: this.#sum.rows, inEffect: this.#inEffect, startMs, endMs, checksum: this.#sum.checksum };
  }

  /** Finds the values of the row at `start`. Returns the start of the next row; -1 when the buffer ends before. */
  #find(bytes: Buffer, start: number): number {
    const end = bytes.length;
    const last = this.#columns.length - 1;
    let place = start;
    for (let column = 0; column <= last; column += 1) {
      if (place >= end) return -1;
      this.#from[column] = -1;
      if (bytes[place] === QUOTE) {
        this.#from[column] = place + 1;
        this.#isEscaped[column] = 0;
        for (place += 1; ; place += 2) {
          while (place < end && bytes[place] !== QUOTE) place += 1;
          if (place + 1 >= end) return -1;
          if (bytes[place + 1] !== QUOTE) break;
          this.#isEscaped[column] = 1;
        }
        this.#to[column] = place;
        place += 1;
      }
      if (place >= end) return -1;
      if (bytes[place] !== (column === last ? LINE : COMMA)) throw new RangeError('the rows are not the expected CSV');
      place += 1;
    }
    return place;
  }

  #addRow(bytes: Buffer): void {
    const sum = this.#sum;
    let micros: number | undefined;
    let isInEffect = false;
    for (let column = 0; column < this.#columns.length; column += 1) {
      const from = this.#from[column] ?? -1;
      const to = this.#to[column] ?? -1;
      const type = this.#columns[column]?.type;
      if (from < 0) {
        sum.addNull();
      } else if (type === 'decimal') {
        sum.addDecimalText(bytes, from, to);
      } else if (type === 'time') {
        const read = sum.addSecondsText(bytes, from, to);
        if (column === this.#timeColumn) micros = read;
      } else if (this.#isEscaped[column] === 1) {
        sum.addText(bytes.toString('latin1', from, to).replaceAll('""', '"'), 'latin1');
      } else {
        sum.addBytes(bytes, from, to);
        if (column === this.#inEffectColumn) isInEffect = bytes[from] === TRUE;
      }
    }
    sum.endRow();
    if (isInEffect) this.#inEffect += 1;
    else if (micros !== undefined) {
      if (micros < this.#first) this.#first = micros;
      if (micros > this.#last) this.#last = micros;
    }
  }
}
