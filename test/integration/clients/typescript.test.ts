import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ArchiveFolder } from '../../../api/reads/archive-folder.ts';
import {
  createClient,
  OddswireApiError,
  type OddswireClient,
  verifyWebhook,
} from '../../../clients/typescript/src/index.ts';
import { KEY_OF_PATH } from '../../../clients/typescript/src/schema.ts';
import { type ReceivedRequest, type Receiver, startReceiver } from '../../../sim/receiver.ts';
import { createLogger } from '../../../src/observe/logger.ts';
import { createBacktest } from '../../../src/store/alerts/backtest/jobs.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { createSender, type Sender } from '../../../src/webhooks/sender.ts';
import { deliverWebhook } from '../../../workers/jobs/deliver-webhook.ts';
import { anArchivedDay, anArchiveFolder } from '../../factories/archive.ts';
import { aDelivery } from '../../factories/deliveries.ts';
import { aStoredMarket, type TestMarket } from '../../factories/stored-market.ts';
import { storedTimeline } from '../../factories/stored-resolution.ts';
import {
  aStoredBook,
  aStoredPrice,
  storedCandles,
  storedSnapshots,
  storedTrades,
} from '../../factories/stored-series.ts';
import { allowing } from '../../support/address-rules.ts';
import { GUARD_MS } from '../../support/eventually.ts';
import { forTests } from '../../support/for-tests.ts';
import { startTestApi, type TestApi } from '../api/api-harness.ts';
import { jobContext, testConfig } from '../workers/worker-harness.ts';

const rules = allowing('127.0.0.0/8');
const HOUR = 1_767_319_200;
const MARKETS = 23;
const TRADES = 31;
const EVENT = 'weather in/may';
const WALLET = '0x56687bf447db6ffa42ffe2204a05edaa20f55839';
const EXACT = '12345678901234567890.123456789012345678';
const PK = sql('test_client_webhook_pk', 'SELECT pk FROM webhook_subscription WHERE id = $1');

/** Pages and files for browsers. */
const NOT_FOR_PROGRAMS = ['GET /docs', 'GET /docs/{file}'];

const log = createLogger({ process: 'test', level: 'silent' });
const folder = forTests(anArchiveFolder, ({ remove }) => remove());
let api: TestApi;
let receiver: Receiver;
let sender: Sender;
let client: OddswireClient;
let accountId: bigint;
let apiKey: string;
let market: TestMarket;
let requested: string[] = [];

/** The operation of a request. */
function operationOf({ method, url }: Request): string {
  const { pathname } = new URL(url);
  const paths = Object.keys(KEY_OF_PATH).sort((a, b) => a.split('{').length - b.split('{').length);
  const path = paths.find((one) => new RegExp(`^${one.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(pathname));
  return `${method} ${path}`;
}

const counted = (request: Request) => {
  requested.push(operationOf(request));
  return fetch(request);
};

beforeAll(async () => {
  receiver = await startReceiver();
  sender = createSender({ version: 'test', rules, extraCaPem: receiver.caPem });
  api = await startTestApi({ addressRules: rules, archive: new ArchiveFolder(folder.dir, log) });
  const account = await api.client();
  accountId = account.accountId;
  apiKey = account.key;
  client = createClient({ baseUrl: api.url, apiKey, fetch: counted });

  for (let number = 1; number < MARKETS; number += 1)
    await aStoredMarket(api.db, { title: `Rain on day ${number}?`, ...(number > 15 && { eventId: `rain-${number}` }) });
  const event = { eventId: EVENT, eventTitle: 'Weather in May', siblingLabel: 'Snow' };
  market = await aStoredMarket(api.db, {
    title: 'Will it snow?',
    resolutionCriteria: 'By the gauge.',
    stats: [EXACT, '0.10', null],
    ...event,
  });
  const tokenId = market.outcomes[0]?.tokenId ?? 0n;
  const at = (seconds: number) => new Date((HOUR + seconds) * 1_000);
  await aStoredPrice(api.db, tokenId, { price: '0.62', bid: '0.61', ask: '0.63', asOf: at(0) });
  await aStoredBook(api.db, tokenId, { asOf: new Date(), bids: [['0.61', '10']], asks: [['0.63', '5', 2]] });
  await storedCandles(api.db, tokenId, 3_600, [{ bucket: HOUR, close: '0.6' }]);
  await storedSnapshots(api.db, tokenId, [{ ts: HOUR, price: '0.61' }]);
  const trades = Array.from({ length: TRADES }, (_, index) => ({ tokenId, at: at(index), tradeId: `t${index}` }));
  await storedTrades(api.db, trades);
  await storedTimeline(api.db, market, [
    { transition: 'proposed', state: 'proposed', round: 1, receivedAt: at(0) },
    { transition: 'disputed', state: 'disputed', round: 1, receivedAt: at(60) },
    {
      transition: 'resolved',
      state: 'resolved',
      at: at(90),
      receivedAt: at(120),
      payouts: ['0.3333333333', '0.6666666667'],
    },
  ]);
});
afterAll(async () => {
  await sender.close();
  await receiver.close();
  await api.close();
});

/** Creates a webhook of the receiver. Returns its secret and its database key. */
async function aWebhook(secret?: string) {
  const made = await client.webhooks.create({
    url: `${receiver.url}/hook`,
    events: ['price_alert'],
    ...(secret !== undefined && { secret }),
  });
  const [row] = await api.db.query<{ pk: bigint }>(PK, [made.id]);
  return { ...made, pk: row?.pk ?? 0n };
}

/** Sends due deliveries as a worker does. Returns the received request of this event. */
async function delivered(pk: bigint, eventId: string): Promise<ReceivedRequest> {
  const { db, databaseUrl, secretBox } = api;
  const context = jobContext({ db, config: testConfig(databaseUrl), sender, secretBox });
  await deliverWebhook.run({ subscriptionPk: String(pk) }, context);
  return receiver.waitFor(({ headers }) => headers['webhook-id'] === eventId, GUARD_MS);
}

async function thrownBy(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => expect.unreachable('the call returned'),
    (error: unknown) => error,
  );
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const seen: Item[] = [];
  for await (const item of items) seen.push(item);
  return seen;
}

it('the client has a method for every operation', async () => {
  requested = [];
  const market_id = market.marketId;
  const one = { venue: 'polymarket', market_id };
  const range = { start: HOUR, end: new Date((HOUR + 3_600) * 1_000) };

  expect((await client.venues.list()).data).toMatchObject([{ venue: 'polymarket', currency: 'USD' }]);
  expect((await client.markets.list({ q: 'snow' })).data).toMatchObject([{ market_id, volume_24h: 0.1 }]);
  expect((await client.markets.get(one)).data).toMatchObject({ title: 'Will it snow?', volume: Number(EXACT) });
  const siblings = await client.markets.list({ event_id: EVENT });
  expect(siblings.data).toMatchObject([{ market_id, event_title: 'Weather in May', sibling_label: 'Snow' }]);
  expect((await client.events.list({ q: 'weather', status: 'open' })).data).toMatchObject([{ event_id: EVENT }]);
  const event = await client.events.get({ venue: 'polymarket', event_id: EVENT, limit: 1 });
  expect(event.data).toMatchObject({ market_count: 1, volume: Number(EXACT), markets: [{ market_id }] });
  expect((await client.markets.prices({ market_id })).data.outcomes[0]).toMatchObject({ price: 0.62, best_ask: 0.63 });
  expect((await client.markets.rules({ market_id, from: 1, to: 1 })).data).toMatchObject({ text: 'By the gauge.' });
  const many = await client.markets.manyPrices({ market_ids: [market_id, 'no-such'] });
  expect([many.data.length, many.meta.missing]).toEqual([1, ['no-such']]);
  expect((await client.markets.orderbook(one)).data).toMatchObject({ best_bid: 0.61, asks: [{ size: 5, count: 2 }] });
  const filled = await client.markets.executable({ ...one, side: 'buy', size: '2' });
  expect(filled).toMatchObject({ data: { filled_notional: 1.26, fee_reason: 'not_read' }, meta: { live: true } });
  expect((await client.markets.fees(one)).data).toMatchObject({ fee: null, reason: 'not_read', changes: [] });
  const outcome_id = market.outcomes[0]?.outcomeId ?? '';
  const fills = await client.markets.manyExecutable({ outcome_ids: [outcome_id, 'no'], side: 'sell', notional: '6.1' });
  expect(fills).toMatchObject({ data: [{ filled_size: 10, venue: 'polymarket' }], meta: { missing: ['no'] } });
  const [buy, sell] = [
    { buy_venue: 'all', buy_outcome_id: outcome_id },
    { sell_venue: 'all', sell_outcome_id: outcome_id },
  ];
  expect((await client.markets.compare({ ...buy, ...sell, size: '1' })).data).toMatchObject({ net: null });
  const { data: result } = await client.markets.resolution(one);
  expect(result).toMatchObject({ state: 'resolved', payouts: [{ payout: 0.3333333333 }, { payout: 0.6666666667 }] });
  expect(result.timeline.map(({ transition }) => transition)).toEqual(['proposed', 'disputed', 'resolved']);
  const disputes = await client.resolutions.list({ venue: 'polymarket', state: ['disputed'] });
  expect(disputes).toMatchObject({ data: [{ market_id, round: 1 }], meta: { next_cursor: null } });
  const candles = await client.candles.list({ ...one, ...range, interval: '1h' });
  expect(candles).toMatchObject({ data: [{ timestamp: HOUR, close: 0.6 }], meta: { interval: '1h' } });
  expect((await client.volume.list({ ...one, ...range })).data).toMatchObject([{ timestamp: HOUR, volume: 10 }]);
  expect((await client.snapshots.list({ ...one, ...range })).data).toMatchObject([{ price: 0.61 }]);
  expect((await client.trades.list({ ...one, limit: 2 })).data.map(({ trade_id }) => trade_id)).toEqual(['t30', 't29']);
  const hours = await client.coverage.list({ ...one, start: new Date(HOUR * 1000), end: HOUR + 3_600 });
  expect(hours.data).toEqual([{ venue: 'polymarket', start: HOUR, class: 'unknown', reason: 'not_observed' }]);
  expect(
    await all(client.coverage.iterate({ venue: 'polymarket', start: HOUR, end: HOUR + 7_200 }, { pageSize: 1 })),
  ).toHaveLength(2);

  const archived = await anArchivedDay(api.db, folder.dir);
  expect((await client.archive.list({ kind: ['trades'] })).data).toMatchObject([{ file: archived.file }]);
  expect(await all(client.archive.iterate({ venue: ['manifold'] }))).toEqual([]);
  const whole = await client.archive.download({ file: archived.file });
  expect(Buffer.from(await whole.arrayBuffer()).equals(archived.content)).toBe(true);
  const rest = await client.archive.download({ file: archived.file, start: 999, sha256: archived.sha256 });
  expect([rest.status, (await rest.arrayBuffer()).byteLength]).toEqual([206, 1]);

  const { id, pk } = await aWebhook();
  expect((await client.webhooks.list()).data.map((hook) => hook.id)).toContain(id);
  expect(await client.webhooks.update(id, { events: ['transaction', 'price_alert'] })).toMatchObject({ id });
  expect(await client.webhooks.get(id)).toMatchObject({ events: ['transaction', 'price_alert'], status: 'active' });
  expect(await client.webhooks.test(id)).toMatchObject({ eventType: 'test', status: 'pending' });
  expect((await client.webhooks.rotateSecret(id)).secret).toMatch(/^whsec_/);

  const failed = await aDelivery(api.db, { accountId, subscriptionPk: pk, status: 'failed' });
  const since = new Date(Date.now() - 3_600_000);
  const listed = await client.deliveries.list(id, { status: 'failed', since });
  expect(listed).toMatchObject({ data: [{ id: failed.id }], meta: { next_cursor: null } });
  expect((await client.deliveries.listAll({ webhookId: id, status: 'failed', since })).data).toMatchObject([
    { id: failed.id, webhookId: id },
  ]);
  expect(await client.deliveries.get(id, failed.id)).toMatchObject({ attemptLog: [], payload: { id: failed.eventId } });
  expect(await client.deliveries.retry(id, failed.id)).toMatchObject({ id: failed.id, status: 'pending' });
  expect(await client.deliveries.recover(id, { since })).toEqual({ recovered: expect.any(Number) });
  expect((await client.deliveries.listEvents({ undelivered: true })).data).toEqual([]);

  const alert = await client.alerts.create({ tokenMint: 'mint', condition: 'above', price: 0.6, webhookId: id });
  expect(await client.alerts.get(alert.id)).toEqual(alert);
  expect((await client.alerts.list()).data).toEqual([alert]);
  expect(await client.alerts.update(alert.id, { note: 'a note' })).toEqual({ ...alert, note: 'a note' });
  const made = await client.alerts.createMany({ alerts: [{ tokenMint: 'mint', condition: 'below', price: 0.1 }] });
  const ids = made.map((item) => item.alert?.id ?? '');
  expect(await client.alerts.deleteMany({ ids })).toEqual([{ id: ids[0], deleted: true }]);
  expect(await client.alerts.delete(alert.id)).toEqual({ id: alert.id, deleted: true });

  const past = { start: HOUR, end: new Date().toISOString() };
  const tested = await client.alerts.backtest({
    alert: { tokenMint: 'mint', condition: 'above', price: 0.6 },
    ...past,
  });
  expect(tested).toMatchObject({ firings: [], observations: 0, approximate: false });
  const request = { tokenMint: 'mint', scopeKey: null, condition: 'status', startMs: 0, endMs: 1 } as const;
  const job = await api.db.transaction((tx) => createBacktest(tx, accountId, request));
  expect(await client.alerts.getBacktest(job?.id ?? '')).toMatchObject({ id: job?.id, state: 'queued', progress: 0 });

  const wallet = await client.wallets.create({ venue: 'polymarket', address: WALLET, label: 'research' });
  expect(await client.wallets.get(wallet.id)).toEqual(wallet);
  expect((await client.wallets.list()).data).toEqual([wallet]);
  expect((await client.wallets.listBalances(wallet.id)).data).toEqual([]);
  expect((await client.wallets.listEvents(wallet.id, { type: 'transaction' })).data).toEqual([]);
  expect(await client.wallets.delete(wallet.id)).toEqual({ id: wallet.id, deleted: true });
  const watched = await client.watchlist.add(one);
  expect(watched).toMatchObject({ market_id, title: 'Will it snow?', added_at: expect.any(Number) });
  expect((await client.watchlist.list()).data).toEqual([watched]);
  expect(await all(client.watchlist.iterate())).toEqual([watched]);
  expect(await client.watchlist.remove(one)).toEqual({ ...one, deleted: true });
  const { key, ...apiKey } = await client.keys.create({ name: 'second', scopes: ['alerts'] });
  expect(key).toContain(`ow_live_${apiKey.id}_`);
  expect(await client.keys.get(apiKey.id)).toEqual(apiKey);
  expect((await client.keys.list()).data).toContainEqual(apiKey);
  expect(await client.keys.revoke(apiKey.id)).toMatchObject({ id: apiKey.id, status: 'revoked' });
  expect((await all(client.keys.iterate({ status: 'revoked' }, { pageSize: 1 }))).map(({ id }) => id)).toEqual([
    apiKey.id,
  ]);
  expect(await client.webhooks.delete(id)).toEqual({ id, deleted: true, alertsChanged: 0 });

  expect(await client.health.live()).toEqual({ status: 'live' });
  expect(await client.health.ready()).toEqual({ status: 'ready' });
  expect(await client.asyncApi()).toMatchObject({ asyncapi: '3.1.0' });
  for (const stream of [client.stream(), client.eventStream()]) {
    expect((await stream.next()).done).toBe(false);
    await stream.return();
  }
  const document = (await client.openApi()) as { paths: Record<string, Record<string, unknown>> };
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect([...new Set([...requested, ...NOT_FOR_PROGRAMS])].sort()).toEqual(operations.sort());
});

describe('an iterator', () => {
  it.each([1, 5, MARKETS, 1_000])(
    'returns each market once and stops at the end with pages of %i',
    async (pageSize) => {
      const whole = (await client.markets.list({ limit: 1_000 })).data.map(({ market_id }) => market_id);
      expect(whole.length).toBe(MARKETS);
      requested = [];
      const walked = await all(client.markets.iterate({}, { pageSize }));
      expect(walked.map(({ market_id }) => market_id)).toEqual(whole);
      expect(requested.length).toBe(Math.ceil(MARKETS / pageSize));
    },
  );

  it('keeps the filters of the first page', async () => {
    const walked = await all(
      client.trades.iterate({ market_id: market.marketId, direction: 'asc', start: HOUR + 10 }, { pageSize: 7 }),
    );
    expect(walked.map(({ trade_id }) => trade_id)).toEqual(
      Array.from({ length: TRADES - 10 }, (_, index) => `t${index + 10}`),
    );
    const found = await all(client.markets.iterate({ q: 'rain' }, { pageSize: 10 }));
    expect(new Set(found.map(({ market_id }) => market_id)).size).toBe(MARKETS - 1);
  });

  it.each([1, 3, 1_000])('returns each event and each market of an event once with pages of %i', async (pageSize) => {
    const { data } = await client.events.list({ limit: 1_000 });
    expect(data.length).toBe(MARKETS - 15);
    const walked = await all(client.events.iterate({ status: 'open' }, { pageSize }));
    expect(walked.map(({ event_id }) => event_id)).toEqual(data.map(({ event_id }) => event_id));
    const markets = await all(client.markets.iterate({ event_id: EVENT }, { pageSize }));
    expect(markets.map(({ market_id }) => market_id)).toEqual([market.marketId]);
  });

  it.each([1, 2, 1_000])('returns the changes of results since a moment once with pages of %i', async (pageSize) => {
    const since = new Date((HOUR + 60) * 1_000);
    const walked = await all(client.resolutions.iterate({ since }, { pageSize }));
    expect(walked.map(({ transition, at }) => [transition, at])).toEqual([
      ['disputed', undefined],
      ['resolved', HOUR + 90],
    ]);
    const { meta } = await client.resolutions.list();
    expect((await client.resolutions.list({ cursor: meta.resume_cursor })).data).toEqual([]);
  });

  it('returns all resources of an account', async () => {
    const mints = Array.from({ length: 5 }, (_, index) => `walked-${index}`);
    for (const tokenMint of mints) await client.alerts.create({ tokenMint, condition: 'below', price: 0.1 });
    const alerts = await all(client.alerts.iterate({ pageSize: 2 }));
    expect(alerts.map(({ tokenMint }) => tokenMint)).toEqual(mints.toReversed());
    const third = alerts[2] as (typeof alerts)[number];
    await client.alerts.update(third.id, { status: 'paused' });
    const filtered = async (...args: Parameters<typeof client.alerts.iterate>) =>
      (await all(client.alerts.iterate(...args))).map(({ tokenMint }) => tokenMint);
    expect(await filtered({ status: ['paused'] }, { pageSize: 1 })).toEqual([third.tokenMint]);
    expect(await filtered({ status: ['active'], condition: 'below', pageSize: 1 })).toEqual(
      mints.toReversed().filter((mint) => mint !== third.tokenMint),
    );
    const hook = await aWebhook();
    for (let index = 0; index < 3; index += 1) await client.webhooks.test(hook.id);
    const kept = await all(client.deliveries.iterate(hook.id, { eventType: 'test' }, { pageSize: 2 }));
    const query = { webhookId: hook.id, eventType: 'test' } as const;
    const ofAll = await all(client.deliveries.iterateAll(query, { pageSize: 2 }));
    expect(ofAll.map(({ id }) => id)).toEqual(kept.map(({ id }) => id));
    expect(new Set(kept.map(({ id }) => id)).size).toBe(3);
    expect((await all(client.webhooks.iterate({ pageSize: 1 }))).map(({ id }) => id)).toEqual([hook.id]);
    expect(await all(client.wallets.iterate())).toEqual([]);
  });

  it('fetches only the needed pages, and ends with the signal', async () => {
    requested = [];
    for await (const first of client.markets.iterate({}, { pageSize: 5 })) {
      expect(first.venue).toBe('polymarket');
      break;
    }
    expect(requested.length).toBe(1);
    const controller = new AbortController();
    const reason = new Error('enough');
    let seen = 0;
    const walk = async () => {
      for await (const { venue } of client.markets.iterate({}, { pageSize: 5, signal: controller.signal })) {
        expect(venue).toBe('polymarket');
        seen += 1;
        if (seen === 7) controller.abort(reason);
      }
    };
    expect(await thrownBy(walk())).toBe(reason);
    expect([seen, requested.length]).toEqual([7, 3]);
  });
});

describe('an error', () => {
  it('has the status, code, message and details of the answer', async () => {
    const missing = await thrownBy(client.markets.get({ market_id: 'no-such' }, { requestId: 'mine-1' }));
    expect(missing).toBeInstanceOf(OddswireApiError);
    expect(missing).toMatchObject({ status: 404, code: 'market_not_found', requestId: 'mine-1', retryable: false });
    const unknown = await thrownBy(client.events.get({ event_id: 'no-such' }));
    expect(unknown).toMatchObject({ status: 404, code: 'event_not_found' });
    const wrong = await thrownBy(client.markets.list({ limit: 5_000 }));
    expect(wrong).toMatchObject({ status: 400, code: 'invalid_request', details: [{ path: 'limit' }] });
    const stranger = createClient({ baseUrl: api.url, apiKey: 'ow_live_no_key' });
    expect(await thrownBy(stranger.alerts.list())).toMatchObject({ status: 401, code: 'unauthorized' });
  });

  it('is not thrown when only the answer is lost, and the creation runs once', async () => {
    let isLost = false;
    const flaky = createClient({
      baseUrl: api.url,
      apiKey,
      fetch: async (request) => {
        const response = await fetch(request);
        if (isLost) return response;
        isLost = true;
        await response.text();
        throw new TypeError('terminated');
      },
    });
    const made = await flaky.alerts.create({ tokenMint: 'lost-answer', condition: 'above', price: 2 });
    const alerts = await all(client.alerts.iterate());
    expect(alerts.filter(({ tokenMint }) => tokenMint === 'lost-answer')).toEqual([made]);
  });

  it('is a connection error when no server listens', async () => {
    const nowhere = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey, retry: false });
    expect(await thrownBy(nowhere.health.live())).toMatchObject({ code: 'connection_failed' });
  });
});

it('the client returns every digit with decimals: string', async () => {
  const exact = createClient({ baseUrl: api.url, apiKey, decimals: 'string' });
  const { data } = await exact.markets.get({ market_id: market.marketId });
  expect([data.volume, data.volume_24h, typeof data.updated_at]).toEqual([EXACT, '0.1', 'number']);
  const { data: book } = await exact.markets.orderbook({ market_id: market.marketId });
  expect(book.asks).toEqual([{ price: '0.63', size: '5', count: 2 }]);
  const { data: result } = await exact.markets.resolution({ market_id: market.marketId });
  expect(result.payouts?.map(({ payout }) => payout)).toEqual(['0.3333333333', '0.6666666667']);
});

describe('a webhook request', () => {
  it.each([
    ['a generated secret', undefined],
    ['a secret of the client', 'correct horse battery staple'],
  ])('is verified with %s, and with either secret during a rotation', async (_name, given) => {
    const { id, pk, secret } = await aWebhook(given);
    const sent = await client.webhooks.test(id, { eventType: 'price_alert' });
    const { body: payload, headers } = await delivered(pk, sent.eventId);
    const event = verifyWebhook({ payload, headers, secret });
    expect(event).toMatchObject({ id: sent.eventId, type: 'price_alert', data: { condition: 'above' } });
    expect(() => verifyWebhook({ payload, headers, secret: 'quite another secret' })).toThrow('webhook-signature');

    const { secret: next } = await client.webhooks.rotateSecret(id);
    const later = await client.webhooks.test(id);
    const rotated = await delivered(pk, later.eventId);
    for (const known of [secret, next, [secret, next]]) {
      const request = { payload: rotated.body, headers: rotated.headers, secret: known };
      expect(verifyWebhook(request)).toMatchObject({ type: 'test', data: { webhookId: id } });
    }
    expect(await client.deliveries.get(id, later.id)).toMatchObject({ status: 'delivered', payload: { type: 'test' } });
  });
});
