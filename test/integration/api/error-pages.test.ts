import { beforeAll, expect, it } from 'vitest';
import { textOf } from '../../support/html-text.ts';
import { useTestApi } from './api-harness.ts';
import { type ConsoleClient, signIn } from './console/console-client.ts';
import { logIn, type OpsClient, testOps } from './ops/ops-client.ts';

const api = useTestApi({ console: {}, ops: testOps() });
let clients: Record<'console' | 'ops', ConsoleClient | OpsClient>;
beforeAll(async () => {
  clients = { console: await signIn(api), ops: await logIn(api) };
});

it.each([
  ['console', '/markets?venue=nowhere', 400],
  ['console', '/markets/polymarket/unknown', 404],
  ['console', '/webhooks/wh_unknown', 404],
  ['console', '/alerts/unknown', 404],
  ['console', '/markets/a/b/c', 404],
  ['ops', '/ops/deliveries?status=lost', 400],
  ['ops', '/ops/deliveries/dlv_unknown', 404],
  ['ops', '/ops/nowhere', 404],
] as const)('an error page of the %s shows the request id of its header: %s', async (kind, path, status) => {
  const answer = await clients[kind].page(path);
  expect(answer.status).toBe(status);
  const id = answer.headers.get('x-request-id') ?? '';
  expect(id).not.toBe('');
  const [hint = ''] = /<p class="hint">Request .*<\/p>/.exec(answer.text) ?? [];
  expect(textOf(hint)).toBe(`Request ${id}`);
});

it.each([
  ['console', '/alerts'],
  ['ops', '/ops/keys'],
] as const)('the page of a rejected form of the %s shows the request id of its header', async (kind, path) => {
  const answer = await clients[kind].post(path, { csrf: 'of-another-session' });
  expect(answer.status).toBe(403);
  expect(answer.text).toContain(`Request <code>${answer.headers.get('x-request-id')}</code>`);
});

it('the page of a failed form with another method shows the request id of its header', async () => {
  const answer = await clients.ops.post('/ops/markets');
  expect(answer.status).toBe(405);
  expect(answer.text).toContain(`Request <code>${answer.headers.get('x-request-id')}</code>`);
});
