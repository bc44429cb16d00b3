import { describe, expect, it } from 'vitest';
import { VenueError } from '../../../../src/venues/errors.ts';
import type { ListAnswer, Parameters } from '../../../../src/venues/kalshi/client.ts';
import { parseMarkets } from '../../../../src/venues/kalshi/parse-market.ts';
import { createSeriesDirectory } from '../../../../src/venues/kalshi/series-directory.ts';

const START = Date.UTC(2026, 9, 1);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

function setup() {
  const queries: Parameters[] = [];
  const failures: string[] = [];
  const abort = new AbortController();
  const venue = {
    nowMs: START,
    rows: [{ ticker: 'KXRAIN', category: 'Climate and Weather', tags: ['Snow and rain'] }] as unknown[],
    answer: (_query: Parameters): ListAnswer | Promise<ListAnswer> => ({ rows: venue.rows }),
  };
  const directory = createSeriesDirectory(
    {
      listSeries: async (query) => {
        queries.push(query);
        return venue.answer(query);
      },
    },
    (detail) => failures.push(detail),
  );
  const read = async (series: string | undefined, event: object = {}) => {
    const row = {
      ticker: 'A',
      event_ticker: 'E',
      title: 'Title',
      status: 'active',
      event: { ...(series !== undefined && { series_ticker: series }), category: 'Old', ...event },
    };
    const [record] = parseMarkets(await directory.complete([row], venue.nowMs, abort.signal)).records;
    return record && { category: record.category, tags: record.tags, isSummary: record.isSummary };
  };
  return { queries, failures, abort, venue, directory, read };
}

function fail(statusCode: number): never {
  throw new VenueError('kalshi', 'http_status', `HTTP ${statusCode}`, { retryable: true, statusCode });
}

const RAIN = { category: 'Climate and Weather', tags: ['Snow and rain'], isSummary: undefined };

describe('the series directory', () => {
  it('gives a market the category and the tags of its series, before the tags of its event', async () => {
    const { read } = setup();
    expect(await read('KXRAIN')).toEqual(RAIN);
    expect(await read('KXRAIN', { product_metadata: { scope: 'Day', again: 'Snow and rain' } })).toEqual({
      ...RAIN,
      tags: ['Snow and rain', 'Day'],
    });
  });

  it('keeps the category of the event when the series has none or is not listed', async () => {
    const { venue, read } = setup();
    venue.rows.push({ ticker: 'KXBARE', tags: null });
    expect(await read('KXBARE')).toEqual({ category: 'Old', tags: [], isSummary: undefined });
    expect(await read('KXUNLISTED')).toEqual({ category: 'Old', tags: [], isSummary: undefined });
    expect(await read(undefined)).toEqual({ category: 'Old', tags: [], isSummary: undefined });
  });

  it('requests all series once, changes after half an hour and all again after six hours', async () => {
    const { queries, venue, read } = setup();
    await Promise.all([read('KXRAIN'), read('KXRAIN')]);
    venue.nowMs += 29 * MINUTE;
    await read('KXRAIN');
    expect(queries).toEqual([{ cursor: undefined }]);
    venue.nowMs += MINUTE;
    await read('KXRAIN');
    expect(queries[1]).toEqual({ min_updated_ts: START / 1000 - 120, cursor: undefined });
    venue.nowMs = START + 6 * HOUR;
    await read('KXRAIN');
    expect(queries.length).toBe(3);
    expect(queries[2]).toEqual({ cursor: undefined });
  });

  it('requests changes when a series is new, at most once a minute, and once when it stays unlisted', async () => {
    const { queries, venue, read } = setup();
    await read('KXRAIN');
    venue.rows = [{ ticker: 'KXNEW', category: 'Sports', tags: ['Tennis'] }];
    expect(await read('KXNEW')).toMatchObject({ category: 'Old' });
    expect(queries.length).toBe(1);
    venue.nowMs += MINUTE;
    expect(await read('KXNEW')).toEqual({ category: 'Sports', tags: ['Tennis'], isSummary: undefined });
    expect(await read('KXRAIN')).toEqual(RAIN);
    venue.nowMs += MINUTE;
    await read('KXUNLISTED');
    venue.nowMs += MINUTE;
    await read('KXUNLISTED');
    expect(queries.length).toBe(3);
  });

  it('marks a market as a summary while no listing has succeeded, and backs off', async () => {
    const { queries, failures, venue, read } = setup();
    venue.answer = () => fail(503);
    expect(await read('KXRAIN')).toEqual({ category: 'Old', tags: [], isSummary: true });
    expect(failures).toEqual(['series: HTTP 503']);
    for (const minutes of [0.5, 0.5, 1, 1]) {
      venue.nowMs += minutes * MINUTE;
      await read('KXRAIN');
    }
    // After one minute, and two minutes later.
    expect(queries.length).toBe(3);
    venue.answer = () => ({ rows: venue.rows });
    venue.nowMs += 4 * MINUTE;
    expect(await read('KXRAIN')).toEqual(RAIN);
  });

  it('uses the known series when a later listing fails', async () => {
    const { failures, venue, read } = setup();
    await read('KXRAIN');
    venue.answer = () => fail(500);
    venue.nowMs += 7 * HOUR;
    expect(await read('KXRAIN')).toEqual(RAIN);
    expect(failures.length).toBe(1);
  });

  it('marks a market as a summary when its event is unknown', async () => {
    const { venue, directory, abort } = setup();
    const [row] = await directory.complete([{ ticker: 'A', event_ticker: 'E' }], venue.nowMs, abort.signal);
    expect(row).toMatchObject({ is_summary: true });
  });

  it.each([
    ['an empty list', () => ({ rows: [] })],
    ['rows without a series', () => ({ rows: [null, 7, {}, { ticker: '' }] })],
  ])('counts %s as a failure', async (_, answer) => {
    const { failures, venue, read } = setup();
    venue.answer = answer;
    expect(await read('KXRAIN')).toMatchObject({ isSummary: true });
    expect(failures).toEqual(['series: no series is readable']);
  });

  it('requests all series when the venue refuses the filter for changes', async () => {
    const { queries, failures, venue, read } = setup();
    venue.answer = (query) => ('min_updated_ts' in query ? fail(400) : { rows: venue.rows });
    await read('KXRAIN');
    for (let round = 0; round < 2; round += 1) {
      venue.nowMs += 30 * MINUTE;
      await read('KXRAIN');
    }
    expect(queries.map((query) => 'min_updated_ts' in query)).toEqual([false, true, false, false]);
    expect(failures).toEqual([]);
  });

  it('follows a cursor, and stops when it repeats', async () => {
    const { queries, venue, read } = setup();
    venue.answer = ({ cursor }) =>
      cursor === undefined
        ? { rows: [{ ticker: 'KXOTHER' }], nextCursor: 'next' }
        : { rows: venue.rows, nextCursor: 'next' };
    expect(await read('KXRAIN')).toEqual(RAIN);
    expect(queries.map((query) => query['cursor'])).toEqual([undefined, 'next']);
  });

  it('drops tags and category of a series when their type is wrong or their text is not storable', async () => {
    const { venue, read } = setup();
    venue.rows = [
      { ticker: 'KXRAIN', category: 7, tags: ['Rain', 7, '', null, 'nul\u0000'] },
      { ticker: 'KXTEXT', category: '\ud800', tags: 'Rain' },
    ];
    expect(await read('KXRAIN')).toEqual({ category: 'Old', tags: ['Rain'], isSummary: undefined });
    expect(await read('KXTEXT')).toEqual({ category: 'Old', tags: [], isSummary: undefined });
  });

  it('throws when its call is aborted, and does not repeat the request in the next call', async () => {
    const { queries, failures, abort, venue, directory, read } = setup();
    venue.answer = () => {
      abort.abort();
      return fail(503);
    };
    await expect(read('KXRAIN')).rejects.toBeInstanceOf(VenueError);
    const next = new AbortController().signal;
    await directory.complete([{ event: { series_ticker: 'KXRAIN' } }], venue.nowMs, next);
    expect([queries.length, failures]).toEqual([1, []]);
  });

  it('requests no series of a combination', async () => {
    const { queries, venue, directory, abort } = setup();
    await directory.complete([{ ticker: 'KXMVE-1', event: { series_ticker: 'KXMVE' } }], venue.nowMs, abort.signal);
    expect(queries).toEqual([]);
  });
});
