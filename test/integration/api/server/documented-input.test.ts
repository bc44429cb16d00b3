import { describe, expect, it } from 'vitest';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

type Schema = {
  type?: string;
  anyOf?: Schema[];
  minimum?: number;
  maximum?: number;
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  properties?: Record<string, Schema>;
  propertyNames?: Schema;
  minProperties?: number;
};
type Operation = {
  parameters?: { name: string; schema: Schema }[];
  requestBody?: { content: Record<string, { schema: Schema }> };
};

function operationOf(method: 'get' | 'post', path: string): Operation {
  const { paths } = api.contract.document as unknown as { paths: Record<string, Record<string, Operation>> };
  const operation = paths[path]?.[method];
  if (!operation) throw new TypeError(`the document has no ${method} ${path}`);
  return operation;
}

function permits({ pattern = '', minLength = 0 }: Schema, text: string): boolean {
  return text.length >= minLength && new RegExp(pattern, 'u').test(text);
}

/** Whether an answer names a field as wrong. */
async function refuses(answer: ReturnType<typeof api.call>, field: string): Promise<boolean> {
  const { details = [] } = (await answer).body.error ?? {};
  return details.some(({ path }) => path === field);
}

describe('the document and the API agree', () => {
  it.each(['0', '0.00', '000', '0.001', '10', '1.', '.5', '-1', '1e3'])('on the size %j of an order', async (size) => {
    const path = '/v1/{venue}/markets/{market_id}/executable';
    const schema = operationOf('get', path).parameters?.find(({ name }) => name === 'size')?.schema ?? {};
    const answer = client.market(`/v1/all/markets/m1/executable?side=buy&size=${size}`);
    expect(await refuses(answer, 'size')).toBe(!permits(schema, size));
  });

  it.each([{}, { category: 'Weather' }])('on the scope %j of an alert', async (scope) => {
    const body = operationOf('post', '/v1/alerts').requestBody?.content['application/json']?.schema.properties ?? {};
    const isPermitted = Object.keys(scope).length >= (body['scope']?.minProperties ?? 0);
    const answer = client.account('POST', '/v1/alerts', { condition: 'crosses_above', price: 0.5, scope });
    expect(await refuses(answer, 'scope')).toBe(!isPermitted);
  });

  it.each(['2026-01-01T00:00:00Z', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59-12:00', 0, -1, 253402300800])(
    'on the start %j of a backtest',
    async (start) => {
      const body = operationOf('post', '/v1/alerts/backtest').requestBody?.content['application/json']?.schema;
      const seconds = body?.properties?.['start']?.anyOf?.find(({ type }) => type === 'integer');
      const { minimum = 0, maximum = 0 } = seconds ?? {};
      const isPermitted = typeof start === 'string' || (start >= minimum && start <= maximum);
      const answer = client.account('POST', '/v1/alerts/backtest', { alert: {}, start, end: '2026-01-02T00:00:00Z' });
      expect(await refuses(answer, 'start')).toBe(!isPermitted);
    },
  );

  it.each(['laptop', '', ' ', '\u00a0', '\u0085', 'a\u0007', 'a b'])('on the name %j of a key', async (name) => {
    const body = operationOf('post', '/v1/keys').requestBody?.content['application/json']?.schema.properties ?? {};
    const answer = client.account('POST', '/v1/keys', { name, scopes: ['markets:read'] });
    expect(await refuses(answer, 'name')).toBe(!permits(body['name'] ?? {}, name));
  });

  it.each(['X-Team', '', 'a b', 'Host', 'HOST', 'X-Webhook-Id', 'proxy-x', 'Via', 'Viable', 'x'.repeat(65)])(
    'on the name %j of a header of a webhook',
    async (name) => {
      const body = operationOf('post', '/v1/webhooks').requestBody?.content['application/json']?.schema.properties;
      const { pattern = '', maxLength = 0 } = body?.['headers']?.propertyNames ?? {};
      const given = { url: 'https://hooks.example.com', events: ['price_alert'], headers: { [name]: 'a' } };
      const isPermitted = name.length <= maxLength && new RegExp(pattern, 'u').test(name);
      expect(await refuses(client.account('POST', '/v1/webhooks', given), `headers.${name}`)).toBe(!isPermitted);
    },
  );

  it.each([
    'https://hooks.example.com/a',
    'HTTPS://hooks.example.com',
    'http://hooks.example.com',
    'https://',
    'https:///a',
    'https://hooks.example.com/a b',
    'https://hooks.example.com\\a',
    'https://hooks.example.com/\u0085',
  ])('on the URL %j of a webhook', async (url) => {
    const body = operationOf('post', '/v1/webhooks').requestBody?.content['application/json']?.schema.properties ?? {};
    const answer = client.account('POST', '/v1/webhooks', { url, events: ['price_alert'] });
    expect(await refuses(answer, 'url')).toBe(!permits(body['url'] ?? {}, url));
  });
});
