import { setTimeout as delay } from 'node:timers/promises';
import { coloursOf } from '../cli/output.ts';
import { hasDuckdb } from '../src/archive/duckdb.ts';
import { loadFeeds } from '../src/config/config.ts';
import { asError } from '../src/domain/values/errors.ts';
import { openDemoAlerts, registerWebhook, watchRegular } from './demo/alerts.ts';
import { connectDemoApi, type DemoApi, type DemoMarket } from './demo/api.ts';
import { bannerText } from './demo/banner.ts';
import { createEventLines } from './demo/event-lines.ts';
import { findFirstPrice } from './demo/first-price.ts';
import { demoFolder } from './demo/folder.ts';
import { type DemoSetup, setUpDemo } from './demo/setup.ts';
import { openSignIn } from './demo/sign-in.ts';
import { runnerCommand, type Terminal } from './terminal.ts';

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
