import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseRetryAfter } from '../../../../src/domain/values/retry-after.ts';

const WEEK = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];

describe('parseRetryAfter', () => {
  const nowMs = Date.parse('2026-01-02T03:04:05.000Z');

  it.each([
    ['0', 0],
    ['120', 120],
    [' 7 ', 7],
    ['1.5', 1.5],
    ['1000000000', 1e9],
    ['Fri, 02 Jan 2026 03:05:05 GMT', 60],
    ['Friday, 02-Jan-26 03:05:05 GMT', 60],
    ['Fri Jan  2 03:05:05 2026', 60],
    ['Wed, 21 Oct 2015 07:28:00 GMT', 0],
    [['3', '9'], 3],
  ])('reads %j as %d s', (value, seconds) => expect(parseRetryAfter(value, nowMs)).toBe(seconds));

  it('law: parses each of the three forms of any time', () => {
    const moment = fc.date({ min: new Date('1970-01-02'), max: new Date('2049-12-31'), noInvalidDate: true });
    fc.assert(
      fc.property(moment, (date) => {
        const seconds = Math.floor(date.getTime() / 1000);
        const imf = new Date(seconds * 1000).toUTCString();
        const [day = '', dd = '', month = '', year = '', time = ''] = imf.split(/,? /);
        const dayName = WEEK.find((name) => name.startsWith(day));
        for (const text of [
          imf,
          `${dayName}, ${dd}-${month}-${year.slice(2)} ${time} GMT`,
          `${day} ${month} ${dd.replace(/^0/, ' ')} ${time} ${year}`,
        ]) {
          expect(parseRetryAfter(text, 0)).toBe(seconds);
        }
      }),
    );
  });

  it.each([
    'Fri, 02 Jan 2026 03:05:05 GMT',
    'Friday, 02-Jan-26 03:05:05 GMT',
    'Fri Jan  2 03:05:05 2026',
    '120',
    '1.5',
  ])('ignores %j with a word before or after it', (value) => {
    for (const text of [`x${value}`, `${value}x`, `x ${value}`, `${value} x`]) {
      expect(parseRetryAfter(text, nowMs)).toBeUndefined();
    }
  });

  it('accepts up to 15 digits before the point and 9 after it', () => {
    expect(parseRetryAfter('999999999999999', nowMs)).toBe(999_999_999_999_999);
    expect(parseRetryAfter('1.123456789', nowMs)).toBe(1.123456789);
    for (const text of ['9999999999999999', '1.1234567891', '1.', '.5']) {
      expect(parseRetryAfter(text, nowMs)).toBeUndefined();
    }
  });

  it.each([
    undefined,
    '',
    'later',
    'soon',
    '-5',
    '+5',
    '5s',
    '1.5x',
    '1e3',
    '0x10',
    'Infinity',
    '3 apples',
    'Fri, 2 Jan 2026 03:05:05 GMT',
    'Fri, 02 jan 2026 03:05:05 GMT',
    'Fri, 02 Jan 2026 03:05:05',
    'Fri, 02 Jan 2026 03:05:05 +0100',
    'Fra, 02 Jan 2026 03:05:05 GMT',
    'Fri, 02 Jan 2026 3:05 GMT',
    '2026-01-02',
    '2026-01-02T03:05:05Z',
    'Fri, 99 Foo 2026 99:99:99 GMT',
    '9'.repeat(40),
  ])('ignores %j', (value) => expect(parseRetryAfter(value, nowMs)).toBeUndefined());
});
