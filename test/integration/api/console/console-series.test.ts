import { expect, it } from 'vitest';
import type { Scope } from '../../../../src/domain/values/api-key.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice, storedCandles, storedSnapshots } from '../../../factories/stored-series.ts';
import { useTestApi } from '../api-harness.ts';
import { signIn } from './console-client.ts';

const api = useTestApi({ console: {} });

const FIVE_MINUTES = 300;

it('the line of a market has closes of trades until the first quoted price, and ends with the present price', async () => {
  const browser = await signIn(api);
  const { outcomes, marketId } = await aStoredMarket(api.db);
  const [yes] = outcomes;
  if (!yes) throw new TypeError('the market has outcomes');
  // Read once: a bucket may end between two statements.
  const present = Math.floor(Date.now() / 1_000 / FIVE_MINUTES);
  const bucket = (ago: number) => (present - ago) * FIVE_MINUTES;
  await storedCandles(api.db, yes.tokenId, FIVE_MINUTES, [
    { bucket: bucket(6), close: '0.1' },
    { bucket: bucket(5), close: '0.2' },
    { bucket: bucket(3), close: '0.9' },
  ]);
  await storedSnapshots(api.db, yes.tokenId, [
    { ts: bucket(4), price: '0.3' },
    { ts: bucket(3), price: '0.4' },
  ]);
  await aStoredPrice(api.db, yes.tokenId, { price: '0.5', asOf: new Date() });
  const { body } = await browser.get(`/console/data/markets/polymarket/${marketId}/series.json?range=1d`);
  const { line } = body as unknown as { line: { value: number }[] };
  expect(line.slice(0, 3).map(({ value }) => value)).toEqual([0.1, 0.2, 0.3]);
  expect(line.map(({ value }) => value)).not.toContain(0.9);
  expect(line.at(-1)).toMatchObject({ value: 0.5 });
});

it('the market of a new event is named by its token, for keys with the scope of webhooks', async () => {
  const { outcomes, marketId } = await aStoredMarket(api.db);
  const [yes] = outcomes;
  if (!yes) throw new TypeError('the market has outcomes');
  const nameOf = async (scope: Scope, token: string) =>
    (await signIn(api, [scope])).get(`/console/data/outcome.json?${new URLSearchParams({ token })}`);
  const { status, body } = await nameOf('webhooks', yes.outcomeId);
  const { title, path } = body as unknown as { title: string; path: string };
  expect([status, title.length > 0]).toEqual([200, true]);
  expect(path).toContain(`/${marketId}?outcome=${encodeURIComponent(yes.outcomeId)}`);
  expect((await nameOf('webhooks', 'unknown')).body).toEqual({});
  expect((await nameOf('markets:read', yes.outcomeId)).status).toBe(403);
});
