import { describe, expect, it } from 'vitest';
import { parseBackfillArguments } from '../../../bin/backfill/arguments.ts';
import { summaryJson, summaryText } from '../../../bin/backfill/summary.ts';
import type { ShortHistory } from '../../../src/store/series/venue-backfill.ts';
import { problemsIn } from '../../support/problems-in.ts';

const NOW_MS = Date.UTC(2026, 10, 20, 12);
const SINCE_MS = Date.UTC(2026, 5, 1);
const parse = (...argv: string[]) => parseBackfillArguments(argv, NOW_MS);

describe('parseBackfillArguments', () => {
  it('reads a venue, a time and each named market once', () => {
    expect(parse('--venue', 'kalshi', '--since', '2026-06-01')).toEqual({
      venue: 'kalshi',
      sinceMs: SINCE_MS,
      json: false,
    });
    expect(parse('--venue=manifold', '--since=24h', '--markets', 'a,b,a', '--json')).toEqual({
      venue: 'manifold',
      sinceMs: NOW_MS - 86_400_000,
      marketIds: ['a', 'b'],
      json: true,
    });
  });

  it('reports every problem at once', () => {
    const problems = problemsIn(() => parse('--venue', 'solana', '--since', '2026-11-21', '--markets', ''));
    expect(problems).toEqual([
      'solana has no history of trades: --venue must be one of polymarket, kalshi, manifold, limitless',
      '--since must be in the past',
      '--markets must be ids of markets with a comma between them',
    ]);
    expect(problemsIn(() => parse())).toHaveLength(2);
  });
});

const row = (marketId: string, fields: Partial<ShortHistory> = {}): ShortHistory => ({
  marketId,
  state: 'unserved',
  storedFromMs: Date.UTC(2026, 7, 1),
  reason: 'the venue serves three years',
  ...fields,
});
const counts = { missing: 0, open: 0, unanswered: 1, failed: 1, unserved: 1, served: 1_200 };
const summary = {
  venue: 'kalshi',
  sinceMs: SINCE_MS,
  progress: { markets: counts, trades: 54_321 },
  short: [
    row('K-1'),
    row('K-2', { state: 'failed', reason: 'odd' }),
    row('K-3', { state: 'unanswered', reason: null }),
  ],
};

describe('the summary of a backfill', () => {
  it('lists each market that is not stored back to the date as JSON', () => {
    expect(JSON.parse(summaryJson(summary))).toEqual({
      venue: 'kalshi',
      since: '2026-06-01T00:00:00.000Z',
      markets: 1_203,
      served: 1_200,
      not_served: 1,
      failed: 2,
      trades: 54_321,
      markets_not_served: [
        { market_id: 'K-1', stored_from: '2026-08-01T00:00:00.000Z', reason: 'the venue serves three years' },
      ],
      markets_failed: [
        { market_id: 'K-2', stored_from: '2026-08-01T00:00:00.000Z', reason: 'odd' },
        { market_id: 'K-3', stored_from: '2026-08-01T00:00:00.000Z', reason: null },
      ],
    });
  });

  it('states the counts, and shows at most twenty markets as text', () => {
    const text = summaryText(summary);
    expect(text).toContain('the trades of 1,200 markets are stored since 2026-06-01 00:00:00');
    expect(text).toContain('Failed walks: 1. A run an hour later requests them again.');
    expect(text).toContain('Walks without an answer of the venue: 1.');
    expect(text).toMatch(/^K-2 +failed +2026-08-01 00:00:00 +odd$/m);
    const many = summaryText({ ...summary, short: Array.from({ length: 30 }, (_, index) => row(`M-${index}`)) });
    expect(many).toContain('--json lists all');
    expect([many.includes('M-19 '), many.includes('M-20 ')]).toEqual([true, false]);
    expect(summaryText({ ...summary, short: [] })).not.toContain('reason');
  });
});
