import { describe, expect, it } from 'vitest';
import { parseRetrySchedule } from '../../../src/config/formats.ts';

describe('parseRetrySchedule', () => {
  it.each([
    ['5,30,120,600,1800,7200,18000,36000,36000', [5, 30, 120, 600, 1800, 7200, 18_000, 36_000, 36_000]],
    ['1', [1]],
    [' 1 , 0.5,0 ', [1, 0.5, 0]],
    ['10.25', [10.25]],
  ])('%j', (text, expected) => expect(parseRetrySchedule(text)).toEqual(expected));

  it.each([
    '',
    ' ',
    ',',
    '1,',
    '5s',
    '-1',
    '1;2',
    '1.',
    '.5',
    '1.5.5',
    'Infinity',
    'NaN',
    '1e3',
    '0x10',
    '9999999',
    '1,,2',
    '1,'.repeat(60),
  ])('rejects %j', (text) =>
    expect(() => parseRetrySchedule(text)).toThrow(expect.objectContaining({ code: 'invalid_retry_schedule' })),
  );

  it('accepts 50 delays of up to 30 days, and rejects one more', () => {
    const month = 30 * 86_400;
    const longest = Array.from({ length: 50 }, () => month);
    expect(parseRetrySchedule(longest.join(','))).toEqual(longest);
    expect(() => parseRetrySchedule([...longest, 1].join(','))).toThrow(/51 delays, at most 50/);
    expect(() => parseRetrySchedule(`1,${month + 1}`)).toThrow(/^entry 2: not seconds from 0 to 2592000$/);
    expect(() => parseRetrySchedule(`${month}.01`)).toThrow(
      expect.objectContaining({ code: 'invalid_retry_schedule' }),
    );
  });

  it('names every bad delay by its position, never by its text', () =>
    expect(() => parseRetrySchedule('1,x,2,-3')).toThrow(/^entry 2, entry 4: not seconds/));
});
