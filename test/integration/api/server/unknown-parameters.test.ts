import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TOLERANT_OPERATIONS } from '../../../../api/http/parameter-names.ts';
import { createAnswerCache } from '../../../../api/reads/answer-cache.ts';
import { operationsOf } from '../../../support/api-contract.ts';
import { openSocket } from '../../../support/socket.ts';
import { type Answer, type Client, startTestApi, type TestApi } from '../api-harness.ts';

let api: TestApi;
let client: Client;
beforeAll(async () => {
  // Answers stay in memory, as in production.
  api = await startTestApi({ answers: createAnswerCache({ ttlMs: 60_000 }) });
  client = await api.client();
});
afterAll(() => api.close());

const ignored = (hint = '') => `is ignored: no route has this parameter, and a later release answers 400${hint}`;
const announced = ({ headers }: Answer) => [headers.get('deprecation'), headers.get('link')];
const ANNOUNCEMENT = [
  `@${Date.UTC(2026, 10, 26) / 1_000}`,
  '</docs/read/api#unknown-query-parameters>; rel="deprecation"; type="text/html"',
];

describe('a query parameter that no route knows', () => {
  it('has a warning with the nearest name in every answer of a market route, also from memory', async () => {
    for (const round of [1, 2, 3]) {
      const answer = await client.market('/v1/all/markets?statuz=closed&limit=1&nonsense=1');
      expect([round, answer.status, answer.body.meta['warnings']]).toEqual([
        round,
        200,
        [
          { path: 'statuz', message: ignored('; did you mean status?') },
          { path: 'nonsense', message: ignored() },
        ],
      ]);
      expect(answer.body.meta).toHaveProperty('next_cursor', null);
      expect(announced(answer)).toEqual(ANNOUNCEMENT);
    }
    const plain = await client.market('/v1/all/markets?limit=1');
    expect(plain.body.meta).not.toHaveProperty('warnings');
    expect(announced(plain)).toEqual([null, null]);
  });

  it.each([
    ['GET', '/v1/webhooks?_=1', undefined, { next_cursor: null }],
    ['GET', '/v1/alerts?limit=1&_=1', undefined, { next_cursor: null }],
    ['POST', '/v1/alerts?_=1', { tokenMint: 't', condition: 'above', price: 1 }, {}],
    ['POST', '/v1/alerts/bulk/create?_=1', { alerts: [{ tokenMint: 't', condition: 'above', price: 1 }] }, {}],
  ])('has a warning in the meta of %s %s, beside the cursor of a list', async (method, path, body, meta) => {
    const answer = await client.account(method, path, body);
    expect([answer.status < 300, answer.body.meta]).toEqual([
      true,
      { ...meta, warnings: [{ path: '_', message: ignored() }] },
    ]);
    expect(announced(answer)).toEqual(ANNOUNCEMENT);
  });

  it('has a warning in a repeated answer of an Idempotency-Key', async () => {
    const headers = { 'X-API-Key': client.key, 'Content-Type': 'application/json', 'Idempotency-Key': 'warned' };
    const body = JSON.stringify({ tokenMint: 't', condition: 'above', price: 0.25 });
    const first = await api.call('/v1/alerts', { method: 'POST', headers, body });
    const again = await api.call('/v1/alerts?nota=1', { method: 'POST', headers, body });
    expect(first.body.meta).toBeUndefined();
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    expect(again.body).toEqual({
      ...first.body,
      meta: { warnings: [{ path: 'nota', message: ignored() }] },
    });
  });

  it('has a warning in a failure, because its name may be the cause', async () => {
    const answer = await client.market('/v1/all/prices?market_idz=1');
    expect([answer.status, answer.body.meta['warnings']]).toEqual([
      400,
      [{ path: 'market_idz', message: ignored('; did you mean market_ids?') }],
    ]);
    expect(announced(answer)).toEqual(ANNOUNCEMENT);
  });

  it('is reported at most twenty times, each name with at most 200 characters', async () => {
    const names = Array.from({ length: 30 }, (_, index) => `${'x'.repeat(210)}${index}`);
    const answer = await client.market(`/v1/venues?${names.map((name) => `${name}=1`).join('&')}`);
    const warnings = answer.body.meta['warnings'] as { path: string }[];
    expect([answer.status, warnings.length]).toEqual([200, 20]);
    for (const { path } of warnings) expect(path.length).toBe(200);
  });

  it('is 400 on the streams', async () => {
    for (const [path, call] of [
      ['/v1/all/stream?chanels=books', client.market],
      ['/v1/events/stream?cursr=x', (target: string) => client.account('GET', target)],
    ] as const) {
      const answer = await call(path);
      expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request']);
      expect(answer.body.error.details).toEqual([
        {
          path: path.includes('chanels') ? 'chanels' : 'cursr',
          message: `is not a parameter of any route; did you mean ${path.includes('chanels') ? 'channels' : 'cursor'}?`,
        },
      ]);
    }
    const socket = openSocket(`${api.url.replace('http', 'ws')}/v1/stream?channels=books`, {
      Authorization: `Bearer ${client.key}`,
    });
    await expect(socket).rejects.toThrow(/400/);
  });

  it('is 400 on every operation that no earlier release had', () => {
    const operations = operationsOf(api.contract.document);
    const ids = new Set(operations.map(({ operation }) => operation.operationId));
    expect([...TOLERANT_OPERATIONS].filter((id) => !ids.has(id))).toEqual([]);
    // Only these have no warning: streams, newer routes, and the routes without a key, which have no parameters.
    const strict = operations.filter(({ operation }) => !TOLERANT_OPERATIONS.has(operation.operationId));
    expect(strict.filter(({ operation }) => operation.security?.length).map(({ path }) => path)).toEqual([
      '/v1/deliveries',
      '/v1/events/stream',
      '/v1/{venue}/stream',
      '/v1/wallets/{wallet_id}/balances',
      '/v1/wallets/{wallet_id}/events',
      '/v1/watchlist',
      '/v1/watchlist/{venue}/{market_id}',
      '/v1/watchlist/{venue}/{market_id}',
      '/v1/archive',
      '/v1/archive/{archive_file}',
      '/v1/{venue}/markets/{market_id}/rules',
      '/v1/{venue}/markets/{market_id}/resolution',
      '/v1/{venue}/resolutions',
      '/v1/{venue}/coverage',
      '/v1/{venue}/markets/{market_id}/fees',
      '/v1/{venue}/markets/{market_id}/executable',
      '/v1/{venue}/executable',
      '/v1/compare',
    ]);
  });
});
