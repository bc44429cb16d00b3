import { beforeEach, describe, expect, it } from 'vitest';
import { sql } from '../../../../src/store/db/tx.ts';
import { confirmPrices } from '../../../../src/store/prices/confirmations.ts';
import { measureFreshness, readFreshness } from '../../../../src/store/prices/freshness.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const CLEAR = sql('test_clear_markets', 'TRUNCATE market, outcome, latest_price, price_check, venue_freshness CASCADE');
const NOW = sql('test_now', `SELECT date_trunc('second', clock_timestamp()) AS now`);

const test = useTestDatabase();
let now: number;
beforeEach(async () => {
  await test.db.query(CLEAR);
  now = Number((await test.db.query<{ now: Date }>(NOW))[0]?.now);
});

const ago = (seconds: number) => new Date(now - seconds * 1000);

/** An open market whose prices have these times. */
async function pricedMarket(venue: string, ...asOf: Date[]): Promise<bigint> {
  const { outcomes } = await aStoredMarket(test.db, { venue, status: 'open' });
  for (const [index, at] of asOf.entries()) {
    await aStoredPrice(test.db, outcomes[index]?.tokenId ?? 0n, { price: '0.5', asOf: at });
  }
  return outcomes[0]?.tokenId ?? 0n;
}

/** The measured ages of a venue as times, because the test takes time too. */
async function measured(venue: string) {
  const rows = await measureFreshness(test.db, ['a', 'b']);
  expect(await readFreshness(test.db, ['a', 'b'])).toEqual(rows);
  const row = rows.find((each) => each.venue === venue);
  if (!row) throw new Error('not measured');
  const { measuredAt, p50Ms, p99Ms, maxMs, markets, unpriced } = row;
  const ages = [p50Ms, p99Ms, maxMs].map((ms) => ms !== null && Math.ceil((measuredAt.getTime() - Number(ms)) / 1000));
  return { at: ages, markets, unpriced };
}
const seconds = (...times: Date[]) => times.map((time) => Math.ceil(time.getTime() / 1000));

describe('measureFreshness', () => {
  it('stores p50, p99 and the maximum over the open markets of each venue', async () => {
    for (let age = 1; age <= 100; age += 1) await pricedMarket('a', ago(age), ago(age));
    await pricedMarket('b', ago(5000), ago(5000));
    expect(await measured('a')).toEqual({ at: seconds(ago(50), ago(99), ago(100)), markets: 100, unpriced: 0 });
    expect(await measured('b')).toEqual({ at: seconds(ago(5000), ago(5000), ago(5000)), markets: 1, unpriced: 0 });
  });

  it('counts a market without a price apart', async () => {
    await pricedMarket('a', ago(10), ago(10));
    await aStoredMarket(test.db, { venue: 'a', status: 'open' });
    expect(await measured('a')).toEqual({ at: seconds(ago(10), ago(10), ago(10)), markets: 2, unpriced: 1 });
  });

  it('ignores markets that are not open', async () => {
    await pricedMarket('a', ago(10), ago(10));
    for (const status of ['halted', 'closed', 'settled'] as const) {
      const { outcomes } = await aStoredMarket(test.db, { venue: 'a', status });
      await aStoredPrice(test.db, outcomes[0]?.tokenId ?? 0n, { price: '0.5', asOf: ago(9000) });
    }
    expect(await measured('a')).toEqual({ at: seconds(ago(10), ago(10), ago(10)), markets: 1, unpriced: 0 });
  });

  it('uses the confirmation of an unchanged price', async () => {
    const tokenId = await pricedMarket('a', ago(900), ago(900));
    await confirmPrices(test.db, [{ tokenId, asOfMs: ago(7).getTime(), storedAsOf: ago(900) }]);
    expect(await measured('a')).toEqual({ at: seconds(ago(7), ago(7), ago(7)), markets: 1, unpriced: 0 });
  });

  it('stores no ages for a venue without a price, and no negative age', async () => {
    await pricedMarket('a', ago(-3600), ago(-3600));
    const [a, b] = await measureFreshness(test.db, ['a', 'b']);
    expect(a).toMatchObject({ p50Ms: 0n, p99Ms: 0n, maxMs: 0n });
    expect(b).toMatchObject({ markets: 0, unpriced: 0, p50Ms: null, p99Ms: null, maxMs: null });
  });

  it('replaces the last measurement', async () => {
    await measureFreshness(test.db, ['a']);
    await pricedMarket('a', ago(10), ago(10));
    expect(await measured('a')).toMatchObject({ markets: 1 });
  });
});
