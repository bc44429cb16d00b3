import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { VISITOR } from '../../../../api/context.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice, storedCandles, storedSnapshots } from '../../../factories/stored-series.ts';
import { type ConfirmedJournal, confirmJournal } from '../../../support/journal.ts';
import { ofType, openSse } from '../../../support/sse.ts';
import { startTestApi, type TestApi, useTestApi } from '../api-harness.ts';
import { AS_BROWSER } from '../ops/ops-client.ts';
import { signIn } from './console-client.ts';

const MARKET_ID = '0x5157';
const SERIES = '/console/public/series.json';
const STREAM = '/console/public/stream';
const MAX_VISITORS = 2;

async function aPublicMarket(api: TestApi): Promise<TestMarket> {
  const market = await aStoredMarket(api.db, { marketId: MARKET_ID, title: 'Will <b>hail</b> fall & melt?' });
  const [yes] = market.outcomes;
  if (!yes) throw new TypeError('the market has outcomes');
  const hour = Math.floor(Date.now() / 3_600_000) * 3_600;
  const points = Array.from({ length: 26 }, (_, n) => ({ ts: hour - (25 - n) * 3_600, price: '0.3' }));
  await storedSnapshots(api.db, yes.tokenId, points);
  await aStoredPrice(api.db, yes.tokenId, { price: '0.345', asOf: new Date() });
  await storedCandles(api.db, yes.tokenId, 300, [{ bucket: hour - 300, close: '0.3456' }]);
  return market;
}

const start = (api: TestApi) => api.call('/', { headers: AS_BROWSER, redirect: 'manual' });
const statusOf = async (api: TestApi, path: string) =>
  (await api.call(path, { headers: { Accept: 'application/json' }, redirect: 'manual' })).status;

describe('without CONSOLE_PUBLIC_MARKET', () => {
  const api = useTestApi({ console: {}, now: Date.now });
  beforeAll(() => aPublicMarket(api));

  it('the start page shows no market, and its data needs a session', async () => {
    const { status, text } = await start(api);
    expect(status).toBe(200);
    expect(text).not.toContain('hail');
    expect(text).not.toContain('<script');
    expect(await statusOf(api, SERIES)).toBe(401);
    expect(await statusOf(api, STREAM)).toBe(401);
  });
});

describe('with a public market of three outcomes', () => {
  const api = useTestApi({
    console: { publicMarket: { venue: 'polymarket', marketId: MARKET_ID } },
    now: Date.now,
  });

  it('the start page shows the leader, and its data is that of the outcome on the page', async () => {
    const { outcomes } = await aStoredMarket(api.db, { marketId: MARKET_ID, labels: ['Ada', 'Bob', 'Cyd'] });
    for (const [at, price] of ['0.2', '0.7', '0.1'].entries()) {
      await aStoredPrice(api.db, outcomes[at]?.tokenId ?? 0n, { price, asOf: new Date() });
    }
    const { text } = await start(api);
    expect(text).toContain(`data-outcome="${outcomes[1]?.outcomeId}"`);
    const lastOf = async (outcomeId: string) => {
      const answer = await api.call(`${SERIES}?${new URLSearchParams({ outcome: outcomeId })}`, { redirect: 'manual' });
      return (JSON.parse(answer.text) as { line: { value: number }[] }).line.at(-1)?.value;
    };
    expect(await lastOf(outcomes[1]?.outcomeId ?? '')).toBe(0.7);
    expect(await lastOf(outcomes[2]?.outcomeId ?? '')).toBe(0.1);
    expect(await statusOf(api, `${SERIES}?outcome=nothing`)).toBe(400);
  });
});

describe('with CONSOLE_PUBLIC_MARKET', () => {
  let api: TestApi;
  let journal: ConfirmedJournal;
  let market: TestMarket;
  beforeAll(async () => {
    const publicMarket = { venue: 'polymarket', marketId: MARKET_ID };
    const limits = { maxConnections: 10, subscriptionsPerAccount: 10, messagesPerSecond: 0 };
    api = await startTestApi(
      { console: { publicMarket }, now: Date.now },
      { streams: { limits: { ...limits, connectionsPerAccount: MAX_VISITORS } } },
    );
    journal = confirmJournal(api.db);
  });
  afterAll(async () => {
    await journal?.stop();
    await api?.close();
  });

  it('the start page has no market while the market is not stored, and shows it afterwards', async () => {
    const before = await start(api);
    expect([before.status, before.text.includes('data-market')]).toEqual([200, false]);
    expect(await statusOf(api, SERIES)).toBe(404);
    expect(await statusOf(api, STREAM)).toBe(404);
    market = await aPublicMarket(api);
    const { status, text } = await start(api);
    expect(status).toBe(200);
    expect(text).toContain('Will &#60;b&#62;hail&#60;/b&#62; fall &#38; melt?');
    expect(text).toContain('Polymarket');
    expect(text).toContain('34.5 %');
    expect(text).toContain('+4.5 pt');
    expect(text).toContain('<svg class="line-chart"');
    expect(text).toMatch(/The last 1 candles of 5m as a table.*0\.3456/s);
    expect(text).toContain('name="key"');
  });

  it('the start page keeps the market when the key of the sign-in is wrong', async () => {
    const { status, text } = await api.call('/sign-in', {
      method: 'POST',
      headers: { ...AS_BROWSER, Origin: api.url },
      body: new URLSearchParams({ key: 'wrong' }),
    });
    expect(status).toBe(403);
    expect(text).toContain('34.5 %');
  });

  it('the data of the chart are those of a session', async () => {
    // Both answers are of one moment: the line has a further value for every five minutes.
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() });
    try {
      const own = await (await signIn(api)).get(`/console/data/markets/polymarket/${MARKET_ID}/series.json`);
      const { status, text } = await api.call(SERIES, { headers: { Accept: 'application/json' } });
      expect(status).toBe(200);
      const values = (json: string) =>
        (JSON.parse(json) as { line: { value: number }[] }).line.map(({ value }) => value);
      expect(values(text)).toEqual(values(own.text));
    } finally {
      vi.useRealTimers();
    }
  });

  it('a visitor reads no other market, channel or parameter', async () => {
    await aStoredMarket(api.db, { marketId: '0x07her' });
    for (const query of ['market_ids=0x07her', 'channels=books', 'outcome=x', 'range=all', 'snapshot=false']) {
      expect(await statusOf(api, `${SERIES}?${query}`)).toBe(400);
      expect(await statusOf(api, `${STREAM}?${query}`)).toBe(400);
    }
    expect(await statusOf(api, `${SERIES}?cursor=x`)).toBe(400);
    expect(await statusOf(api, `${STREAM}?cursor=x`)).toBe(400);
    for (const path of [
      `/console/stream/polymarket?market_ids=${MARKET_ID}`,
      '/console/stream/events',
      `/console/data/markets/polymarket/${MARKET_ID}/tape.json`,
      '/console/public/tape.json',
      `/v1/polymarket/markets/${MARKET_ID}`,
    ]) {
      expect([path, await statusOf(api, path)]).toEqual([path, 401]);
    }
    expect(await statusOf(api, '/console/public/series.json/0x07her')).toBe(401);
  });

  it('the stream sends changes of this market only, resumes behind a cursor and keeps visitors within a limit', async () => {
    const [yes] = market.outcomes;
    const other = { venue: 'polymarket', marketId: '0x07her', outcomeId: '0x07her:yes' };
    const own = { venue: 'polymarket', marketId: MARKET_ID, outcomeId: yes?.outcomeId ?? '' };
    const priceOf = (of: typeof own, price: string) =>
      ({ ...of, kind: 'price', body: { as_of: Math.floor(Date.now() / 1_000), price } }) as const;
    const exempted = vi.spyOn(api.streams, 'exempt');
    const stream = await openSse(`${api.url}${STREAM}`, {});
    expect(stream.status).toBe(200);
    await stream.next(ofType('snapshot'));
    const { data: beat } = await stream.next(ofType('heartbeat'));
    expect(beat.data['interval_seconds']).toBeLessThanOrEqual(7);
    await journal.append([priceOf(other, '0.9'), priceOf(own, '0.5')]);
    const first = await stream.next(ofType('price'));
    expect(first.data).toMatchObject({ market_id: MARKET_ID, data: { price: 0.5 } });
    await journal.append([priceOf(own, '0.6')]);
    await stream.next(ofType('price'));

    const resumed = await openSse(`${api.url}${STREAM}`, { 'Last-Event-ID': first.id });
    expect((await resumed.next(ofType('price'))).data.data).toMatchObject({ price: 0.6 });
    expect(api.streams.usageOf(VISITOR.accountId).connections).toBe(MAX_VISITORS);
    const refused = await api.call(STREAM, { headers: { Accept: 'text/event-stream' } });
    expect(refused.status).toBe(429);
    expect(refused.body.error.message).toContain('sign in with a key');
    expect(refused.headers.get('Retry-After')).toBe('5');

    // The bound of connections per address counts the streams of visitors.
    expect(exempted).not.toHaveBeenCalled();
    const account = await signIn(api);
    expect(api.streams.usageOf(account.accountId).connections).toBe(0);
    const ofAccount = await openSse(`${api.url}/console/stream/polymarket`, { cookie: account.cookie });
    expect(ofAccount.status).toBe(200);
    expect(exempted).toHaveBeenCalledOnce();
    for (const each of [stream, resumed, ofAccount]) each.close();
  });
});

describe('with a database that does not answer', () => {
  it('the start page still has the sign-in', async () => {
    const publicMarket = { venue: 'polymarket', marketId: MARKET_ID };
    const api = await startTestApi({ console: { publicMarket }, now: Date.now }, { behindProxy: true });
    try {
      await api.proxy?.cut();
      const { status, text } = await start(api);
      expect(status).toBe(200);
      expect(text).toContain('name="key"');
    } finally {
      await api.close();
    }
  });
});
