import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ApiJson, ExactNumber, toJsonText } from '../../../../src/domain/values/api-json.ts';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { csvOfList, fieldsOf } from '../../../../src/domain/wire/csv.ts';
import { parseCsv } from '../../../support/csv.ts';

const COLUMNS = ['id', 'text', 'more'];
/** Texts with the characters that need care, and any others that Postgres stores. */
const text = fc.oneof(
  fc.string({
    unit: fc.constantFrom(
      '"',
      ',',
      '\r',
      '\n',
      '\\',
      ' ',
      '\t',
      '=',
      '+',
      '-',
      '@',
      '{',
      '[',
      ']',
      '雨',
      '😀',
      'é',
      'a',
    ),
  }),
  fc.string({ unit: 'grapheme' }).filter((given) => !given.includes('\0')),
);
const digits = fc
  .tuple(fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), fc.stringMatching(/^\d{0,20}[1-9]$/))
  .map(([whole, fraction]) => `${whole}.${fraction}`);
const scalar: fc.Arbitrary<ApiJson> = fc.oneof(
  text,
  fc.boolean(),
  fc.constant(null),
  fc.integer(),
  digits.map((given) => new ExactNumber(decimal(given), 'decimal')),
);
const value: fc.Arbitrary<ApiJson> = fc.oneof(
  { weight: 4, arbitrary: scalar },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 4 }) },
  { weight: 1, arbitrary: fc.dictionary(text, scalar, { maxKeys: 4 }) },
);
const row = fc.record({ id: text, text: value, more: value }, { requiredKeys: ['id'] });

function expectedCell(given: ApiJson | undefined): string | null {
  if (given === undefined || given === null) return null;
  return typeof given === 'string' ? given : toJsonText(given, 'number');
}

describe('the CSV of a list', () => {
  it('parses to the values of the JSON when texts have quotes, commas, ends of lines and any character', () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 6 }), (rows) => {
        const parsed = parseCsv(csvOfList(toJsonText(rows, 'number'), COLUMNS));
        const expected = rows.map(({ id, text, more }) => [id, text, more].map(expectedCell));
        expect(parsed).toEqual([COLUMNS, ...expected]);
      }),
      { numRuns: 300 },
    );
  });

  it('has only its header when the list is empty', () => {
    expect(csvOfList('[]', COLUMNS)).toBe('id,text,more\r\n');
  });

  it('reads JSON with white space', () => {
    const json = '[ { "more" : [ 1.50 , { "a" : "]\\"" } ] , "id" : "1" } , { "id" : 2.10 } ]';
    expect(parseCsv(csvOfList(json, COLUMNS)).slice(1)).toEqual([
      ['1', null, '[ 1.50 , { "a" : "]\\"" } ]'],
      ['2.10', null, null],
    ]);
  });

  it('distinguishes an empty text from null', () => {
    expect(csvOfList('[{"id":"","text":null}]', COLUMNS)).toBe('id,text,more\r\n"",,\r\n');
  });

  it('changes no text that a spreadsheet takes for a formula', () => {
    for (const formula of ['=1+1', '+1', '-1', '@SUM(A1)', '=HYPERLINK("http://x","y")'])
      expect(parseCsv(csvOfList(JSON.stringify([{ id: formula }]), COLUMNS))[1]).toEqual([formula, null, null]);
  });

  it('throws when an item has a field without a column', () => {
    expect(() => csvOfList('[{"other":1}]', COLUMNS)).toThrow(new TypeError('the list has no column other'));
  });

  it.runIf(spawnSync('python3', ['--version']).status === 0)('parses to the same cells in Python', () => {
    const rows = fc.sample(row, { numRuns: 200, seed: 7 });
    const csv = csvOfList(toJsonText(rows, 'number'), COLUMNS);
    const program =
      'import csv, io, json, sys\nt = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", newline="")\n' +
      'csv.field_size_limit(10**9)\nprint(json.dumps(list(csv.reader(t, strict=True))))';
    const { status, stdout, stderr } = spawnSync('python3', ['-c', program], { input: csv, maxBuffer: 1 << 26 });
    expect([status, stderr.toString()]).toEqual([0, '']);
    expect(JSON.parse(stdout.toString())).toEqual(parseCsv(csv).map((record) => record.map((cell) => cell ?? '')));
  });
});

describe('the fields of an object', () => {
  it('are its names and the texts of its values', () => {
    expect(fieldsOf('{}')).toEqual([]);
    expect(fieldsOf('{"a\\"b":"c,}","d":{"e":[1]},"f":1.50}')).toEqual([
      ['a"b', '"c,}"'],
      ['d', '{"e":[1]}'],
      ['f', '1.50'],
    ]);
  });
});
