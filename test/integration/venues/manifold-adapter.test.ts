import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { createManifoldAdapter } from '../../../src/venues/manifold/adapter.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';
import type { EventOf } from '../../support/venue-events.ts';
import { type Answer, json, ScriptedServer } from './scripted-server.ts';

const NOW = 1_790_000_000_000;
const server = new ScriptedServer();
let adapter: VenueAdapter;
let unknowns: EventOf<'onUnknown'>[];
let truncations: EventOf<'onTruncated'>[];
let routes: Record<string, Answer>;
const context = { signal: new AbortController().signal, now: () => NOW };

beforeEach(async () => {
  // Requests take no time, so that times can be compared exactly.
  vi.useFakeTimers({ toFake: ['performance'] });
  const url = await server.start();
  server.requests.length = 0;
  unknowns = [];
  truncations = [];
  routes = {};
  server.answer = (request, response) => (routes[request.path] ?? json(404, { message: 'no' }))(request, response);
  adapter = createManifoldAdapter({
    url: `${url}/v0`,
    http: { requestsPerSecond: 10_000, burst: 100, maxAttempts: 1 },
    markets: { answersPerCall: 3 },
    observer: { onUnknown: (event) => unknowns.push(event), onTruncated: (event) => truncations.push(event) },
  });
});
afterEach(async () => {
  vi.useRealTimers();
  await adapter.close();
  await server.close();
});

function binary(id: string, ago: number, more: object = {}): object {
  return {
    id,
    question: `Question ${id}`,
    outcomeType: 'BINARY',
    mechanism: 'cpmm-1',
    isResolved: false,
    createdTime: NOW - ago,
    lastUpdatedTime: NOW - ago,
    ...more,
  };
}

function multiple(id: string, ago: number, more: object = {}): object {
  return binary(id, ago, { outcomeType: 'MULTIPLE_CHOICE', mechanism: 'cpmm-multi-1', ...more });
}

const answers = [
  { id: 'x', text: 'X' },
  { id: 'y', text: 'Y' },
];

/** A listing of one page. */
function listOnce(...rows: object[]): Answer {
  return (request, response) => json(200, request.query.has('before') ? rows.slice(-1) : rows)(request, response);
}

async function pollAll(position: unknown = null) {
  const records: string[] = [];
  const rejected: string[] = [];
  let at = position;
  for (let calls = 0; calls < 50; calls += 1) {
    const page = await adapter.pollMarkets(at, context);
    records.push(...page.records.map((record) => record.marketId));
    rejected.push(...page.rejected.map((each) => `${each.recordId} ${each.reason}`));
    at = JSON.parse(JSON.stringify(page.position));
    if (!page.more) return { records, rejected, position: at };
  }
  throw new Error('the walk did not end');
}

describe('pollMarkets', () => {
  it('sends known parameters only, newest creation first', async () => {
    routes['/v0/markets'] = listOnce(binary('a', 1), binary('b', 2));
    await pollAll();
    expect(server.requests.map((request) => request.query.toString())).toEqual([
      'limit=1000&sort=created-time&order=desc',
      'limit=1000&sort=created-time&order=desc&before=a',
    ]);
  });

  it('reads the pages of multiple-choice markets, a few per call, and continues from a stored position', async () => {
    const names = ['m1', 'm2', 'm3', 'm4', 'm5'];
    routes['/v0/markets'] = listOnce(...names.map((id, index) => multiple(id, index)), binary('b', 10));
    for (const id of names) routes[`/v0/market/${id}`] = json(200, multiple(id, 1, { answers }));
    const { records, rejected } = await pollAll();
    expect(rejected).toEqual([]);
    expect(records).toEqual(['b', ...names]);
  });

  it('rejects a market whose page is unavailable, and continues', async () => {
    routes['/v0/markets'] = listOnce(multiple('gone', 1), multiple('broken', 2), multiple('fine', 3), binary('b', 4));
    routes['/v0/market/broken'] = json(500, {});
    routes['/v0/market/fine'] = json(200, multiple('fine', 3, { answers }));
    const { records, rejected } = await pollAll();
    expect(records).toEqual(['b', 'fine']);
    expect(rejected.sort()).toEqual(['broken page_unavailable', 'gone page_unavailable']);
  });

  it('goes on behind pages of which none is available, and reads them in the next walk', async () => {
    routes['/v0/markets'] = listOnce(multiple('m1', 1), binary('b', 2));
    routes['/v0/market/m1'] = json(503, {});
    const page = await adapter.pollMarkets(null, context);
    const failed = await adapter.pollMarkets(page.position, context);
    expect(failed).toMatchObject({ records: [], isIdle: true, fault: { code: 'http_status' } });
    routes['/v0/market/m1'] = json(200, multiple('m1', 1, { answers }));
    const walk = await pollAll(failed.position);
    expect((await pollAll(walk.position)).records).toContain('m1');
  });

  it('skips and reports markets of other kinds', async () => {
    routes['/v0/markets'] = listOnce(binary('p', 1, { outcomeType: 'POLL', mechanism: 'none' }), binary('b', 2));
    const { records, rejected } = await pollAll();
    expect(records).toEqual(['b']);
    expect(rejected).toEqual([]);
    expect(unknowns).toEqual([{ venue: 'manifold', field: 'outcomeType', value: 'POLL' }]);
  });

  it('does not follow the redirect of the old host', async () => {
    routes['/v0/markets'] = json(308, { redirect: true }, { location: '/v0/elsewhere' });
    routes['/v0/elsewhere'] = json(200, [binary('a', 1)]);
    await expect(adapter.pollMarkets(null, context)).rejects.toMatchObject({
      code: 'http_status',
      statusCode: 308,
      retryable: false,
    });
    expect(server.requests.map((request) => request.path)).toEqual(['/v0/markets']);
  });
});

describe('sweeps of the catalog', () => {
  it('name listed markets without a record, and end with the last page that is read', async () => {
    routes['/v0/markets'] = listOnce(multiple('m1', 1), binary('bad', 2, { isResolved: 'no' }), binary('b', 3));
    routes['/v0/market/m1'] = json(200, multiple('m1', 1, { answers }));
    const sweeps: unknown[] = [];
    let position: unknown = null;
    for (let more = true; more; ) {
      const page = await adapter.pollMarkets(position, context);
      sweeps.push([page.records.map(({ marketId }) => marketId), page.sweep]);
      ({ position, more } = page);
    }
    const startedAtMs = NOW;
    expect(sweeps).toEqual([
      [['b'], { startedAtMs, ended: false, alsoListed: ['m1', 'bad'] }],
      [['m1'], { startedAtMs, ended: false }],
      [[], { startedAtMs, ended: true }],
    ]);
  });

  it('read new markets from their own pages between full walks', async () => {
    const old = [binary('b', 600_000), binary('c', 700_000)];
    routes['/v0/markets'] = listOnce(...old);
    const { position } = await pollAll();
    routes['/v0/markets'] = listOnce(binary('new', -60_000), ...old);
    routes['/v0/market/new'] = json(200, binary('new', -60_000, { textDescription: 'How.', groupSlugs: ['fun'] }));
    const later = { ...context, now: () => NOW + 90_000 };
    const listed = await adapter.pollMarkets(position, later);
    expect(listed.records.map(({ marketId, isSummary }) => [marketId, isSummary])).toEqual([
      ['new', true],
      ['b', true],
      ['c', true],
    ]);
    const read = await adapter.pollMarkets(listed.position, later);
    expect(read.records).toMatchObject([{ marketId: 'new', description: 'How.', category: 'fun' }]);
    expect(read.records[0]?.isSummary).toBeUndefined();
    expect([listed.sweep, read.sweep]).toEqual([undefined, undefined]);
  });
});

describe('markets by their ids', () => {
  it('come from their own pages; unknown ones are absent, unreadable ones rejected', async () => {
    routes['/v0/market/a'] = json(200, binary('a', 1, { textDescription: 'How.' }));
    routes['/v0/market/m'] = json(200, multiple('m', 1, { answers }));
    routes['/v0/market/broken'] = json(500, {});
    const batch = await adapter.fetchMarkets(['a', 'gone', 'm', 'broken', 'a', 'no/id'], context);
    expect(batch.records.map(({ marketId }) => marketId).sort()).toEqual(['a', 'm']);
    expect(batch.rejected).toMatchObject([{ recordId: 'broken', reason: 'page_unavailable' }]);
    expect(server.requests.map(({ path }) => path).sort()).toEqual(
      ['a', 'broken', 'gone', 'm'].map((id) => `/v0/market/${id}`),
    );
  });

  it('are an empty batch when all are unknown, and an error when the venue serves none', async () => {
    expect(await adapter.fetchMarkets(['gone', 'too'], context)).toEqual({ records: [], rejected: [] });
    routes['/v0/market/gone'] = json(503, {});
    await expect(adapter.fetchMarkets(['gone'], context)).rejects.toMatchObject({ statusCode: 503 });
  });
});

describe('prices and books', () => {
  it('are read from each contract once, a hundred at a time', async () => {
    routes['/v0/market-probs'] = (request, response) =>
      json(200, Object.fromEntries(request.query.getAll('ids').map((id) => [id, { prob: 0.25 }])))(request, response);
    const ids = Array.from({ length: 150 }, (_, index) => [`c${index}:YES`, `c${index}:NO`]).flat();
    const { records, rejected } = await adapter.fetchPrices(ids, context);
    expect(rejected).toEqual([]);
    expect(records.length).toBe(300);
    expect(server.requests.map((request) => request.query.getAll('ids').length)).toEqual([100, 50]);
    expect(records.find((record) => record.outcomeId === 'c7:NO')).toEqual({
      outcomeId: 'c7:NO',
      asOfMs: NOW,
      price: '0.75',
    });
  });

  it('have no books, which the adapter declares', async () => {
    expect(adapter.capabilities).toMatchObject({
      markets: true,
      prices: true,
      books: false,
      trades: true,
      history: true,
    });
    expect(await adapter.fetchBooks(['c1:YES'], context)).toEqual({ records: [], rejected: [] });
    expect(server.requests).toEqual([]);
  });

  it('are in play money', () => {
    expect([adapter.venue, adapter.title, adapter.currency]).toEqual(['manifold', 'Manifold', 'MANA']);
  });
});

describe('trades', () => {
  const bet = (id: string, ago: number, more: object = {}) => ({
    id,
    contractId: 'c1',
    createdTime: NOW - ago,
    amount: 1,
    shares: 2,
    outcome: 'YES',
    ...more,
  });

  it('are requested oldest first after the watermark, less an overlap', async () => {
    routes['/v0/bets'] = json(200, [bet('a', 5_000), bet('b', 4_000, { isRedemption: true })]);
    const first = await adapter.pollTrades(null, context);
    expect(first.records.map((record) => record.tradeId)).toEqual(['a']);
    await adapter.pollTrades(first.position, context);
    expect(server.requests.map((request) => request.query.toString())).toEqual([
      `limit=1000&afterTime=${NOW - 6 * 3_600_000 - 1}&order=asc`,
      `limit=1000&afterTime=${NOW - 4_000 - 120_000 - 1}&order=asc`,
    ]);
  });

  it('report a rejected bet once when it is read again', async () => {
    routes['/v0/bets'] = json(200, [bet('bad', 6_000, { amount: 5 }), bet('a', 5_000)]);
    const first = await adapter.pollTrades(null, context);
    expect(first.rejected.map((each) => each.recordId)).toEqual(['bad']);
    const second = await adapter.pollTrades(first.position, context);
    expect(second.rejected).toEqual([]);
    expect(second.records.map((record) => record.tradeId)).toEqual(['a']);
  });

  it('throw when no bet of a page is readable', async () => {
    const rows = Array.from({ length: 20 }, (_, index) => ({ ...bet(`b${index}`, 1_000), shares: 'many' }));
    routes['/v0/bets'] = json(200, rows);
    await expect(adapter.pollTrades(null, context)).rejects.toMatchObject({ code: 'invalid_payload' });
  });

  it('of one market are walked newest first, by time', async () => {
    // The budget of walks waits by this clock.
    vi.useRealTimers();
    const from = NOW - 100_000;
    const rows = Array.from({ length: 1_000 }, (_, index) => bet(`b${index}`, 10_000 + index));
    const redeemed = bet('r', 50_000, { isRedemption: true });
    routes['/v0/bets'] = (request, response) => {
      const isFirst = request.query.get('beforeTime') === String(NOW);
      json(200, isFirst ? rows : [rows.at(-1), redeemed, bet('old', 60_000), bet('bad', 70_000, { amount: -1 })])(
        request,
        response,
      );
    };
    const request = { marketId: 'c1', outcomeIds: ['c1:YES', 'c1:NO'], fromMs: from, toMs: NOW };
    const first = await adapter.pollHistory(request, null, context);
    expect(first).toMatchObject({ more: true, reachedMs: NOW - 10_998, rejected: [] });
    expect(first.records).toHaveLength(1_000);
    const second = await adapter.pollHistory(request, JSON.parse(JSON.stringify(first.position)), context);
    expect(second).toMatchObject({ more: false, reachedMs: from, rejected: [{ recordId: 'bad' }] });
    expect(second.records.map(({ tradeId }) => tradeId)).toEqual(['b999', 'old']);
    expect(server.requests.map((each) => each.query.toString())).toEqual([
      `limit=1000&afterTime=${from - 1}&order=desc&beforeTime=${NOW}&contractId=c1`,
      `limit=1000&afterTime=${from - 1}&order=desc&beforeTime=${NOW - 10_998}&contractId=c1`,
    ]);
  });

  it('of one market throw when no bet of a page is readable', async () => {
    vi.useRealTimers();
    routes['/v0/bets'] = json(
      200,
      Array.from({ length: 20 }, (_, index) => ({ ...bet(`b${index}`, 1_000), shares: 'many' })),
    );
    const request = { marketId: 'c1', outcomeIds: [], fromMs: 0, toMs: NOW };
    await expect(adapter.pollHistory(request, null, context)).rejects.toMatchObject({ code: 'invalid_payload' });
  });
});
