import { readFile, writeFile } from 'node:fs/promises';
import { REGULAR } from '../../sim/traders/wallets.ts';
import { walletOf } from '../../sim/world/identity.ts';
import { type DemoAlert, type DemoApi, DemoApiError, type DemoMarket } from './api.ts';
import { HOOK_PREFIX } from './setup.ts';

/** Every event type. */
const EVENTS = ['price_alert', 'transaction', 'balance_change'];

/** The maximum of active alerts of the demo, and of triggered ones that stay visible. */
const WAITING = 4;
const KEPT_TRIGGERED = 10;
/** Prices outside of this range hardly move. */
const LOWEST_PRICE = 0.05;
const HIGHEST_PRICE = 0.95;
/** One tick away: random traders reach it within a minute. */
const DISTANCE = 0.01;

/** The demo's one subscription, identified by its path, because the port may differ from the last run. */
export async function registerWebhook(api: DemoApi, hook: { url: string; secret: string }): Promise<string> {
  const { pathname } = new URL(hook.url);
  const mine = (await api.webhooks()).filter(({ url }) => new URL(url).pathname.startsWith(HOOK_PREFIX));
  const known = mine.find(({ url }) => new URL(url).pathname === pathname);
  for (const { id } of mine) {
    if (id !== known?.id) await api.deleteWebhook(id);
  }
  if (known === undefined) {
    const made = await api.createWebhook({ url: hook.url, events: EVENTS, secret: hook.secret });
    return made.id;
  }
  const isListening = EVENTS.every((event) => known.events.includes(event));
  if (known.url !== hook.url || known.status !== 'active' || !isListening) {
    await api.updateWebhook(known.id, { url: hook.url, status: 'active', events: EVENTS });
  }
  return known.id;
}

/** The ids of alerts that the demo created, in order, kept in a file: the user's alerts are never changed. */
export async function openDemoAlerts(file: string) {
  let ids = await readIds(file);

  async function remember(next: string[]): Promise<void> {
    ids = next;
    await writeFile(file, `${JSON.stringify(ids)}\n`);
  }

  return {
    /** Removes deleted alerts from the list, deletes alerts of earlier runs, and sets new ones close to the current prices. */
    async renew(api: DemoApi, webhookId: string, markets: readonly DemoMarket[]): Promise<void> {
      const known = new Map((await api.alerts()).map((alert) => [alert.id, alert]));
      const mine = ids.map((id) => known.get(id)).filter((alert) => alert !== undefined);
      const waiting = mine.filter(({ status }) => status === 'active');
      const over = mine.filter(({ status }) => status !== 'active');
      // Prices have moved away from alerts that were not met in a whole round: the oldest half is replaced.
      const excess = [
        ...over.slice(0, -KEPT_TRIGGERED),
        ...waiting.slice(0, Math.max(0, waiting.length - WAITING / 2)),
      ];
      for (const { id } of excess) await deleteIfThere(api, id);
      const gone = new Set(excess.map(({ id }) => id));
      const left = mine.filter(({ id }) => !gone.has(id));
      const free = WAITING - left.filter(({ status }) => status === 'active').length;
      const made = await setAround(api, webhookId, markets, free);
      await remember([...left, ...made].map(({ id }) => id));
    },
    /** An alert whose condition is already met, so that the first event comes at once. */
    async fireOne(api: DemoApi, webhookId: string, markets: readonly DemoMarket[]): Promise<void> {
      const [quote] = await quotes(api, markets, 1);
      if (quote === undefined) return;
      const { tokenMint, price } = quote;
      const alert = await api.createAlert({ tokenMint, condition: 'above', price, webhookId });
      await remember([...ids, alert.id]);
    },
  };
}

interface Quote {
  readonly tokenMint: string;
  readonly price: number;
}

async function setAround(
  api: DemoApi,
  webhookId: string,
  markets: readonly DemoMarket[],
  count: number,
): Promise<DemoAlert[]> {
  const made: DemoAlert[] = [];
  for (const { tokenMint, price } of await quotes(api, markets, Math.ceil(count / 2))) {
    for (const [condition, target] of [
      ['above', price + DISTANCE],
      ['below', price - DISTANCE],
    ] as const) {
      if (made.length >= count) return made;
      made.push(await api.createAlert({ tokenMint, condition, price: Number(target.toFixed(4)), webhookId }));
    }
  }
  return made;
}

/** Current prices of the first outcomes of some random markets whose price can still move. */
async function quotes(api: DemoApi, markets: readonly DemoMarket[], count: number): Promise<Quote[]> {
  const found: Quote[] = [];
  const shuffled = markets
    .map((market) => ({ market, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ market }) => market);
  for (const { market_id } of shuffled) {
    if (found.length >= count) break;
    const outcome = (await api.price(market_id))?.outcomes[0];
    if (outcome === undefined) continue;
    // With DECIMAL_FORMAT=string it is text.
    const price = Number(outcome.price);
    if (price > LOWEST_PRICE && price < HIGHEST_PRICE) found.push({ tokenMint: outcome.outcome_id, price });
  }
  return found;
}

async function deleteIfThere(api: DemoApi, id: string): Promise<void> {
  try {
    await api.deleteAlert(id);
  } catch (error) {
    if (!(error instanceof DemoApiError) || error.status !== 404) throw error;
  }
}

async function readIds(file: string): Promise<string[]> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as string[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** The simulator's default wallet. */
const SEED = 1;

/** Watches the simulated exchange's most active small trader: its trades and balances become events. */
export async function watchRegular(api: DemoApi): Promise<void> {
  const { address } = walletOf(SEED, REGULAR);
  const known = await api.wallets();
  if (known.some((wallet) => wallet.address === address)) return;
  await api.createWallet({ venue: 'polymarket', address, label: 'a regular of the simulated exchange' });
}
