import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { asError } from '../src/domain/values/errors.ts';
import { openDemoAlerts, registerWebhook } from './demo/alerts.ts';
import { connectDemoApi, type DemoApi } from './demo/api.ts';
import { bannerText } from './demo/banner.ts';
import { type DemoSetup, setUpDemo } from './demo/setup.ts';
import { watchRegular } from './demo/wallet.ts';
import { runInTerminal } from './terminal.ts';

/** `npm run demo`: `npm start` with a simulated exchange to poll and a receiver to deliver to. */

/** The banner appears after at most this time, with or without a price. */
const BANNER_BY_MS = 13_000;
const LOOK_EVERY_MS = 100;
const RENEW_EVERY_MS = 20_000;
const MARKETS = 25;

// The banner must stay readable.
process.env['LOG_LEVEL'] ||= 'warn';

await runInTerminal(async ({ environment, dataDir, log, signal }) => {
  // A cluster of its own, because simulated markets must not mix with real ones.
  const demoDir = join(dataDir, 'demo');
  const setup = await setUpDemo(demoDir, environment, log);
  return {
    environment: setup.environment,
    dataDir: demoDir,
    companions: setup.companions,
    onStarted(apiUrl) {
      const api = connectDemoApi(apiUrl, setup.apiKey, signal);
      tell(api, apiUrl, setup, demoDir, signal).catch((error: unknown) => {
        if (!signal.aborted) log.warn({ reason: asError(error).message }, 'the demo stopped setting alerts');
      });
    },
  };
});

async function tell(
  api: DemoApi,
  apiUrl: string,
  setup: DemoSetup,
  demoDir: string,
  signal: AbortSignal,
): Promise<void> {
  const facts = { apiUrl, apiKey: setup.apiKey, opsPassword: setup.opsPassword, dataDir: demoDir };
  const search = searchPrice(api, signal);
  const found = await Promise.race([search.found, delay(Math.max(0, BANNER_BY_MS - performance.now()), null)]);
  if (signal.aborted) return;
  console.log(bannerText({ ...facts, marketId: found?.marketId ?? null, outcomeId: found?.outcomeId ?? null }));
  if (found === null) console.log(`no price yet: ${search.obstacle()}`);
  const { afterMs, marketId } = await search.found;
  console.log(`first price served after ${afterMs} ms (market ${marketId})`);
  await keepAlerts(api, setup, signal);
}

interface FirstPrice {
  readonly marketId: string;
  readonly outcomeId: string;
  /** Measured from the start of this process. */
  readonly afterMs: number;
}

/** Waits until the API serves a market with a price; `obstacle` returns the latest reason to wait. */
function searchPrice(api: DemoApi, signal: AbortSignal): { found: Promise<FirstPrice>; obstacle: () => string } {
  let reason = 'no market yet';

  async function look(): Promise<FirstPrice | null> {
    try {
      for (const { market_id: marketId } of await api.markets(MARKETS)) {
        reason = 'no market has a price yet';
        const outcome = (await api.price(marketId))?.outcomes[0];
        if (outcome === undefined) continue;
        return { marketId, outcomeId: outcome.outcome_id, afterMs: Math.round(performance.now()) };
      }
    } catch (error) {
      // The API is still starting.
      reason = asError(error).message;
    }
    return null;
  }

  async function search(): Promise<FirstPrice> {
    for (;;) {
      const found = await look();
      if (found !== null) return found;
      await delay(LOOK_EVERY_MS, undefined, { signal });
    }
  }

  return { found: search(), obstacle: () => reason };
}

/** Keeps events coming for as long as the demo runs; a short outage of the API is retried. */
async function keepAlerts(api: DemoApi, setup: DemoSetup, signal: AbortSignal): Promise<void> {
  const alerts = await openDemoAlerts(setup.alertsFile);
  let isFirst = true;
  let hasComplained = false;
  while (!signal.aborted) {
    try {
      const webhookId = await registerWebhook(api, { url: setup.hookUrl, secret: setup.hookSecret });
      await watchRegular(api);
      const markets = await api.markets(MARKETS);
      if (isFirst) await alerts.fireOne(api, webhookId, markets);
      isFirst = false;
      await alerts.renew(api, webhookId, markets);
    } catch (error) {
      if (!signal.aborted && !hasComplained) console.log(`demo: ${asError(error).message}; retrying`);
      hasComplained = true;
    }
    await delay(RENEW_EVERY_MS, undefined, { signal });
  }
}
