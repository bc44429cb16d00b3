import { describe, expect, it, vi } from 'vitest';
import { createAuditOutput } from '../../../bin/audit/output.ts';
import { parseAuditArguments } from '../../../bin/audit.ts';
import { problemsIn } from '../../support/problems-in.ts';

const NOW = 1_795_000_000;
const parse = (...argv: string[]) => parseAuditArguments(argv, NOW * 1_000);

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
      against: 'venue',
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

it('the lines of the audit have no control character of an id', async () => {
  const written: string[] = [];
  const write = vi.spyOn(process.stdout, 'write').mockImplementation(((text: string, done: () => void) => {
    written.push(text);
    done();
    return true;
  }) as typeof process.stdout.write);
  await createAuditOutput({ json: false, limit: 1 }).difference(
    () => 'market\x1b[2J 1h',
    () => ({}),
  );
  write.mockRestore();
  expect(written).toEqual(['market\ufffd[2J 1h\n']);
});
