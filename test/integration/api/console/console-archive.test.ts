import { describe, expect, it } from 'vitest';
import { ArchiveFolder } from '../../../../api/reads/archive-folder.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { aListedDay, anEmptyDay } from '../../../factories/archive.ts';
import { type StoredHour, storedCoverage } from '../../../factories/stored-coverage.ts';
import { forTests } from '../../../support/for-tests.ts';
import { textOf } from '../../../support/html-text.ts';
import { useTestApi } from '../api-harness.ts';
import { signIn } from './console-client.ts';

const archive = new ArchiveFolder('/nowhere', createLogger({ process: 'test', level: 'silent' }));
const now = () => Date.parse('2026-02-10T12:00:00Z');
const api = useTestApi({ console: {}, archive, now });
const off = useTestApi({ console: {} });
const browser = forTests(() => signIn(api));
const days = forTests(async () => {
  await anEmptyDay(api.db, { venue: 'polymarket', date: '2026-01-02' });
  await aListedDay(api.db, { kind: 'prices', date: '2026-01-04', rows: 5, bytes: 10 });
  await aListedDay(api.db, { kind: 'prices', date: '2026-01-05', rows: 5, bytes: 10 });
  return aListedDay(api.db, { date: '2026-01-03', rows: 12_345, bytes: 1_234_567 });
});

const pageOf = async (query: string) => (await browser.page(`/archive${query}`)).text;
/** The words of a day of the calendar. */
const dayOf = (page: string, day: number) =>
  [...page.matchAll(/<li>(<(?:a|span) class="day [\s\S]*?)<\/li>/g)]
    .map(([, item = '']) => textOf(item))
    .find((text) => text.split(' ')[0] === String(day));
const unescaped = (text: string) =>
  text.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)));
const part = (page: string, id: string) =>
  unescaped(textOf(new RegExp(`<pre id="program-${id}"[^>]*>([\\s\\S]*?)</pre>`).exec(page)?.[1] ?? ''));

describe('/archive', () => {
  it('states for each day of the month whether it is archived, empty, missing or not over', async () => {
    const january = await pageOf('?month=2026-01');
    expect([dayOf(january, 1), dayOf(january, 2), dayOf(january, 3)]).toEqual([
      '1 ? unknown – not archived',
      '2 ? unknown empty',
      '3 ? unknown 12.3 k rows, 1.2 MB',
    ]);
    expect(textOf(january)).toContain('2 days are archived, 1 of them without rows: 12,345 rows in 1.2 MB.');
    const february = await pageOf('');
    expect([dayOf(february, 9), dayOf(february, 10), dayOf(february, 28)]).toEqual([
      '9 ? unknown – not archived',
      '10 not over',
      '28 not over',
    ]);
    expect(february).not.toContain('month=2026-03');
  });

  it('states the worst class of the hours of each day, and the hours of the chosen days that are not complete', async () => {
    const complete: StoredHour[] = Array.from({ length: 24 }, () => ({ class: 'complete' }));
    const gap = { class: 'gap', cause: 'missing_trades' };
    const bad = complete.with(4, gap).with(5, gap).with(9, { class: 'unknown', reason: 'imprecise' });
    const start = Date.parse('2026-01-03') / 1_000;
    await storedCoverage(api.db, { venue: 'polymarket', start }, [...complete, ...bad, ...complete]);
    await storedCoverage(api.db, { venue: 'polymarket', kind: 'prices', start }, [{ class: 'observed' }]);
    const page = await pageOf('?from=2026-01-03&to=2026-01-04');
    expect([3, 4, 5, 6].map((day) => dayOf(page, day))).toEqual([
      '3 ✓ complete 12.3 k rows, 1.2 MB',
      '4 ✕ gap 2 h – not archived',
      '5 ✓ complete – not archived',
      '6 ? unknown – not archived',
    ]);
    expect(textOf(page)).toContain('Of 48 hours 45 complete or quiet, 2 with a gap, 1 unknown.');
    expect(textOf(page)).toMatch(
      /2026-01-04 04:00 2026-01-04 06:00 gap missing trades 2026-01-04 09:00 2026-01-04 10:00 unknown imprecise/,
    );
    expect(dayOf(await pageOf('?month=2026-01&kind=candles'), 5)).toBe('5 ✓ complete – not archived');
    expect(dayOf(await pageOf('?month=2026-01&kind=prices'), 3)).toBe('3 ? unknown 23 h – not archived');
  });

  it('shows no coverage when the kind has none, or the key may not read it', async () => {
    expect(dayOf(await pageOf('?month=2026-01&kind=resolutions'), 3)).toBe('3 – not archived');
    const reader = await signIn(api, ['archive']);
    const { status, text } = await reader.page('/archive?month=2026-01');
    expect([status, dayOf(text, 3)]).toEqual([200, '3 12.3 k rows, 1.2 MB']);
  });

  it('has lines for the chosen days that name their files and contain no key', async () => {
    const page = await pageOf('?from=2026-01-03&to=2026-01-03');
    expect(part(page, 'copy')).toContain('--kind trades --venue polymarket --from 2026-01-03 --to 2026-01-03');
    expect(part(page, 'curl')).toContain(`/v1/archive/${days.file}`);
    expect(part(page, 'duckdb')).toContain("WHERE date BETWEEN '2026-01-03' AND '2026-01-03'");
    expect(part(page, 'polars')).toContain('date(2026, 1, 3)');
    expect(part(page, 'pandas')).toContain('archive/trades/venue=polymarket/date={day}');
    expect(page).not.toContain('ow_live_');
  });

  it('leaves out repeated values in effect when several days of prices are read', async () => {
    const page = await pageOf('?kind=prices&from=2025-12-30&to=2026-01-31&month=2026-01');
    expect(part(page, 'duckdb')).toContain("NOT in_effect OR date = '2026-01-04'");
    expect(part(page, 'polars')).toContain("~pl.col('in_effect')");
    expect(part(await pageOf('?kind=prices&from=2026-01-04&to=2026-01-04'), 'duckdb')).not.toContain('in_effect');
  });

  it('has no lines when the chosen days have no file', async () => {
    const page = await pageOf('?from=2026-01-02&to=2026-01-02');
    expect(textOf(page)).toContain('These days have no file.');
    expect(part(page, 'copy')).toBe('');
  });

  it.each([
    '?kind=orders',
    '?venue=nyse',
    '?month=2026-13',
    '?from=yesterday',
    '?from=2026-01-02&to=2026-01-01',
    '?from=2020-01-01&to=2026-01-01',
  ])('answers 400 when the query is %s', async (query) => {
    expect((await browser.page(`/archive${query}`)).status).toBe(400);
  });

  it('needs the scope of the routes', async () => {
    const reader = await signIn(api, ['markets:read']);
    expect((await reader.page('/archive')).status).toBe(403);
    expect((await reader.page('/markets')).text).not.toContain('href="/archive"');
  });

  it('says that there is no archive when it is off', async () => {
    const { status, text } = await (await signIn(off)).page('/archive');
    expect([status, textOf(text)]).toEqual([200, expect.stringContaining('This server has no archive.')]);
  });
});
