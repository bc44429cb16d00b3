import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { CsvRows } from '../../../../src/domain/archive/csv-rows.ts';
import { fileColumns } from '../../../../src/domain/archive/kinds.ts';
import { RowSum } from '../../../../src/domain/archive/row-sum.ts';

/** The documented checksum of texts of rows, the plain way. */
function checksumOf(texts: readonly string[]): string {
  const digests = texts.map((text) => createHash('md5').update(text).digest());
  const sum = (at: number) => digests.reduce((total, digest) => total + digest.readBigUInt64BE(at), 0n);
  return `${sum(0)}.${sum(8)}`;
}

const withLength = (value: string) => `${Buffer.byteLength(value)}:${value}`;

function bytesOf(unscaled: bigint): Uint8Array {
  return Buffer.from(BigInt.asUintN(128, unscaled).toString(16).padStart(32, '0'), 'hex');
}

function decimalText(unscaled: bigint): string {
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(19, '0');
  return `${unscaled < 0n ? '-' : ''}${digits.slice(0, -18)}.${digits.slice(-18)}`;
}

describe('RowSum', () => {
  it('has the digits of a decimal when it reads 128 bits', () => {
    const values = [0n, 1n, -1n, 10n ** 18n, 10n ** 38n - 1n, 1n - 10n ** 38n, 999_999_999n * 10n ** 18n];
    for (let n = 0; n < 5_000; n += 1) {
      const digest = BigInt(`0x${createHash('sha256').update(String(n)).digest('hex')}`);
      const value = digest % 10n ** BigInt(1 + (n % 38));
      values.push(n % 3 === 0 ? -value : value);
    }
    for (const value of values) {
      const sum = new RowSum();
      sum.addDecimal(bytesOf(value));
      sum.endRow();
      expect(sum.checksum, decimalText(value)).toBe(checksumOf([withLength(decimalText(value))]));
    }
  });

  it('has the digits of an integer when it is negative or long', () => {
    for (const value of [0, 7, -7, 10, 999_999_999, 1e9, -1e9, 1_772_668_800_000_001, Number.MAX_SAFE_INTEGER]) {
      const sum = new RowSum();
      sum.addInteger(value);
      sum.endRow();
      expect(sum.checksum).toBe(checksumOf([withLength(String(value))]));
    }
    expect(() => new RowSum().addInteger(2 ** 53)).toThrow(RangeError);
  });
});

describe('CsvRows', () => {
  const CSV = [
    '"m","o, ""quoted""\nö","1772668800.000001","t1","0.5",,"3",,"1.5",,"buy","0",',
    ',"o","-0.500000","","-12.25",,,"9e30","0.000000000000000001",,,"-3","0.000007"',
  ]
    .map((line) => `${line}\n`)
    .join('');
  const TEXTS = [
    ['m', 'o, "quoted"\nö', '1772668800000001', 't1', `0.5${'0'.repeat(17)}`, null, `3.${'0'.repeat(18)}`, null].concat(
      [`1.5${'0'.repeat(17)}`, null, 'buy', '0', null],
    ),
    [
      null,
      'o',
      '-500000',
      '',
      `-12.25${'0'.repeat(16)}`,
      null,
      null,
      '9e30',
      '0.000000000000000001',
      null,
      null,
      '-3',
      '7',
    ],
  ].map((values) => values.map((value) => (value === null ? '-' : withLength(value))).join(''));

  it('has the checksum and the times of the rows when their text arrives in parts of any length', () => {
    const bytes = Buffer.from(CSV);
    for (let length = 1; length <= bytes.length; length += 1) {
      const rows = new CsvRows(fileColumns('trades'), 'ts');
      for (let from = 0; from < bytes.length; from += length) rows.add(bytes.subarray(from, from + length));
      expect(rows.end()).toEqual({
        ...{ rows: 2, inEffect: 0, startMs: -500, endMs: 1_772_668_800_000.001, checksum: checksumOf(TEXTS) },
      });
    }
  });

  it('throws when a row has no end or the text has another form', () => {
    const cut = new CsvRows(fileColumns('trades'), 'ts');
    cut.add(Buffer.from(CSV.slice(0, -1)));
    expect(() => cut.end()).toThrow(RangeError);
    expect(() => new CsvRows(fileColumns('trades'), 'ts').add(Buffer.from('m,o\n'))).toThrow(RangeError);
  });
});
