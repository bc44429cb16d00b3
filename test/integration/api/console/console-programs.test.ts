import { expect, it } from 'vitest';
import { createClient } from '../../../../clients/typescript/src/index.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { aSubscription } from '../../../factories/alerts.ts';
import { aDelivery } from '../../../factories/deliveries.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { useTestApi } from '../api-harness.ts';
import { signIn } from './console-client.ts';

const api = useTestApi({ console: {} });

type Program = (client: typeof createClient, key: string, output: { log(value: unknown): void }) => Promise<void>;
const AsyncFunction = (async () => undefined).constructor as new (...code: string[]) => Program;

/** The TypeScript program of a page, ready to run. */
function programOf(page: string): Program {
  const [, shown = ''] = /<pre id="program-typescript"[^>]*>([\s\S]*?)<\/pre>/.exec(page) ?? [];
  const code = shown
    .replaceAll(/<[^>]+>/g, '')
    .replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
    .replaceAll('&quot;', '"')
    .replaceAll('&gt;', '>')
    .replaceAll('&lt;', '<')
    .replaceAll('&amp;', '&');
  return new AsyncFunction('createClient', 'key', 'console', code.replace(/^import .*\n/, ''));
}

it('the TypeScript program of each page runs against the API', async () => {
  const browser = await signIn(api);
  const { accountId } = browser;
  const { outcomes } = await aStoredMarket(api.db, { title: 'Will the owl hoot?', eventId: 'owls' });
  const id = newId('wh');
  const pk = await aSubscription(api.db, { id, accountId, url: 'https://hooks.test/x', events: ['price_alert'] });
  const delivery = await aDelivery(api.db, { accountId, subscriptionPk: pk });
  const fields = { tokenMint: outcomes[0]?.outcomeId ?? '', condition: 'above', price: '0.25' };
  const alert = (await browser.post('/alerts', fields)).headers.get('location') ?? '';
  const paths = [
    '/alerts',
    alert,
    '/webhooks',
    `/webhooks/${id}`,
    `/webhooks/${id}/deliveries/${delivery.id}`,
    '/usage',
  ];
  for (const path of [...paths, '/events/polymarket/owls']) {
    const program = programOf((await browser.page(path)).text);
    const run = program(createClient, browser.key, { log: () => undefined });
    await expect(run, path).resolves.toBeUndefined();
  }
});
