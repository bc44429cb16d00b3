import { describe, expect, it } from 'vitest';
import { ruleOf } from '../../../bench/soak/figures.ts';
import { judge, type SoakSample, tableOf } from '../../../bench/soak/report.ts';

const MIB = 1024 * 1024;

/** Twenty minutes, a sample each ten seconds; 2 trades a second. */
const samples = (figures: (seconds: number) => Record<string, number>): SoakSample[] =>
  Array.from({ length: 120 }, (_, index) => ({
    seconds: index * 10,
    figures: { 'trades stored': index * 20, ...figures(index * 10) },
  }));

describe('judge', () => {
  it('fails flat figures that grow, but not figures that only warmed up', () => {
    const { growing } = judge(
      samples((seconds) => ({
        'api: live heap': 40 * MIB + seconds * 8 * 1024,
        'poller: live heap': 40 * MIB + Math.min(seconds, 250) * 80 * 1024,
        'table mark': 100 * 1024 + seconds * 10 * 1024,
      })),
      300,
    );
    expect(growing).toEqual(['api: live heap', 'table mark']);
  });

  it('reports retained data per 1,000 trades', () => {
    const { rows, growing } = judge(
      samples((seconds) => ({ 'table trade': seconds * 200 })),
      300,
    );
    expect(growing).toEqual([]);
    expect(rows.find(({ figure }) => figure === 'table trade')?.verdict).toBe('kept: 98 kB per 1,000 trades');
  });

  it('omits constant figures from the table, but names them', () => {
    const { rows, unchanged } = judge(
      samples((seconds) => ({ 'api: threads': 11, 'api: sockets': 20 + (seconds % 30) / 10 })),
      300,
    );
    expect(unchanged).toEqual(['api: threads']);
    expect(rows.map(({ figure }) => figure)).toEqual(['api: sockets', 'trades stored']);
    expect(new Set(tableOf(rows).map((line) => line.indexOf('flat'))).size).toBeLessThanOrEqual(2);
  });

  it('gives no verdict for a figure without time to settle', () => {
    const { rows } = judge(
      samples((seconds) => ({ 'queue rows: job': seconds * 20 })).filter(({ seconds }) => seconds < 200),
      50,
    );
    expect(rows.find(({ figure }) => figure === 'queue rows: job')?.verdict).toBe('too short');
  });

  it('distinguishes marks of a minute from a growing backlog', () => {
    const WAITING = 'marks waiting for sample-snapshots';
    const growingOf = (minutes: number, left: number) =>
      judge(
        samples((seconds) => ({ [WAITING]: (seconds % 60) * 40 + seconds * left })).filter(
          ({ seconds }) => seconds <= minutes * 60,
        ),
        0,
      ).growing;
    // With fewer than four low points the remainder is unknown; one tooth is all rise.
    expect([growingOf(0.8, 0), growingOf(3, 4), growingOf(19, 0), growingOf(19, 4)]).toEqual([[], [], [], [WAITING]]);
  });
});

describe('ruleOf', () => {
  it('judges figures of pooled connections over minutes, and others at once', () => {
    const toothOf = (name: string) => (ruleOf(name).expectation as { toothSeconds?: number }).toothSeconds;
    const pooled = [
      'deliverer: sockets',
      'api: descriptors',
      'poller: handles',
      'postgres: connections of oddswire-api',
    ];
    expect([...pooled, 'postgres: memory of backends'].map(toothOf)).toEqual([60, 60, 60, 60, 60]);
    expect(['api: live heap', 'api: threads', 'deliveries pending'].map(toothOf)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  });

  it('distinguishes tables of history from others, and has no default', () => {
    expect(ruleOf('table candle').expectation.kind).toBe('kept');
    expect(ruleOf('indexes latest_price').expectation.kind).toBe('flat');
    expect(() => ruleOf('something new')).toThrow('no rule');
  });
});
