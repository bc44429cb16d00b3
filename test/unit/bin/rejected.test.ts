import { describe, expect, it } from 'vitest';
import { parseRejectedArguments, rejectionsJson, rejectionsText } from '../../../bin/rejected.ts';
import { VENUE_NAMES } from '../../../src/domain/markets/venue.ts';
import type { QuarantineEntry, QuarantineSummary } from '../../../src/store/catalog/quarantine.ts';
import { problemsIn } from '../../support/problems-in.ts';

const NOW_MS = Date.UTC(2026, 10, 20, 12);
const parse = (...argv: string[]) => parseRejectedArguments(argv, NOW_MS);
const problemsOf = (...argv: string[]) => problemsIn(() => parse(...argv));

describe('the arguments of rejected', () => {
  it('select everything, twenty records, by default', () => {
    expect(parse()).toEqual({ limit: 20, json: false, sample: false });
  });

  it('accept all options', () => {
    const given = ['--venue', 'kalshi', '--kind=trades', '--reason', 'odd', '--since', '24h', '--limit', '0'];
    expect(parse(...given, '--json', '--sample')).toEqual({
      venue: 'kalshi',
      kind: 'trades',
      reason: 'odd',
      sinceMs: NOW_MS - 86_400_000,
      limit: 0,
      json: true,
      sample: true,
    });
  });

  it('report every problem at once', () => {
    expect(
      problemsOf('--venue', 'x', '--kind', 'y', '--since', 'z', '--limit', '-1', '--nope', 'stray', '--json=1'),
    ).toEqual([
      `--venue must be one of ${VENUE_NAMES.join(', ')}`,
      '--kind must be one of markets, prices, books, trades, wallets',
      'unknown option --nope',
      '--json takes no value',
      'unknown argument stray',
      '--since must be an age such as 24h, a date, a time in ISO 8601, or epoch seconds',
      '--limit must be a whole number from 0 to 1000',
    ]);
  });

  it('need a reason that is not empty', () => {
    expect(problemsOf('--reason', '')).toEqual(['--reason must not be empty']);
  });
});

describe('the report of rejected', () => {
  const row: QuarantineSummary = {
    venue: 'kalshi',
    kind: 'trades',
    reason: 'price_out_of_range',
    records: 3,
    times: 1200,
    firstSeenMs: NOW_MS - 3_600_000,
    lastSeenMs: NOW_MS,
  };
  const entry: QuarantineEntry = {
    venue: 'kalshi',
    kind: 'trades',
    reason: 'price_out_of_range',
    recordId: 't-1',
    detail: 'price: 2',
    sample: '{"price":2}',
    times: 4,
    firstSeenMs: NOW_MS - 3_600_000,
    lastSeenMs: NOW_MS,
  };

  it('is a table of counts and a block per record', () => {
    const summary = [row, { ...row, venue: 'polymarket', kind: 'books', reason: 'crossed_book', records: 1, times: 1 }];
    expect(
      rejectionsText({ summary, entries: [entry, { ...entry, recordId: '', times: 1 }], hasMore: true }, false),
    ).toBe(
      [
        'venue       kind    reason              records  times  first seen           last seen',
        'kalshi      trades  price_out_of_range        3   1200  2026-11-20 11:00:00  2026-11-20 12:00:00',
        'polymarket  books   crossed_book              1      1  2026-11-20 11:00:00  2026-11-20 12:00:00',
        '',
        '2026-11-20 12:00:00  kalshi trades t-1  price_out_of_range  4 times',
        '    price: 2',
        '2026-11-20 12:00:00  kalshi trades (no id)  price_out_of_range',
        '    price: 2',
        '',
        'There are more records: --limit, --venue, --kind, --reason and --since narrow them down.',
        '',
      ].join('\n'),
    );
  });

  it('shows the record itself on request, and reports an empty result', () => {
    const text = rejectionsText({ summary: [row], entries: [entry], hasMore: false }, true);
    expect(text).toContain('    {"price":2}\n');
    expect(rejectionsText({ summary: [], entries: [], hasMore: false }, true)).toBe('No rejected records.\n');
  });

  it("keeps control characters of venues from the operator's terminal", () => {
    const evil = { ...entry, recordId: '\u001b[2J', detail: 'a\r\nb\u202ec', sample: '\u009b31m' };
    const text = rejectionsText({ summary: [row], entries: [evil], hasMore: false }, true);
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\u202e]/u);
    expect(text.split('\n')).toHaveLength(7);
  });

  it('is one JSON object for programs', () => {
    const rejections = { summary: [row], entries: [{ ...entry, recordId: '' }], hasMore: false };
    expect(JSON.parse(rejectionsJson(rejections, false))).toEqual({
      summary: [
        {
          venue: 'kalshi',
          kind: 'trades',
          reason: 'price_out_of_range',
          records: 3,
          times: 1200,
          first_seen: '2026-11-20T11:00:00.000Z',
          last_seen: '2026-11-20T12:00:00.000Z',
        },
      ],
      records: [
        {
          venue: 'kalshi',
          kind: 'trades',
          reason: 'price_out_of_range',
          record_id: null,
          detail: 'price: 2',
          times: 4,
          first_seen: '2026-11-20T11:00:00.000Z',
          last_seen: '2026-11-20T12:00:00.000Z',
        },
      ],
    });
    expect(JSON.parse(rejectionsJson(rejections, true)).records[0].sample).toBe('{"price":2}');
  });
});
