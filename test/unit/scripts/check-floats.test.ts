import { describe, expect, it } from 'vitest';
import { findFloats } from '../../../scripts/check-floats.mjs';

const faultsOf = (text: string, allowed: Parameters<typeof findFloats>[1] = {}) =>
  findFloats(new Map([['src/domain/a.ts', text]]), allowed, {});
const sqlFaultsOf = (text: string, allowed: Parameters<typeof findFloats>[2] = {}, file = 'src/store/a.ts') =>
  findFloats(new Map([[file, text]]), {}, allowed);

describe('findFloats', () => {
  it.each(['const price = Number(text);', 'const price = parseFloat(text);', 'const price = Number.parseFloat(text);'])(
    'reports a conversion without a reason: %s',
    (text) => {
      expect(faultsOf(text)).toEqual(['src/domain/a.ts: 1 conversions to binary floats, 0 of them with a reason']);
    },
  );

  it.each([
    '// Number(text)',
    '/* Number(text)\n * parseFloat(text) */',
    'wholeNumber(1, 2)',
    'Number.isInteger(value)',
  ])('ignores %s', (text) => {
    expect(faultsOf(text)).toEqual([]);
  });

  it('reports one conversion more than the reasons, and a reason without its conversion', () => {
    const allowed = { 'src/domain/a.ts': [1, 'a time'] } as const;
    expect(faultsOf('Number(a)', allowed)).toEqual([]);
    expect(faultsOf('Number(a) + Number(b)', allowed)).toHaveLength(1);
    expect(faultsOf('', allowed)).toEqual(['src/domain/a.ts: 0 conversions to binary floats, but a reason for 1']);
    expect(findFloats(new Map(), allowed, {})).toEqual(['src/domain/a.ts: a reason for a file that does not exist']);
  });

  it.each([
    'price::float8',
    'price::float',
    'price::float4',
    'price::double precision',
    'price::real',
    'price::double',
    '$1::float8[]',
  ])('reports a binary float in SQL without a reason: %s', (text) => {
    expect(sqlFaultsOf(`const A = 'SELECT ${text}';`)).toEqual([
      'src/store/a.ts: 1 binary floats in SQL, 0 of them with a reason',
    ]);
  });

  it('ignores decimals in SQL, comments, released migrations and other folders', () => {
    expect(sqlFaultsOf(`'SELECT floor(price)::numeric'`)).toEqual([]);
    expect(sqlFaultsOf('// price::float8')).toEqual([]);
    expect(sqlFaultsOf(`'price::float8'`, {}, 'src/store/db/migrations/a.ts')).toEqual([]);
    expect(sqlFaultsOf(`'price::float8'`, {}, 'src/venues/a.ts')).toEqual([]);
  });

  it('reports a reason without its float in SQL', () => {
    const allowed = { 'src/store/a.ts': [2, 'times'] } as const;
    expect(sqlFaultsOf(`'at::float8, until::float8'`, allowed)).toEqual([]);
    expect(sqlFaultsOf(`'at::float8'`, allowed)).toEqual([
      'src/store/a.ts: 1 binary floats in SQL, but a reason for 2',
    ]);
    expect(findFloats(new Map(), {}, allowed)).toEqual(['src/store/a.ts: a reason for a file that does not exist']);
  });
});
