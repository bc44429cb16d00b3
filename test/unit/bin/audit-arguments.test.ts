import { describe, expect, it } from 'vitest';
import { parseAuditArguments } from '../../../bin/audit/arguments.ts';
import { parseMoment } from '../../../cli/spans.ts';
import { problemsIn } from './problems-in.ts';

const NOW = 1_795_000_000;
const parse = (...argv: string[]) => parseAuditArguments(argv, NOW);

describe('the arguments of the audit', () => {
  it('default to the last seven days of a venue, without repair', () => {
    expect(parse('candles', '--venue', 'kalshi')).toEqual({
      venue: 'kalshi',
      range: { start: NOW + 1 - 7 * 86_400, end: NOW + 1 },
      repair: false,
      json: false,
      limit: 50,
    });
  });

  it('accept every option', () => {
    const line = 'candles --venue kalshi --market T --from 2026-11-01 --to 1793500000 --json --limit 7 --against venue';
    expect(parse(...line.split(' '))).toEqual({
      venue: 'kalshi',
      marketId: 'T',
      range: { start: 1_793_491_200, end: 1_793_500_000 },
      repair: false,
      json: true,
      limit: 7,
      against: { kind: 'venue' },
    });
  });

  it('report every problem at once', () => {
    const problems = (argv: string) => problemsIn(() => parse(...argv.split(' ')));
    expect(problems('--venue nasdaq --from yesterday --limit -1x --nope')).toHaveLength(5);
    expect(problems('--venue nasdaq --from yesterday --limit x')).toHaveLength(4);
    expect(problems('candles --venue kalshi --from 20 --to 10')).toEqual(['--from must be before --to']);
    expect(problems('candles --venue manifold --market a --against venue')).toHaveLength(1);
    expect(problems('candles --venue kalshi --market a --against venue --repair')).toHaveLength(1);
    expect(problems('candles --venue kalshi --nonsense')[0]).toContain('nonsense');
  });
});

describe('a time argument', () => {
  it.each([
    ['1793491200', 1_793_491_200],
    ['2026-11-01', 1_793_491_200],
    ['2026-11-01T12:00', 1_793_534_400],
    ['2026-11-01 12:00:00', 1_793_534_400],
    ['2026-11-01T12:00:00.5Z', 1_793_534_400],
    ['2026-11-01T12:00+02:00', 1_793_527_200],
  ])('%s is %d', (text, seconds) => expect(parseMoment(text)).toBe(seconds));

  it.each(['', 'now', '2026-13-01', '2026-11-01T99:00', '-5', '1e9', '2026-11-01Z'])('rejects %j', (text) =>
    expect(parseMoment(text)).toBeNull(),
  );
});
