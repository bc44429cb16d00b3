import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ArchiveFolder } from '../../../../api/reads/archive-folder.ts';
import { VERSION } from '../../../../src/config/version.ts';
import { ALERT_STATUSES } from '../../../../src/domain/alerts/condition.ts';
import { CONDITIONS, type Condition } from '../../../../src/domain/alerts/conditions.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createBacktest } from '../../../../src/store/alerts/backtest/jobs.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anEmptyDay } from '../../../factories/archive.ts';
import { storedCoverage } from '../../../factories/stored-coverage.ts';
import { aStoredMarket, type TestMarket } from '../../../factories/stored-market.ts';
import { storedTimeline } from '../../../factories/stored-resolution.ts';
import { aStoredBook, aStoredPrice, storedCandles, storedTrades } from '../../../factories/stored-series.ts';
import { type Client as ApiClient, useTestApi } from '../api-harness.ts';

const HOUR = 1_767_319_200;
const EXACT = '12345678901234567890.123456789';
const RATE = sql('test_mcp_rate', 'UPDATE account SET rate_per_minute = $2 WHERE id = $1');
const USED = sql('test_mcp_used', 'SELECT count(*)::int AS count FROM alert');

const api = useTestApi();
let account: ApiClient;
let market: TestMarket;
let sibling: TestMarket;
let client: Client;

beforeAll(async () => {
  account = await api.client();
  const event = { eventId: 'weather/may', eventTitle: 'Weather in May' };
  market = await aStoredMarket(api.db, { title: 'Will it snow?', stats: [EXACT, '0.10', null], ...event });
  sibling = await aStoredMarket(api.db, { title: 'Will it rain?', resolutionCriteria: 'Rain in May.', ...event });
  const tokenId = market.outcomes[0]?.tokenId ?? 0n;
  await aStoredPrice(api.db, tokenId, { price: '0.62', bid: '0.61', ask: '0.63', asOf: new Date(HOUR * 1_000) });
  await aStoredPrice(api.db, sibling.outcomes[0]?.tokenId ?? 0n, { price: '0.3', asOf: new Date(HOUR * 1_000) });
  await aStoredBook(api.db, tokenId, { asOf: new Date(), bids: [['0.61', '10']], asks: [['0.63', '5', 2]] });
  await storedCandles(api.db, tokenId, 3_600, [{ bucket: HOUR, close: '0.6' }]);
  const at = (seconds: number) => new Date((HOUR + seconds) * 1_000);
  await storedTrades(
    api.db,
    Array.from({ length: 5 }, (_, index) => ({ tokenId, at: at(index), tradeId: `t${index}` })),
  );
  await storedTimeline(api.db, sibling, [
    { transition: 'proposed', state: 'proposed', round: 1, receivedAt: at(0), reason: 'not_stated' },
    {
      transition: 'resolved',
      state: 'resolved',
      at: at(60),
      receivedAt: at(90),
      payouts: ['0.123456789012345678', '0'],
    },
  ]);
  client = await connected(account.key);
});
afterAll(() => client?.close());

function transportOf(key: string, headers: Record<string, string> = { Authorization: `Bearer ${key}` }): Transport {
  // The types of the SDK are not made for exactOptionalPropertyTypes.
  return new StreamableHTTPClientTransport(new URL(`${api.url}/mcp`), { requestInit: { headers } }) as Transport;
}

async function connected(key: string, headers?: Record<string, string>): Promise<Client> {
  const made = new Client({ name: 'test', version: '1' });
  await made.connect(transportOf(key, headers));
  return made;
}

async function called(name: string, args: Record<string, unknown>, by = client) {
  const result = await by.callTool({ name, arguments: args });
  const [first] = result.content as { type: string; text: string }[];
  return { isError: result.isError === true, text: first?.text ?? '', value: result.structuredContent as never };
}

describe('POST /mcp', () => {
  it('introduces itself, and lists its tools with the schemas of their input', async () => {
    expect(client.getServerVersion()).toMatchObject({ name: 'oddswire', version: VERSION });
    expect(client.getInstructions()).toContain('search_markets');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'search_markets',
      'get_market',
      'get_executable',
      'get_fees',
      'get_resolution',
      'get_rules',
      'get_history',
      'list_alerts',
      'create_alert',
      'delete_alert',
      'backtest_alert',
      'get_coverage',
      'list_archive_files',
    ]);
    for (const { inputSchema, description } of tools) {
      expect(inputSchema).toMatchObject({ type: 'object', properties: expect.any(Object) });
      expect(description).toBeTruthy();
    }
    const readOnly = tools.filter(({ annotations }) => annotations?.readOnlyHint).map(({ name }) => name);
    expect(readOnly).not.toContain('create_alert');
  });

  it('searches markets, and pages through a list', async () => {
    const found = await called('search_markets', { query: 'snow' });
    expect(found.value).toMatchObject({
      markets: [
        {
          market_id: market.marketId,
          status: 'open',
          volume_24h: '0.1',
          prices: [{ outcome_id: market.outcomes[0]?.outcomeId, price: '0.62', best_bid: '0.61' }, {}],
        },
      ],
      next_cursor: null,
    });
    expect(found.text).not.toContain('description');
    const first = await called('search_markets', { limit: 1, venue: 'polymarket' });
    const { next_cursor: cursor, markets } = first.value as { next_cursor: string; markets: { market_id: string }[] };
    const second = await called('search_markets', { limit: 1, venue: 'polymarket', cursor });
    const seen = [...markets, ...(second.value as { markets: { market_id: string }[] }).markets];
    expect(seen.map(({ market_id: id }) => id).sort()).toEqual([market.marketId, sibling.marketId].sort());
  });

  it('reads a market with prices, book, trades, siblings, completeness and its venue, with every digit', async () => {
    const { value, text } = await called('get_market', { market_id: market.marketId });
    expect(value).toMatchObject({
      market: { title: 'Will it snow?', volume: EXACT },
      prices: { outcomes: [{ price: '0.62', best_bid: '0.61' }, {}] },
      orderbook: { bids: [{ price: '0.61' }] },
      completeness: { status: expect.any(String) },
      siblings: [{ market_id: sibling.marketId, prices: [{ price: '0.3' }, {}] }],
      venue: { venue: 'polymarket', healthy: expect.any(Boolean) },
    });
    expect((value as { recent_trades: unknown[] }).recent_trades).toHaveLength(5);
    expect(JSON.parse(text)).toEqual(value);
  });

  it('reads candles and trades with their completeness', async () => {
    const range = { market_id: market.marketId, start: HOUR, end: HOUR + 3_600 };
    expect((await called('get_history', range)).value).toMatchObject({
      interval: '1h',
      candles: [{ timestamp: HOUR, close: '0.6' }],
      omitted: 0,
      completeness: { status: expect.any(String) },
    });
    const trades = await called('get_history', { market_id: market.marketId, series: 'trades', limit: 2 });
    const { next_cursor: cursor } = trades.value as { next_cursor: string };
    expect(trades.value).toMatchObject({ trades: [{ trade_id: 't4' }, { trade_id: 't3' }] });
    const rest = await called('get_history', { market_id: market.marketId, series: 'trades', cursor });
    expect((rest.value as { trades: unknown[] }).trades).toHaveLength(3);
  });

  it('reads the cost of an order with the age of the book, and the fee of a market', async () => {
    const order = { market_id: market.marketId, side: 'buy', size: '2' };
    expect((await called('get_executable', order)).value).toMatchObject({
      filled_notional: '1.26',
      fee: null,
      fee_reason: 'not_read',
      live: true,
      market_status: 'open',
    });
    expect(await called('get_executable', { ...order, notional: '1' })).toMatchObject({ isError: true });
    expect((await called('get_fees', { market_id: market.marketId })).value).toMatchObject({
      fee: null,
      reason: 'not_read',
    });
  });

  it('reads the result of a market with its timeline, and states that there is none', async () => {
    expect((await called('get_resolution', { market_id: sibling.marketId })).value).toMatchObject({
      state: 'resolved',
      payouts: [{ outcome_id: sibling.outcomes[0]?.outcomeId, payout: '0.123456789012345678' }, { payout: '0' }],
      timeline: [
        { transition: 'proposed', payouts: null, reason: 'not_stated' },
        { transition: 'resolved', at: HOUR + 60, received_at: HOUR + 90 },
      ],
    });
    expect((await called('get_resolution', { market_id: market.marketId, venue: 'polymarket' })).value).toMatchObject({
      state: 'none',
      payouts: null,
      reason: 'no_result',
      timeline: [],
    });
  });

  it('reads the rules of a market, also of the past, and how two versions differ', async () => {
    const ruled = { market_id: sibling.marketId };
    const { value } = await called('get_rules', ruled);
    expect(value).toMatchObject({ market_id: sibling.marketId, version: 1, versions: [{ version: 1 }] });
    expect((await called('get_rules', { ...ruled, from: 1, to: 1 })).value).toMatchObject({ diff: [{ op: 'equal' }] });
    expect((await called('get_rules', { ...ruled, as_of: 1 })).text).toContain('no_data_yet');
    expect((await called('get_rules', { ...ruled, from: 1 })).isError).toBe(true);
  });

  it('reads the coverage as spans of equal hours, or as hours with their volumes', async () => {
    const start = 480_000 * 3_600;
    const complete = { class: 'complete', stored: '12345678901234567890.5' };
    await storedCoverage(api.db, { venue: 'polymarket', start }, [
      complete,
      complete,
      { class: 'gap', cause: 'missing_trades' },
    ]);
    const asked = { venue: 'polymarket', start: start - 3_600, end: start + 4 * 3_600 };
    expect((await called('get_coverage', asked)).value).toEqual({
      spans: [
        { venue: 'polymarket', start: start - 3_600, end: start, class: 'unknown', reason: 'not_observed' },
        { venue: 'polymarket', start, end: start + 7_200, class: 'complete' },
        { venue: 'polymarket', start: start + 7_200, end: start + 10_800, class: 'gap', cause: 'missing_trades' },
        { venue: 'polymarket', start: start + 10_800, end: start + 14_400, class: 'unknown', reason: 'not_settled' },
      ],
      settled_to: start + 10_800,
      next_cursor: null,
    });
    const { value } = await called('get_coverage', { ...asked, form: 'hours' });
    expect(value).toMatchObject({ hours: [{}, { stored: '12345678901234567890.5' }, {}, {}, {}] });
    expect((await called('get_coverage', { ...asked, market_id: 'no-such' })).text).toContain('market_not_found');
  });

  it('lists the files of the archive, or says that there is none', async () => {
    expect(await called('list_archive_files', {})).toMatchObject({
      isError: true,
      text: expect.stringContaining('archive_off'),
    });
    const day = await anEmptyDay(api.db);
    api.deps.archive = new ArchiveFolder('/nowhere', createLogger({ process: 'test', level: 'silent' }));
    expect((await called('list_archive_files', { kind: day.kind, from: day.date })).value).toMatchObject({
      files: [{ ...day, file: null }],
      next_cursor: null,
    });
  });

  it('creates an alert, which belongs to the account of the key, and lists it', async () => {
    const outcome = market.outcomes[0]?.outcomeId ?? '';
    const made = await called('create_alert', { outcome_id: outcome, condition: 'above', price: 0.9 });
    expect(made.value).toMatchObject({ alert: { tokenMint: outcome, price: 0.9, status: 'active' } });
    const { id } = (made.value as { alert: { id: string } }).alert;
    expect(api.wakes.some(({ job }) => job === 'evaluate-alerts')).toBe(true);
    expect((await called('list_alerts', { status: 'active', outcome_id: outcome })).value).toMatchObject({
      alerts: [{ id }],
    });
    const stranger = await connected((await api.client()).key);
    expect((await called('list_alerts', {}, stranger)).value).toMatchObject({ alerts: [] });
    await stranger.close();
  });

  it('creates an alert of every condition, with the fields that the tool describes', async () => {
    const outcome_id = market.outcomes[0]?.outcomeId;
    const fields: Readonly<Record<Condition, Record<string, unknown>>> = {
      above: { outcome_id, price: 0.9 },
      below: { outcome_id, price: 0.1 },
      crosses_above: { outcome_id, price: 0.8, repeat: true, cooldown_seconds: 60 },
      crosses_below: { outcome_id, price: 0.2, expires_at: '2999-01-01T00:00:00Z' },
      change: { outcome_id, change: 5, unit: 'percent', window_seconds: 900, direction: 'up' },
      spread: { outcome_id, price: 0.1, direction: 'at_least' },
      trade: { outcome_id, notional: 1_000 },
      volume: { outcome_id, times: 3, windows: 24, window_seconds: 3_600 },
      executable: { outcome_id, side: 'buy', size: 500, price: 0.6, direction: 'at_most' },
      net_difference: { outcome_id, sell_outcome_id: market.outcomes[1]?.outcomeId, size: 500, price: 0.02 },
      status: { outcome_id },
      resolution: { outcome_id, states: ['disputed', 'resolved'] },
      new_market: { scope: { venue: 'polymarket', q: 'snow' }, name: 'snow' },
    };
    const createTool = (await client.listTools()).tools.find(({ name }) => name === 'create_alert');
    for (const condition of CONDITIONS) {
      const made = await called('create_alert', { condition, ...fields[condition] });
      expect([condition, made.isError, made.value]).toMatchObject([condition, false, { alert: { condition } }]);
      expect(createTool?.description).toContain(condition);
    }
    const wrong = await called('create_alert', { condition: 'change', outcome_id, change: 0.1 });
    expect(wrong.text).toContain('windowSeconds: is required with the condition change');
  });

  it('lists the alerts of each status', async () => {
    for (const status of ALERT_STATUSES) {
      expect([status, (await called('list_alerts', { status })).isError]).toEqual([status, false]);
    }
    const listTool = (await client.listTools()).tools.find(({ name }) => name === 'list_alerts');
    expect(listTool?.inputSchema.properties).toMatchObject({ status: { enum: [...ALERT_STATUSES] } });
  });

  it('backtests an alert, and reads the job of a long backtest', async () => {
    const alert = { tokenMint: market.outcomes[0]?.outcomeId, condition: 'crosses_above', price: 0.5 };
    const range = { start: HOUR, end: HOUR + 3_600 };
    const { value } = await called('backtest_alert', { alert, ...range });
    expect(value).toMatchObject({ result: { firings: [], firingCount: 0, observations: 0, approximate: false } });
    const request = { tokenMint: 't', scopeKey: null, condition: 'status', startMs: 0, endMs: 1 } as const;
    const job = await api.db.transaction((tx) => createBacktest(tx, account.accountId, request));
    expect((await called('backtest_alert', { backtest_id: job?.id })).value).toMatchObject({
      job: { id: job?.id, state: 'queued', progress: 0 },
    });
    expect(await called('backtest_alert', { alert: { ...alert, price: 7 }, ...range })).toMatchObject({
      isError: true,
      text: expect.stringContaining('alert.price: must be at most 1'),
    });
    expect((await called('backtest_alert', { alert })).text).toContain('start: ');
  });

  it('deletes an alert of the account, and no other', async () => {
    const outcome_id = market.outcomes[0]?.outcomeId;
    const made = await called('create_alert', { outcome_id, condition: 'below', price: 0.01 });
    const { id } = (made.value as { alert: { id: string } }).alert;
    const stranger = await connected((await api.client()).key);
    expect((await called('delete_alert', { alert_id: id }, stranger)).text).toContain('alert_not_found');
    await stranger.close();
    expect((await called('delete_alert', { alert_id: id })).value).toEqual({ alert: { id, deleted: true } });
    expect((await called('delete_alert', { alert_id: id })).text).toContain('alert_not_found');
    const { tools } = await client.listTools();
    expect(tools.find(({ name }) => name === 'delete_alert')?.annotations).toMatchObject({ destructiveHint: true });
  });

  it('refuses an argument that a tool does not have', async () => {
    const { tools } = await client.listTools();
    for (const { name, inputSchema } of tools) {
      expect([name, inputSchema['additionalProperties']]).toEqual([name, false]);
      const refused = await called(name, { nonsense: 1 });
      expect([name, refused.isError, refused.text]).toEqual([name, true, expect.stringMatching(/nonsense/)]);
    }
    const refused = await called('get_history', { market_id: market.marketId, kind: 'trades' });
    expect(refused).toMatchObject({ isError: true, text: expect.stringContaining('kind') });
  });

  it.each([
    ['get_history', { series: 'candles', cursor: 'x' }, 'belongs to trades'],
    ['get_history', { series: 'trades', interval: '1h' }, 'belongs to candles'],
    ['get_history', { series: 'trades', limit: 101 }, 'must be at most 100 for trades'],
    ['backtest_alert', { backtest_id: 'bt_1', start: 0 }, 'does not belong to backtest_id'],
    ['search_markets', { query: 'snow', sort: 'created' }, 'does not combine with q'],
  ])('refuses an argument of %s that has no effect beside the others: %j', async (name, args, reason) => {
    const given = name === 'get_history' ? { market_id: market.marketId, ...args } : args;
    expect(await called(name, given)).toMatchObject({ isError: true, text: expect.stringContaining(reason) });
  });

  it('returns errors of the API as results, with code, details and request id', async () => {
    const missing = await called('get_market', { market_id: 'no-such' });
    expect(missing).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^market_not_found: .*\nrequest req_/),
    });
    const price = await called('create_alert', {
      outcome_id: market.outcomes[0]?.outcomeId,
      condition: 'above',
      price: 7,
    });
    expect(price).toMatchObject({ isError: true, text: expect.stringContaining('price: must be at most 1') });
    expect((await called('search_markets', { limit: 0 })).isError).toBe(true);
  });

  it('checks the scopes of the key in each tool', async () => {
    const reader = await connected((await api.client(['markets:read'])).key);
    expect((await called('search_markets', { query: 'snow' }, reader)).isError).toBe(false);
    const [before] = await api.db.query<{ count: number }>(USED, []);
    const alert = { outcome_id: market.outcomes[0]?.outcomeId, condition: 'above', price: 0.9 };
    expect(await called('create_alert', alert, reader)).toMatchObject({
      isError: true,
      text: expect.stringContaining('insufficient_scope: this key lacks the scope alerts'),
    });
    expect(await api.db.query<{ count: number }>(USED, [])).toEqual([before]);
    await reader.close();
  });

  it('takes the key in X-API-Key too, and rejects a request without a valid key', async () => {
    const other = await connected(account.key, { 'X-API-Key': account.key });
    expect((await other.listTools()).tools.length).toBe(13);
    await other.close();
    await expect(connected('ow_live_unknown')).rejects.toThrow('unauthorized');
    expect((await api.call('/mcp', { method: 'POST', body: '{}' })).status).toBe(401);
  });

  it('counts a call and the requests that it makes in the limit of the account', async () => {
    const before = Number((await account.market('/v1/venues')).headers.get('ratelimit-remaining'));
    await called('search_markets', { query: 'snow' });
    const after = Number((await account.market('/v1/venues')).headers.get('ratelimit-remaining'));
    // The call, the search, the prices of one venue, and the second of these reads.
    expect(before - after).toBe(4);
  });

  it('counts each message of a batch in the limit of the account, all of them or none', async () => {
    const batcher = await api.client();
    const rate = (perMinute: number) => api.db.query(RATE, [String(batcher.accountId), perMinute]);
    const ping = (id: number) => ({ jsonrpc: '2.0', id, method: 'ping' });
    const send = (size: number) =>
      api.call('/mcp', {
        method: 'POST',
        headers: {
          'X-API-Key': batcher.key,
          'Content-Type': 'application/json',
          Accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify(Array.from({ length: size }, (_, id) => ping(id))),
      });
    await rate(10);
    const first = await send(7);
    expect([first.status, JSON.parse(first.text).length, first.headers.get('ratelimit-remaining')]).toEqual([
      200,
      7,
      '3',
    ]);
    const second = await send(4);
    expect([second.status, second.body.error.code]).toEqual([429, 'rate_limited']);
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0);
    // The refused batch has used one request only.
    expect((await send(2)).headers.get('ratelimit-remaining')).toBe('0');
    api.clock.nowMs += 60_000;
    const endless = await send(11);
    expect([endless.status, endless.body.error.details]).toEqual([
      400,
      [
        {
          path: 'body',
          message: 'has 11 messages, and the account has a limit of 10 requests per minute: send smaller batches',
        },
      ],
    ]);
  });

  it('rejects pages of unknown origins, other methods and other bodies', async () => {
    const post = (init: RequestInit) =>
      api.call('/mcp', { method: 'POST', body: '{}', ...init, headers: { 'X-API-Key': account.key, ...init.headers } });
    expect((await post({ headers: { Origin: 'https://evil.example' } })).body.error.code).toBe('cross_origin');
    expect((await post({ body: '{' })).body.error.code).toBe('invalid_json');
    expect((await post({ body: 'x'.repeat(70_000) })).status).toBe(413);
    expect((await api.call('/mcp', { headers: { 'X-API-Key': account.key } })).status).toBe(405);
  });
});

it('GET /llms.txt names addresses that exist', async () => {
  const { text, headers, status } = await api.call('/llms.txt').catch(() => expect.unreachable());
  expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
  const linked = [...text.matchAll(/\]\((\/[^)]*)\)/g)].map(([, path = '']) => path);
  expect(linked).toContain('/openapi.json');
  for (const path of linked) expect([path, (await fetch(`${api.url}${path}`)).status]).not.toEqual([path, 404]);
});

it('GET /llms.txt names the tools of the Model Context Protocol', async () => {
  const { text } = await api.call('/llms.txt');
  const named = /Tools: ([\w,\s]+)\n\n/.exec(text)?.[1]?.split(/,\s+/);
  expect(named?.map((name) => name.trim())).toEqual((await client.listTools()).tools.map(({ name }) => name));
});
