import { beforeAll, expect, it } from 'vitest';
import { type StoredHour, storedCoverage } from '../../../factories/stored-coverage.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice, storedSnapshots } from '../../../factories/stored-series.ts';
import { useTestApi } from '../api-harness.ts';
import { signIn } from './console-client.ts';

// The clock of the API stands still: an hour may end during the tests.
const api = useTestApi({ console: {} });

const HOUR = 3_600;
const thisHour = () => Math.floor(api.clock.nowMs / 1_000 / HOUR) * HOUR;

interface Gap {
  from: number;
  to: number;
  kind: string;
  why: string;
}
interface Data {
  line: { time: number; value: number; gap?: true }[];
  compared: { label: string; line: unknown[] }[];
  gaps: { line: Gap[]; trades: Gap[] };
  parts: { gaps: string; lines: string };
}

/** The hours of prices of the last two days, of the whole venue: all were observed, except for some. */
beforeAll(async () => {
  const classes: Readonly<Record<number, StoredHour>> = {
    5: { class: 'gap', cause: 'poll_pause' },
    6: { class: 'gap', cause: 'poll_pause' },
    9: { class: 'unknown', reason: 'not_compared' },
  };
  const hours = Array.from({ length: 48 }, (_, hour) => classes[48 - hour] ?? { class: 'observed' });
  const start = thisHour() - 48 * HOUR;
  await storedCoverage(api.db, { venue: 'polymarket', kind: 'prices', start }, hours);
});

/** A market with a quote in each of the last 48 hours. */
async function aQuotedMarket(of: Parameters<typeof aStoredMarket>[1] = {}) {
  const market = await aStoredMarket(api.db, { createdAt: new Date(api.clock.nowMs - 60 * 86_400_000), ...of });
  const [yes] = market.outcomes;
  if (!yes) throw new TypeError('the market has outcomes');
  const start = thisHour() - 48 * HOUR;
  const quotes = Array.from({ length: 48 }, (_, hour) => ({ ts: start + hour * HOUR, price: '0.4' }));
  await storedSnapshots(api.db, yes.tokenId, quotes);
  await aStoredPrice(api.db, yes.tokenId, { price: '0.5', asOf: new Date(api.clock.nowMs) });
  return { ...market, yes };
}

async function dataOf(path: string): Promise<Data> {
  const browser = await signIn(api);
  const { status, body } = await browser.get(`/console/data${path}`);
  expect([path, status]).toEqual([path, 200]);
  return body as unknown as Data;
}

it('the line of a market breaks where the venue was not read, and has no repeated values there', async () => {
  const { marketId } = await aQuotedMarket();
  const [from, to] = [thisHour() - 6 * HOUR, thisHour() - 4 * HOUR];
  const { line, gaps, parts } = await dataOf(`/markets/polymarket/${marketId}/series.json?range=1d`);
  expect(gaps.line.filter(({ kind }) => kind === 'gap')).toEqual([
    { from, to, kind: 'gap', why: 'the venue was not read' },
  ]);
  const unknown = { kind: 'unknown', why: 'trades were not compared with the venue' };
  expect(gaps.line.filter(({ why }) => why === unknown.why)).toEqual([
    { from: from - 3 * HOUR, to: from - 2 * HOUR, ...unknown },
  ]);
  // The present hour is not judged yet.
  expect(gaps.line.filter(({ kind }) => kind === 'pending')).toMatchObject([{ from: thisHour() }]);
  expect(line.filter(({ time }) => from < time && time < to)).toEqual([]);
  expect(line.filter(({ gap }) => gap)).toEqual([{ time: from, value: 0.4, gap: true }]);
  // The points of the unknown hour are data.
  expect(line.filter(({ time }) => from - 3 * HOUR < time && time < from - 2 * HOUR)).toHaveLength(11);
  expect(parts.gaps).toContain('<strong>not complete</strong>, the venue was not read');
});

it('the gap list of a market page without scripts states each time and reason', async () => {
  const { marketId } = await aQuotedMarket();
  const { text } = await (await signIn(api)).page(`/markets/polymarket/${marketId}`);
  expect(text).toContain('class="band gap"');
  expect(text).toMatch(/prices: <strong>not complete<\/strong>, the venue was not read/);
  expect(text).toMatch(/Not judged yet: .*prices since/);
});

it('trades without any evidence are unknown for the whole range', async () => {
  const { marketId } = await aQuotedMarket();
  const { gaps } = await dataOf(`/markets/polymarket/${marketId}/series.json?range=1w`);
  expect(gaps.trades).toMatchObject([{ kind: 'unknown' }]);
  const [gap] = gaps.trades;
  expect((gap?.to ?? 0) - (gap?.from ?? 0)).toBeGreaterThan(7 * 86_400 - HOUR);
});

it('a chart compares at most six outcomes of an event, in the order of the address, and ignores unknown ones', async () => {
  const made = [];
  for (let n = 0; n < 8; n++) {
    const fields = { title: 'Who wins?', eventId: 'cup', eventTitle: 'Who wins?', siblingLabel: `Team ${n}` };
    made.push(await aQuotedMarket({ ...fields, stats: ['1', String(100 - n), '1'] }));
  }
  const [first, ...others] = made;
  const compare = ['unknown', ...others.map(({ yes }) => yes.outcomeId).toReversed()].map((id): [string, string] => [
    'compare',
    id,
  ]);
  const query = new URLSearchParams(compare).toString();
  const { compared, parts } = await dataOf(`/markets/polymarket/${first?.marketId}/series.json?${query}`);
  expect(compared.map(({ label }) => label)).toEqual([7, 6, 5, 4, 3].map((n) => `Team ${n}`));
  expect(compared.every(({ line }) => line.length > 1)).toBe(true);
  expect(parts.lines.match(/series-\d/g)).toEqual([0, 1, 2, 3, 4, 5].map((n) => `series-${n}`));
  const browser = await signIn(api);
  const { text } = await browser.page(`/markets/polymarket/${first?.marketId}?${query}&range=1w`);
  expect(text.match(/class="line series-\d" d="M0 2H24"/g)).toHaveLength(6);
  expect(text.match(/name="compare" value="[^"]*" checked/g)).toHaveLength(5);
  expect(text).toContain('<input type="hidden" name="range" value="1w">');
  const event = await dataOf(`/events/polymarket/cup/series.json?compare=${others[6]?.yes.outcomeId}&range=1h`);
  expect([event.compared.length, event.line.length > 1]).toEqual([0, true]);
  expect((await dataOf('/events/polymarket/cup/series.json')).compared).toHaveLength(5);
});

it('the chart of a market with more than two outcomes compares its outcomes, which share the gaps of the market', async () => {
  const { marketId, outcomes } = await aQuotedMarket({ labels: ['Red', 'Green', 'Blue'] });
  const [red, green, blue] = outcomes;
  const query = new URLSearchParams([
    ['outcome', red?.outcomeId ?? ''],
    ['compare', blue?.outcomeId ?? ''],
    ['compare', red?.outcomeId ?? ''],
    ['compare', green?.outcomeId ?? ''],
  ]);
  const path = `/markets/polymarket/${marketId}`;
  const { compared, parts } = await dataOf(`${path}/series.json?${query}`);
  expect(compared.map(({ label }) => label)).toEqual(['Blue', 'Green']);
  expect(parts.gaps).toContain(`, Red: <strong>not complete</strong>, the venue was not read`);
  // Blue has no quotes, so that its line would consist of trades: nothing is proven of them.
  expect(parts.gaps).toMatch(/Blue.*: <strong>unknown<\/strong>/);
  const { text } = await (await signIn(api)).page(`${path}?outcome=${red?.outcomeId}`);
  expect([...text.matchAll(/name="compare" value="([^"]+)"/g)].map(([, id]) => id)).toEqual(
    [green, blue].map((each) => each?.outcomeId),
  );
});
