import { beforeEach, describe, expect, it } from 'vitest';
import { latestResolutions, readResultDelays } from '../../../../src/store/catalog/resolution-reports.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { storedTimeline } from '../../../factories/stored-resolution.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const CLEAR = sql('test_clear_resolutions', 'DELETE FROM market_resolution');
const UNSEEN = sql('test_unseen_resolutions', 'UPDATE market_resolution SET is_report = false WHERE market_id = $1');

const HOUR_MS = 3_600_000;
const test = useTestDatabase();
beforeEach(() => test.db.query(CLEAR));
const ago = (hours: number) => new Date(Date.now() - hours * HOUR_MS);

/** A market that closed some hours ago and got its result some hours ago. */
async function aResult(
  category: string,
  closed: number | undefined,
  receivedAt: number,
  { at, state = 'resolved' }: { at?: number; state?: 'resolved' | 'settled' | 'voided' } = {},
) {
  const market = await aStoredMarket(test.db, { category, ...(closed !== undefined && { closeAt: ago(closed) }) });
  const row = { transition: state, state, receivedAt: ago(receivedAt), ...(at !== undefined && { at: ago(at) }) };
  await storedTimeline(test.db, market, [row]);
  return market;
}
const delays = async () =>
  (await readResultDelays(test.db, ['polymarket'], 50)).map(({ medianMs, ...rest }) => ({
    ...rest,
    hours: medianMs === null ? null : Math.round(Number(medianMs) / HOUR_MS),
  }));

describe('readResultDelays', () => {
  it('returns the median per venue and category when markets closed before their results', async () => {
    for (const [closed, received] of [
      [10, 9],
      [10, 7],
      [20, 2],
    ] as const)
      await aResult('Weather', closed, received);
    await aResult('Games', 30, 1, { at: 26, state: 'voided' });
    expect(await delays()).toEqual([
      { venue: 'polymarket', category: 'Weather', markets: 3, hours: 3, early: 0, withoutClose: 0 },
      { venue: 'polymarket', category: 'Games', markets: 1, hours: 4, early: 0, withoutClose: 0 },
    ]);
  });

  it('counts markets apart when their close is unknown or behind the result', async () => {
    await aResult('Weather', undefined, 3);
    await aResult('Weather', 1, 3);
    await aResult('Weather', -5, 3);
    expect(await delays()).toEqual([
      { venue: 'polymarket', category: 'Weather', markets: 0, hours: null, early: 2, withoutClose: 1 },
    ]);
  });

  it('takes the first result when a market has several rows', async () => {
    const market = await aStoredMarket(test.db, { category: 'Weather', closeAt: ago(10) });
    await storedTimeline(test.db, market, [
      { transition: 'proposed', state: 'proposed', receivedAt: ago(9) },
      { transition: 'resolved', state: 'resolved', receivedAt: ago(8) },
      { transition: 'settled', state: 'settled', receivedAt: ago(1) },
    ]);
    expect(await delays()).toMatchObject([{ markets: 1, hours: 2 }]);
  });

  it('leaves out results when they are older than 30 days, or their time is unknown', async () => {
    await aResult('Weather', 31 * 24, 30.5 * 24);
    await aResult('Weather', 40 * 24, 1, { at: 35 * 24 });
    const unseen = await aResult('Weather', 40 * 24, 1);
    await test.db.query(UNSEEN, [unseen.pk]);
    expect(await delays()).toEqual([]);
  });

  it('returns the largest groups when there are more than the limit', async () => {
    await aResult('Games', 5, 1);
    for (let n = 0; n < 2; n += 1) await aResult('Weather', 5, 1);
    expect(await readResultDelays(test.db, ['polymarket'], 1)).toMatchObject([{ category: 'Weather' }]);
    expect(await readResultDelays(test.db, ['kalshi'], 1)).toEqual([]);
  });
});

describe('latestResolutions', () => {
  it('has no outcomes when the venue states none', async () => {
    const market = await aStoredMarket(test.db, { labels: [] });
    await storedTimeline(test.db, market, [{ transition: 'voided', state: 'voided', receivedAt: ago(1) }]);
    expect(await latestResolutions(test.db, { venues: ['polymarket'], limit: 1 })).toMatchObject([{ outcomes: [] }]);
  });

  it('pages from the last published row of all venues when it gets the number of a row', async () => {
    await aResult('Weather', 5, 3);
    const kalshi = await aStoredMarket(test.db, { venue: 'kalshi', title: 'Snow?', siblingLabel: 'Oslo' });
    await storedTimeline(test.db, kalshi, [
      { transition: 'resolved', state: 'resolved', receivedAt: ago(2), payouts: ['0.25', '0.75'] },
      { transition: 'disputed', state: 'disputed', receivedAt: ago(1), facts: { rawState: 'odd' } },
    ]);
    const venues = ['polymarket', 'kalshi'];
    const first = await latestResolutions(test.db, { venues, limit: 2 });
    expect(first).toMatchObject([
      { venue: 'kalshi', title: 'Snow?', siblingLabel: 'Oslo', transition: 'disputed', payouts: null, rawState: 'odd' },
      { transition: 'resolved', payouts: [{ payout: '0.25' }, {}], outcomes: [{ label: 'Yes' }, { label: 'No' }] },
    ]);
    const rest = await latestResolutions(test.db, { venues, limit: 2, before: String(first[1]?.seq) });
    expect(rest).toMatchObject([{ venue: 'polymarket', category: 'Weather' }]);
  });

  it('returns the rows of a state and category when both are given', async () => {
    await aResult('Weather', 5, 3);
    await aResult('Weather', 5, 2, { state: 'voided' });
    await aResult('Games', 5, 1, { state: 'voided' });
    const query = { venues: ['polymarket'], limit: 5, category: 'Weather', state: 'voided' } as const;
    expect(await latestResolutions(test.db, query)).toMatchObject([{ category: 'Weather', state: 'voided' }]);
  });
});
