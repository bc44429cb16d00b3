import { describe, expect, it } from 'vitest';
import { type JsonSchema, operationsOf } from '../../../support/api-contract.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

describe('a missing field', () => {
  /** The target of a path with an id in place of each parameter. */
  const targetOf = (path: string) => path.replaceAll('{venue}', 'all').replaceAll(/\{\w+\}/g, 'id_1');
  const send = (path: string, method: string, body?: unknown) =>
    path.includes('{venue}') || path === '/v1/compare'
      ? client.market(targetOf(path))
      : client.account(method, targetOf(path), body);

  it('is named as required by every body and every query of the document', async () => {
    const missed: string[] = [];
    for (const { path, method, operation } of operationsOf(api.contract.document)) {
      const json = operation.requestBody?.content['application/json'];
      const schema = json && (resolved(json.schema) as { required?: string[] });
      for (const name of schema?.required ?? []) {
        const { [name]: _, ...rest } = (json?.example ?? {}) as Record<string, unknown>;
        const answer = await send(path, method.toUpperCase(), rest);
        missed.push(`${path} ${name}`);
        const details = answer.body.error.details?.filter((detail) => detail.path === name);
        expect([path, details]).toEqual([path, [{ path: name, message: expect.stringMatching(/^is required/) }]]);
      }
      for (const parameter of operation.parameters ?? []) {
        if ('$ref' in parameter || parameter.in !== 'query' || !parameter.required) continue;
        const answer = await send(path, method.toUpperCase());
        missed.push(`${path} ${parameter.name}`);
        expect([path, answer.body.error.details]).toEqual([
          path,
          expect.arrayContaining([{ path: parameter.name, message: expect.stringMatching(/^is required/) }]),
        ]);
      }
    }
    for (const one of ['/v1/webhooks url', '/v1/wallets address', '/v1/keys name', '/v1/{venue}/prices market_ids'])
      expect(missed).toContain(one);
  });

  it.each([
    ['/v1/webhooks', { events: ['trade'] }, 'url', 'is required'],
    [
      '/v1/webhooks',
      { url: 'https://a.example.com/', events: ['trade'], filter: [{}] },
      'filter.0.field',
      'is required',
    ],
    ['/v1/wallets', { address: 'x' }, 'venue', 'is required'],
    ['/v1/keys', { name: 'x' }, 'scopes', 'is required'],
    ['/v1/alerts/bulk/delete', {}, 'ids', 'is required'],
    ['/v1/alerts/backtest', { start: 0, end: 1 }, 'alert', 'is required'],
    [
      '/v1/webhooks/wh_1/recover',
      {},
      'since',
      'is required and must be an ISO 8601 time with an offset, such as 2026-01-31T12:00:00.000Z, or a date',
    ],
  ])('reads so for POST %s with %j', async (path, body, name, message) => {
    const answer = await client.account('POST', path, body);
    expect(answer.body.error.details).toContainEqual({ path: name, message });
  });

  it('differs from a field of another type', async () => {
    const { body } = await client.account('POST', '/v1/webhooks', { url: 7, events: null });
    expect(body.error.details).toEqual([
      { path: 'url', message: 'must be a string' },
      { path: 'events', message: 'must be an array' },
    ]);
  });

  it('reads so in a query', async () => {
    const { body } = await client.market('/v1/all/prices');
    expect(body.error.details).toEqual([
      {
        path: 'market_ids',
        message: 'is required and must be a comma list of 1 to 100 market ids of 1 to 256 characters',
      },
    ]);
  });

  it('may not be every field of a PATCH', async () => {
    const patched = operationsOf(api.contract.document).filter(({ method }) => method === 'patch');
    expect(patched.map(({ path }) => path)).toContain('/v1/alerts/{alert_id}');
    for (const { path, operation } of patched) {
      const schema = resolved(operation.requestBody?.content['application/json']?.schema ?? {});
      expect([path, schema['minProperties']]).toEqual([path, 1]);
      const answer = await client.account('PATCH', targetOf(path), {});
      expect([path, answer.status, answer.body.error.details]).toEqual([
        path,
        400,
        [{ path: 'body', message: 'must have at least one field' }],
      ]);
    }
  });
});

/** The schema itself, in place of a reference to it. */
function resolved(schema: JsonSchema): JsonSchema {
  const { $ref } = schema;
  return typeof $ref === 'string' ? (api.contract.resolve($ref) as JsonSchema) : schema;
}
