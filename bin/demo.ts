import { readFile, writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { coloursOf } from '../cli/output.ts';
import { REGULAR } from '../sim/traders/wallets.ts';
import { walletOf } from '../sim/world/identity.ts';
import { hasDuckdb } from '../src/archive/duckdb.ts';
import { loadFeeds } from '../src/config/config.ts';
import { asError } from '../src/domain/values/errors.ts';
import { connectDemoApi, type DemoAlert, type DemoApi, DemoApiError, type DemoMarket } from './demo/api.ts';
import { bannerText } from './demo/banner.ts';
import { createEventLines } from './demo/event-lines.ts';
import { findFirstPrice } from './demo/first-price.ts';
import { demoFolder } from './demo/folder.ts';
import { type DemoSetup, HOOK_PREFIX, setUpDemo } from './demo/setup.ts';
import { openSignIn } from './demo/sign-in.ts';
import { runnerCommand, type Terminal } from './terminal.ts';

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
async function registerWebhook(api: DemoApi, hook: { url: string; secret: string }): Promise<string> {
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
async function openDemoAlerts(file: string) {
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
async function watchRegular(api: DemoApi): Promise<void> {
  const { address } = walletOf(SEED, REGULAR);
  const known = await api.wallets();
  if (known.some((wallet) => wallet.address === address)) return;
  await api.createWallet({ venue: 'polymarket', address, label: 'a regular of the simulated exchange' });
}

const RENEW_EVERY_MS = 20_000;
const MARKETS = 25;
const PAST_SECONDS = 2 * 86_400;

/** `oddswire demo`: `oddswire start` with a simulated exchange to poll and a receiver to deliver to. */
export const command = runnerCommand({
  usage: `usage: oddswire demo [--small]

  Runs every process on a simulated exchange, with a local webhook receiver, until Ctrl-C. The data is in DATA_DIR/demo.
  Other oddswire commands find it while it runs.`,
  // The banner must stay readable.
  logLevel: 'warn',
  async prepare(terminal) {
    const { environment, log, say, signal } = terminal;
    const demoDir = demoFolder(terminal.dataDir);
    const setup = await setUpDemo(demoDir, environment, log);
    say(`demo: starting, with the data in ${demoDir}`);
    let api: DemoApi | undefined;
    let onFirstPrice: () => void = () => undefined;
    const firstPrice = new Promise<void>((resolve) => {
      onFirstPrice = resolve;
    });
    const events = createEventLines({
      titleOf: async (venue, marketId) => (await api?.title(venue, marketId)) ?? marketId,
      say,
      colours: coloursOf(process.stdout.isTTY, environment),
    });
    return {
      environment: setup.environment,
      dataDir: demoDir,
      companions: setup.companions,
      othersAfter: firstPrice,
      onStep: (text) => say(`demo: ${text} (${secondsSinceStart()} s)`),
      takeLine: (name, line) => name === 'receiver' && events.take(line),
      onStarted(apiUrl) {
        api = connectDemoApi(apiUrl, setup.apiKey, signal);
        return runDemo(api, { ...terminal, apiUrl, setup, onFirstPrice });
      },
    };
  },
});

function secondsSinceStart(): number {
  return Math.round(performance.now() / 1_000);
}

interface DemoRun extends Terminal {
  readonly apiUrl: string;
  readonly setup: DemoSetup;
  readonly onFirstPrice: () => void;
}

async function runDemo(api: DemoApi, run: DemoRun): Promise<void> {
  const { apiUrl, setup, onFirstPrice, signal, log, say } = run;
  const found = await findFirstPrice({ api, signal, say, nowMs: () => performance.now() });
  const readyMs = performance.now();
  onFirstPrice();
  const { apiKey, opsPassword, receiverUrl, environment } = setup;
  const demoDir = demoFolder(run.dataDir);
  const archiveDir = hasDuckdb() ? environment['ARCHIVE_DIR'] : undefined;
  const signIn = await openSignIn({ environment, demoDir, apiUrl, log });
  const facts = { apiUrl, apiKey, opsPassword, receiverUrl, dataDir: demoDir, archiveDir, signIn, ...found };
  say(bannerText({ ...facts, ...loadFeeds(environment) }));
  say(`first price served after ${Math.round(readyMs)} ms (market ${found.marketId})`);
  await keepAlerts(api, setup, signal);
}

/** The trades of the days before fill the archive: their days are over. */
async function askPast(api: DemoApi, markets: readonly DemoMarket[]): Promise<void> {
  const start = Math.floor(Date.now() / 1_000) - PAST_SECONDS;
  for (const { market_id } of markets) await api.askTrades(market_id, start);
}

/** Keeps events coming for as long as the demo runs; a short outage of the API is retried. */
async function keepAlerts(api: DemoApi, setup: DemoSetup, signal: AbortSignal): Promise<void> {
  const alerts = await openDemoAlerts(setup.alertsFile);
  let isFirst = true;
  let isErrorPrinted = false;
  while (!signal.aborted) {
    try {
      const webhookId = await registerWebhook(api, { url: setup.hookUrl, secret: setup.hookSecret });
      await watchRegular(api);
      const markets = await api.markets(MARKETS);
      if (isFirst) {
        await alerts.fireOne(api, webhookId, markets);
        await askPast(api, markets);
      }
      isFirst = false;
      await alerts.renew(api, webhookId, markets);
    } catch (error) {
      if (!signal.aborted && !isErrorPrinted) console.log(`demo: ${asError(error).message}; retrying`);
      isErrorPrinted = true;
    }
    await delay(RENEW_EVERY_MS, undefined, { signal });
  }
}
