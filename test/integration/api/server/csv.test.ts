import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CSV_META_HEADERS, prefersCsv } from '../../../../api/http/csv-answer.ts';
import { createAnswerCache } from '../../../../api/reads/answer-cache.ts';
import { ArchiveFolder } from '../../../../api/reads/archive-folder.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { anEmptyDay } from '../../../factories/archive.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { storedTrades } from '../../../factories/stored-series.ts';
import { aWorld, type World } from '../../../fuzz/world.ts';
import { operationsOf, type ResponseObject } from '../../../support/api-contract.ts';
import { type Cell, csvRows, parseCsv } from '../../../support/csv.ts';
import { type Answer, startTestApi, type TestApi } from '../api-harness.ts';

let api: TestApi;
let world: World;
beforeAll(async () => {
  // Answers stay in memory, as in production.
  const archive = new ArchiveFolder('/nowhere', createLogger({ process: 'test', level: 'silent' }));
  api = await startTestApi({ answers: createAnswerCache({ ttlMs: 60_000 }), archive });
  world = await aWorld(api);
  await api.call(`/v1/watchlist/polymarket/${known('market_id')}`, {
    method: 'PUT',
    headers: { 'X-API-Key': world.keys.full },
  });
  for (const date of ['2026-01-01', '2026-01-02']) await anEmptyDay(api.db, { date });
});
afterAll(() => api.close());

const known = (name: string, index = 0) => world.known.get(name)?.[index] ?? '';

function get(path: string, accept?: string, more: Record<string, string> = {}): Promise<Answer> {
  const isMarket = /^\/v1\/(?:venues|all|nowhere|archive)/.test(path);
  const key: Record<string, string> = isMarket
    ? { Authorization: `Bearer ${world.keys.full}` }
    : { 'X-API-Key': world.keys.full };
  return api.call(path, { headers: { ...key, ...(accept !== undefined && { Accept: accept }), ...more } });
}

/** The path of each list of the contract, with ids that have rows. */
function lists(): { template: string; path: string; columns: string[] }[] {
  return operationsOf(api.contract.document).flatMap(({ path: template, method, operation }) => {
    const answer = operation.responses['200'] as ResponseObject | undefined;
    const content = answer?.content?.['text/csv'];
    if (method !== 'get' || !content) return [];
    const query: Record<string, string> = {
      '/v1/{venue}/prices': `?market_ids=${known('market_id')},unknown`,
      '/v1/{venue}/markets/{market_id}/snapshots': '?interval=1m',
      '/v1/{venue}/executable': `?outcome_ids=${known('outcome_id')},unknown&side=buy&size=2`,
    };
    const path = template
      .replace('{venue}', 'all')
      .replace('{market_id}', known('market_id'))
      .replace('{webhook_id}', known('webhook_id'))
      .replace('{wallet_id}', known('wallet_id'));
    const columns = (parseCsv(String(content.example))[0] ?? []).map(String);
    return [{ template, path: path + (query[template] ?? ''), columns }];
  });
}

/** The cell of a value that `JSON.parse` keeps exactly. */
function cellOf(value: unknown): Cell {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** The cells with numbers and nested values in one spelling. */
const respelt = (cell: Cell, value: unknown): Cell =>
  cell === null || typeof value === 'string' ? cell : JSON.stringify(JSON.parse(cell));

describe('a list as CSV', () => {
  it('exists for every route whose data is a list', () => {
    const isList = (schema: unknown) =>
      (schema as { properties?: { data?: { type?: string } } } | undefined)?.properties?.data?.type === 'array';
    const all = operationsOf(api.contract.document).flatMap(({ path, method, operation }) => {
      const content = (operation.responses['200'] as ResponseObject | undefined)?.content ?? {};
      return method === 'get' && isList(content['application/json']?.schema) ? [path] : [];
    });
    expect(all.length).toBe(22);
    expect(lists().map(({ template }) => template)).toEqual(all);
  });

  it('has the values of the JSON in the columns of the contract', async () => {
    for (const { template, path, columns } of lists()) {
      const json = await get(path);
      const csv = await get(path, 'text/csv');
      expect([path, json.status, csv.status]).toEqual([path, 200, 200]);
      expect([path, csv.headers.get('content-type')]).toEqual([path, 'text/csv; charset=utf-8; header=present']);
      const items = json.body.data as Record<string, unknown>[];
      expect([template, items.length > 0]).toEqual([template, true]);
      expect(parseCsv(csv.text)[0]).toEqual(columns);
      const rows = csvRows(csv.text);
      expect([path, rows.length]).toEqual([path, items.length]);
      for (const [index, item] of items.entries()) {
        const row = rows[index] ?? {};
        expect(Object.keys(item).filter((field) => !columns.includes(field))).toEqual([]);
        for (const column of columns) {
          const given = respelt(row[column] ?? null, item[column]);
          expect([path, column, given]).toEqual([path, column, cellOf(item[column])]);
        }
      }
    }
  });

  it('has the fields of meta in headers, and the next page in a link', async () => {
    for (const { path } of lists()) {
      const page = `${path}${path.includes('?') ? '&' : '?'}${/prices|executable|candles|volume|snapshots|venues/.test(path) ? '' : 'limit=1'}`;
      const json = await get(page);
      const csv = await get(page, 'text/csv');
      const { request_id: _, timestamp: __, ...meta } = json.body.meta ?? {};
      for (const [field, value] of Object.entries(meta)) {
        const name = `x-meta-${field.replaceAll('_', '-')}`;
        expect(CSV_META_HEADERS.map((each) => each.toLowerCase())).toContain(name);
        // A cursor has a nonce.
        if (field.endsWith('_cursor')) expect([page, csv.headers.has(name)]).toEqual([page, value !== null]);
        else expect([page, field, csv.headers.get(name)]).toEqual([page, field, cellOf(value)]);
      }
      const link = csv.headers.get('link') ?? '';
      expect([page, link.includes('rel="next"')]).toEqual([page, typeof meta.next_cursor === 'string']);
    }
  });

  it('has every page when a client follows the links', async () => {
    const ids: Cell[] = [];
    for (let path: string | undefined = '/v1/all/markets?limit=2&sort=updated'; path !== undefined; ) {
      const answer = await get(path, 'text/csv');
      ids.push(...csvRows(answer.text).map(({ market_id = null }) => market_id));
      path = /^<([^>]+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1];
    }
    const all = (await get('/v1/all/markets?sort=updated')).body.data as { market_id: string }[];
    expect(ids).toEqual(all.map(({ market_id }) => market_id));
  });

  it('keeps every digit of a number', async () => {
    const market = await aStoredMarket(api.db);
    const tokenId = market.outcomes[0]?.tokenId ?? 0n;
    const [price, size] = ['0.123456789012345678', '12345678901234567890.000000000000000001'];
    await storedTrades(api.db, [{ tokenId, at: new Date(api.clock.nowMs - 1_000), tradeId: 'long', price, size }]);
    const [row] = csvRows((await get(`/v1/all/markets/${market.marketId}/trades`, 'text/csv')).text);
    expect([row?.['price'], row?.['size']]).toEqual([price, size]);
  });

  it('has no header for a field of meta that is too long, and names it', async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `unknown-${'x'.repeat(40)}-${index}`);
    const { headers, status } = await get(
      `/v1/all/prices?market_ids=${known('market_id')},${ids.join(',')}`,
      'text/csv',
    );
    expect([status, headers.get('x-meta-missing'), headers.get('x-meta-omitted')]).toEqual([200, null, 'missing']);
    const few = await get(`/v1/all/prices?market_ids=${known('market_id')},%E9%9B%A8`, 'text/csv');
    expect([few.headers.get('x-meta-missing'), few.headers.get('x-meta-omitted')]).toEqual(['["\\u96E8"]', null]);
  });

  it('has warnings in a header', async () => {
    const { headers } = await get('/v1/all/markets?statuz=closed&limit=1', 'text/csv');
    expect(JSON.parse(headers.get('x-meta-warnings') ?? '')).toMatchObject([{ path: 'statuz' }]);
    expect(headers.get('link')).toMatch(
      /rel="deprecation".*, <\/v1\/all\/markets\?statuz=closed&limit=1&cursor=[^>]+>; rel="next"$/,
    );
    const account = await get('/v1/alerts?statuz=closed', 'text/csv');
    expect(JSON.parse(account.headers.get('x-meta-warnings') ?? '')).toMatchObject([{ path: 'statuz' }]);
  });

  it('has an ETag of its own, and both forms vary by Accept', async () => {
    const path = '/v1/all/markets?limit=3';
    // The first answer fills the cache, the later ones come from it.
    for (const _ of [1, 2, 3]) {
      const [json, csv] = [await get(path), await get(path, 'text/csv')];
      const [jsonTag, csvTag] = [json.headers.get('etag') ?? '', csv.headers.get('etag') ?? ''];
      expect(csvTag).toBe(jsonTag.replace(/"$/, '.csv"'));
      expect(json.body.success).toBe(true);
      expect(parseCsv(csv.text).length).toBe(4);
      for (const { headers } of [json, csv]) expect(headers.get('vary')).toBe('Accept-Encoding, Authorization, Accept');
      for (const [accept, tag, status] of [
        ['text/csv', csvTag, 304],
        ['text/csv', jsonTag, 200],
        ['*/*', jsonTag, 304],
        ['*/*', csvTag, 200],
      ] as const) {
        const again = await get(path, accept, { 'If-None-Match': tag });
        expect([accept, tag, again.status]).toEqual([accept, tag, status]);
        expect(again.headers.get('vary')).toBe('Accept-Encoding, Authorization, Accept');
      }
    }
    const account = await get('/v1/alerts', 'text/csv');
    expect([account.headers.get('vary'), account.headers.get('cache-control')]).toEqual([
      'Accept-Encoding, Accept',
      'no-store',
    ]);
  });

  it('has the same text when it is compressed', async () => {
    const path = '/v1/all/markets';
    const plain = await get(path, 'text/csv', { 'Accept-Encoding': 'identity' });
    const compressed = await get(path, 'text/csv', { 'Accept-Encoding': 'br' });
    expect([plain.headers.get('content-encoding'), compressed.headers.get('content-encoding')]).toEqual([null, 'br']);
    expect(compressed.text).toBe(plain.text);
  });

  it('is no answer of a failure, nor of a route without a list', async () => {
    const market = `/v1/all/markets/${known('market_id')}`;
    for (const [path, status] of [
      ['/v1/all/markets?limit=0', 400],
      ['/v1/nowhere/markets', 404],
      ['/v1/alerts?limit=0', 400],
      [market, 200],
      [`${market}/prices`, 200],
      [market, 200],
      [`${market}/prices`, 200],
    ] as const) {
      const answer = await get(path, 'text/csv');
      expect([path, answer.status]).toEqual([path, status]);
      expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    }
  });

  it('has the headers of the GET when the method is HEAD', async () => {
    const path = '/v1/all/markets?limit=3';
    const { headers, status, text } = await api.call(path, {
      method: 'HEAD',
      headers: { Authorization: `Bearer ${world.keys.full}`, Accept: 'text/csv' },
    });
    expect([status, headers.get('content-type'), text]).toEqual([200, 'text/csv; charset=utf-8; header=present', '']);
  });
});

describe('the media type of a list', () => {
  it.each([
    [undefined, false],
    ['', false],
    ['*/*', false],
    ['application/json', false],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', false],
    ['application/json, text/plain, */*', false],
    ['image/png', false],
    ['text/csv', true],
    ['TEXT/CSV', true],
    ['text/csv; charset=utf-8; header=present', true],
    ['text/*', true],
    ['text/csv, */*', true],
    ['*/*, text/csv', true],
    ['text/csv, application/json', true],
    ['application/json, text/csv', false],
    ['text/csv;q=0.5, application/json', false],
    ['text/csv, application/json;q=0.5', true],
    ['text/csv;q=0.5, */*;q=0.1', true],
    ['text/csv;q=0.1, */*;q=0.5', false],
    ['text/csv;q=0', false],
    ['text/csv;q=0, application/json;q=0', false],
    ['text/*;q=0.9, text/csv;q=0.1, application/json;q=0.5', false],
    ['*/*, application/json;q=0', true],
    ['text/csv;q=nonsense', false],
    ['text/csv;q=2', false],
    [', ;, text/csv', true],
    ['text/csvx', false],
  ])('follows weight, exactness and order of Accept: %s', (accept, expected) => {
    expect(prefersCsv(accept)).toBe(expected);
  });
});
