import { describe, expect, it } from 'vitest';
import { type Arguments, choiceOf, parse, present, verbOf, wholeNumberOf } from '../../../cli/arguments.ts';
import { futureOf, pastOf, spanOf } from '../../../cli/spans.ts';
import { problemsIn } from '../../support/problems-in.ts';

const OPTIONS = { venue: { value: 'VENUE', choices: ['kalshi', 'limitless'] }, limit: { value: 'N' }, json: {} };
const NOW_MS = Date.UTC(2026, 0, 2);
const FORMS = 'a date, a time in ISO 8601, or epoch seconds';

/** Reads a line of arguments separated by spaces. */
function read<Value>(line: string, reader: (given: Arguments) => Value, words: [number, number] = [0, 9]): Value {
  return parse(line.split(' ').filter(Boolean), { options: { ...OPTIONS, at: { value: 'TIME' } }, words }, reader);
}

describe('parse', () => {
  it('reads words, the last text of an option, and flags', () => {
    const { words, texts, flags } = read('a --limit 1 --json b --limit=2 -- --json', (given) => given);
    expect({ words, texts: [...texts], flags: [...flags] }).toEqual({
      words: ['a', 'b', '--json'],
      texts: [['limit', '2']],
      flags: ['json'],
    });
  });

  it('reports the problems of its reader with its own', () => {
    const line = '--nope stray --json=1 --venue x --limit';
    const problems = problemsIn(() => read(line, (given) => given.problems.push('of the reader'), [0, 0]));
    expect(problems).toEqual([
      'unknown option --nope',
      '--json takes no value',
      '--venue must be one of kalshi, limitless',
      '--limit needs a value',
      'unknown argument stray',
      'of the reader',
    ]);
  });

  it.each([
    ['--limit --json', '--limit needs a value'],
    ['-x', 'unknown option -x'],
    ['a', 'an argument is missing'],
    ['a b c d', 'unknown argument d'],
  ])('rejects %s: %s', (line, problem) => {
    expect(problemsIn(() => read(line, () => 0, [2, 3]))).toContain(problem);
  });

  it('rejects a verb that it does not know, and the absence of one', () => {
    const verbs = ['add', 'list'];
    expect(problemsIn(() => parse(['drop'], { verbs, words: [0, 1] }, () => 0))).toEqual([
      '"drop" must be one of add, list',
    ]);
    expect(problemsIn(() => verbOf([], verbs))).toEqual(['name a command: add, list']);
    expect(verbOf(['list', 'x'], verbs)).toBe('list');
  });
});

describe('an option', () => {
  it('has one of its choices', () => {
    const venue = (line: string) => read(line, (given) => choiceOf(given, 'venue', ['kalshi', 'limitless']));
    expect([venue('--venue kalshi'), venue('')]).toEqual(['kalshi', undefined]);
  });

  it('has a whole number within its bounds', () => {
    const limit = (line: string) => read(line, (given) => wholeNumberOf(given, 'limit', [0, 1_000]));
    expect([limit('--limit 0'), limit('--limit 1000'), limit('')]).toEqual([0, 1_000, undefined]);
    for (const text of ['1001', '-1', '1e2', '1.5', 'x']) {
      expect(problemsIn(() => limit(`--limit ${text}`))).toEqual(['--limit must be a whole number from 0 to 1000']);
    }
  });

  it('is no field when it is absent', () => {
    expect(present({ a: 1, b: undefined, c: null })).toStrictEqual({ a: 1, c: null });
  });
});

describe('a time', () => {
  const past = (text: string) =>
    read('', (given) => pastOf({ ...given, texts: new Map([['at', text]]) }, 'at', NOW_MS));
  const future = (text: string) => read(`--at ${text}`, (given) => futureOf(given, 'at', NOW_MS));
  const iso = (seconds: number | undefined) => new Date((seconds ?? Number.NaN) * 1_000).toISOString();

  it.each([
    ['24h', '2026-01-01T00:00:00.000Z'],
    ['90m', '2026-01-01T22:30:00.000Z'],
    ['30s', '2026-01-01T23:59:30.000Z'],
    ['7d', '2025-12-26T00:00:00.000Z'],
    ['1767225600', '2026-01-01T00:00:00.000Z'],
    ['2026-01-01', '2026-01-01T00:00:00.000Z'],
    ['2026-01-01T12:30', '2026-01-01T12:30:00.000Z'],
    ['2026-01-01 12:30:15', '2026-01-01T12:30:15.000Z'],
    ['2026-01-01T00:00:00.5Z', '2026-01-01T00:00:00.000Z'],
    ['2026-01-01T12:30:15+02:00', '2026-01-01T10:30:15.000Z'],
  ])('%s is %s', (text, expected) => expect(iso(past(text))).toBe(expected));

  it.each(['', 'now', 'soon', '24w', '2026-13-01', '2026-01-01T99:00', '-5', '1e9', '2026-11-01Z'])(
    'is not %j',
    (text) => {
      expect(() => past(text)).toThrow('--at must be an age such as 24h');
    },
  );

  it('to come counts a span from now', () => {
    expect([iso(future('12h')), iso(future('2027-01-01'))]).toEqual([
      '2026-01-02T12:00:00.000Z',
      '2027-01-01T00:00:00.000Z',
    ]);
    expect(problemsIn(() => future('soon'))).toEqual([`--at must be a span from now such as 90d, ${FORMS}`]);
  });

  it('has a span of its own', () => {
    const span = (text: string) => read(`--at ${text}`, (given) => spanOf(given, 'at'));
    expect([span('90s'), span('15m'), span('1h')]).toEqual([90, 900, 3_600]);
    expect(problemsIn(() => span('long'))).toEqual(['--at must be a span such as 90s, 15m or 1h']);
  });
});
