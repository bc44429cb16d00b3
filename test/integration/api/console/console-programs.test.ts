import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { createClient } from '../../../../clients/typescript/src/index.ts';
import { newId } from '../../../../src/domain/values/ids.ts';
import { aSubscription } from '../../../factories/alerts.ts';
import { aDelivery } from '../../../factories/deliveries.ts';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { aStoredPrice } from '../../../factories/stored-series.ts';
import { useTestApi } from '../api-harness.ts';
import { signIn } from './console-client.ts';

const CHECK = fileURLToPath(new URL('check-python-example.py', import.meta.url));
const api = useTestApi({ console: {} });

type Program = (client: typeof createClient, key: string, output: { log(value: unknown): void }) => Promise<void>;
const AsyncFunction = (async () => undefined).constructor as new (...code: string[]) => Program;

/** A program of a page as text. */
function textOfProgram(page: string, language: 'typescript' | 'python'): string {
  const [, shown = ''] = new RegExp(`<pre id="program-${language}"[^>]*>([\\s\\S]*?)</pre>`).exec(page) ?? [];
  return shown
    .replaceAll(/<[^>]+>/g, '')
    .replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCharCode(Number(code)))
    .replaceAll('&quot;', '"')
    .replaceAll('&gt;', '>')
    .replaceAll('&lt;', '<')
    .replaceAll('&amp;', '&');
}

/** The TypeScript program of a page, ready to run. A stream has no end, so its loop is left out. */
function programOf(page: string): Program {
  const code = textOfProgram(page, 'typescript').replace(/^import .*\n/, '');
  return new AsyncFunction('createClient', 'key', 'console', code.replace(/^const stream = [\s\S]*/m, ''));
}

/** Runs the Python program of a page with the package of the repository. */
function runPython(page: string, key: string) {
  // A stream has no end: the first message ends its loop.
  const code = textOfProgram(page, 'python').replace(/^( {4}for (?:message|event) in .*:\n)( {8})/m, '$1$2break\n$2');
  const env = { ...process.env, PYTHONPATH: 'clients/python/src' };
  return promisify(execFile)(PYTHON, ['-c', `key = ${JSON.stringify(key)}\n${code}`], { env });
}

const PYTHON = process.env['CLIENT_PYTHON'] ?? 'python3';
const canParse = spawnSync(PYTHON, ['--version']).status === 0;
const canRun = spawnSync(PYTHON, ['-c', 'import httpx']).status === 0;
const QUOTES = `Will the "owl" of O'Neill \\ hoot?`;

/** Pages with programs. */
async function aDesk() {
  const browser = await signIn(api);
  const { accountId } = browser;
  const eventId = `o'wls "${newId('evt')}"`;
  const { outcomes, marketId } = await aStoredMarket(api.db, { title: QUOTES, eventId });
  const id = newId('wh');
  const pk = await aSubscription(api.db, { id, accountId, url: 'https://hooks.test/x', events: ['price_alert'] });
  const delivery = await aDelivery(api.db, { accountId, subscriptionPk: pk });
  const fields = { tokenMint: outcomes[0]?.outcomeId ?? '', condition: 'above', price: '0.25' };
  const alert = (await browser.post('/alerts', fields)).headers.get('location') ?? '';
  const market = `/markets/polymarket/${marketId}`;
  await aStoredPrice(api.db, outcomes[0]?.tokenId ?? 0n, { price: '0.5', asOf: new Date() });
  const paths = [
    '/alerts',
    alert,
    '/webhooks',
    `/webhooks/${id}`,
    `/webhooks/${id}/deliveries/${delivery.id}`,
    '/usage',
    market,
    `/events/polymarket/${encodeURIComponent(eventId)}`,
  ];
  return { browser, paths };
}

it('the TypeScript program of each page runs against the API', async () => {
  const { browser, paths } = await aDesk();
  for (const path of paths) {
    const program = programOf((await browser.page(path)).text);
    const run = program(createClient, browser.key, { log: () => undefined });
    await expect(run, path).resolves.toBeUndefined();
  }
});

it.runIf(canParse)('the Python program of each page calls the Python client as its signatures ask', async () => {
  const { browser, paths } = await aDesk();
  const calls = [];
  for (const path of [...paths, '/live']) {
    const input = textOfProgram((await browser.page(path)).text, 'python');
    const { status, stdout, stderr } = spawnSync(PYTHON, [CHECK], { input, encoding: 'utf8' });
    expect([path, status, stderr]).toEqual([path, 0, '']);
    calls.push(stdout.trim());
  }
  expect(calls).toContain('markets.prices candles.list markets.resolution stream');
});

it.runIf(canRun)('the Python program of each page runs against the API', async () => {
  const { browser, paths } = await aDesk();
  for (const path of paths) {
    await expect(runPython((await browser.page(path)).text, browser.key), path).resolves.toMatchObject({ stderr: '' });
  }
});
