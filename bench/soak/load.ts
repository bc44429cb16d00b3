import { FIRST_RETAIL } from '../../sim/traders/wallets.ts';
import { walletOf } from '../../sim/world/identity.ts';
import { alarmsOf, type ComparedVenue, uncomparedVenues } from '../../test/e2e/completeness.ts';
import { eventually } from '../../test/support/eventually.ts';
import type { Fleet } from '../../test/support/processes/fleet.ts';
import { WEBHOOK_SECRET } from '../../test/support/processes/system.ts';
import { SOAK_VENUES, type SoakOptions } from './options.ts';
import { Steady } from './steady.ts';

interface Market {
  market_id: string;
  venue: string;
}
interface Price {
  outcomes: { outcome_id: string; price: number }[];
}
/** A market with a price: its path, and one of its outcomes. */
interface Quoted {
  path: string;
  outcomeId: string;
  price: number;
}

/** Alerts that never fire; a new one replaces the oldest. */
const UNMET_ALERTS = 50;
/** Markets whose older trades are requested in a run, evenly distributed; the run has about thirty. */
const BACKFILLS = 36;
const POLYMARKET_WALLETS = 6;
/** The flaky receiver fails for part of each period, each time in a different way. */
const FLAKY_EVERY_MS = 45_000;
const FLAKY_FOR_MS = 6_000;
const DAY_SECONDS = 86_400;
const VENUES_EVERY_MS = 2_000;
const MAX_ALARMS = 100;

/** The webhooks of the soak, created before the first delivery. */
export interface Webhooks {
  readonly steady: string;
  readonly flaky: string;
}

export async function createWebhooks(fleet: Fleet): Promise<Webhooks> {
  const create = async (path: string, events: string[]) =>
    (
      await fleet.call<{ id: string }>('POST', '/v1/webhooks', {
        url: `${fleet.receiver.url}/${path}`,
        events,
        secret: WEBHOOK_SECRET,
      })
    ).id;
  const events = ['price_alert', 'transaction', 'balance_change'];
  const webhooks = { steady: await create('steady', events), flaky: await create('flaky', events) };
  fleet.receiver.replyWith((request, response) => {
    const phase = Date.now() % FLAKY_EVERY_MS;
    if (request.path !== '/flaky' || phase > FLAKY_FOR_MS) return {};
    switch (Math.floor(Date.now() / FLAKY_EVERY_MS) % 3) {
      case 0:
        return { status: 500 };
      case 1:
        response.destroy();
        return undefined;
      default:
        return { delayMs: 3_000 };
    }
  });
  return webhooks;
}

/**
 * The steady load: watched wallets; alerts created, met and deleted; hot and cold reads; occasional requests for older trades.
 * `load` multiplies the rates. Resolves once every venue has prices, with the load running.
 */
export async function startLoad(
  fleet: Fleet,
  webhooks: Webhooks,
  { load, seconds }: Pick<SoakOptions, 'load' | 'seconds'>,
): Promise<Steady> {
  await watchWallets(fleet);
  let quoted = await eventually(
    () => quotes(fleet),
    (found) => SOAK_VENUES.every((venue) => found.some(({ path }) => path.startsWith(`/v1/${venue}/`))),
    { everyMs: 500 },
  );
  const steady = new Steady();
  const at = (turn: number): Quoted => {
    const found = quoted[turn % quoted.length];
    if (!found) throw new Error('no market has a price');
    return found;
  };
  const every = (period: number) => (period * 1000) / load;

  steady.start('quotes', 20_000, async () => {
    quoted = await quotes(fleet);
  });
  startAlerts(fleet, steady, webhooks, { every, at });
  const kinds = ['prices', 'trades?limit=50', 'candles?interval=1m', 'snapshots', 'volume?window=1h', ''];
  for (const [index, kind] of kinds.entries()) {
    steady.start(`read ${kind}`, every(0.5), async (turn) => {
      // Few markets, so that most answers come from the cache.
      const { path } = at((turn % 6) * 7 + index);
      await fleet.read(kind === '' ? path : `${path}/${kind}`);
    });
  }
  steady.start('read catalog', every(1), async (turn) => {
    const venue = SOAK_VENUES[turn % SOAK_VENUES.length];
    await fleet.read(`/v1/${venue}/markets?status=open&limit=${20 + (turn % 5)}`);
  });
  startColdReads(fleet, steady, { every, at, quoted: () => quoted, seconds });
  return steady;
}

/** The false alarms of the witness from now on, while no feed loses a trade. The first hundred are kept. */
export function watchAlarms(fleet: Fleet, steady: Steady): readonly string[] {
  const alarms: string[] = [];
  steady.start('read venues', VENUES_EVERY_MS, async () => {
    const at = new Date().toISOString();
    alarms.push(...alarmsOf(await soakVenues(fleet)).map((alarm) => `${at} ${alarm}`));
    alarms.splice(MAX_ALARMS);
  });
  return alarms;
}

/** Resolves once the stored trades of every venue were compared with its totals. */
export async function comparedOnce(fleet: Fleet): Promise<void> {
  await eventually(
    async () => uncomparedVenues(await soakVenues(fleet)),
    (missing) => missing.length === 0,
    { everyMs: 500 },
  );
}

async function soakVenues(fleet: Fleet): Promise<ComparedVenue[]> {
  const isSoakVenue = ({ venue }: ComparedVenue) => (SOAK_VENUES as readonly string[]).includes(venue);
  return (await fleet.read<ComparedVenue[]>('/v1/venues')).filter(isSoakVenue);
}

interface Pace {
  /** Milliseconds of a period given in seconds. */
  every(period: number): number;
  at(turn: number): Quoted;
}

function startAlerts(fleet: Fleet, steady: Steady, webhooks: Webhooks, { every, at }: Pace): void {
  const create = (body: object) => fleet.call<{ id: string }>('POST', '/v1/alerts', body);
  steady.start('alert met at once', every(1), async (turn) => {
    const { outcomeId } = at(turn);
    // Every third targets the flaky receiver too: an alert without a webhook of its own targets all.
    const webhook = turn % 3 === 0 ? {} : { webhookId: webhooks.steady };
    await create({ tokenMint: outcomeId, condition: 'above', price: 0.000_1, ...webhook });
  });
  steady.start('alert near the price', every(1), async (turn) => {
    const { outcomeId, price } = at(turn);
    const condition = turn % 2 === 0 ? 'above' : 'below';
    const target = Math.min(0.999, Math.max(0.001, price + (turn % 2 === 0 ? 0.01 : -0.01)));
    await create({ tokenMint: outcomeId, condition, price: Number(target.toFixed(3)) });
  });
  // Deleted while their deliveries are pending: the event must keep its facts.
  const unmet: string[] = [];
  steady.start('alert never met', every(2), async (turn) => {
    const { id } = await create({ tokenMint: at(turn).outcomeId, condition: 'above', price: 0.999_9 });
    unmet.push(id);
    const oldest = unmet.length > UNMET_ALERTS ? unmet.shift() : undefined;
    if (oldest !== undefined) await fleet.call('DELETE', `/v1/alerts/${oldest}`);
  });
  steady.start('read alerts', every(5), async () => void (await fleet.call('GET', '/v1/alerts?limit=100')));
}

function startColdReads(
  fleet: Fleet,
  steady: Steady,
  { every, at, quoted, seconds }: Pace & { quoted(): Quoted[]; seconds: number },
): void {
  // Many more markets than polled books, so that the book of a market is old when its turn comes again.
  steady.start('cold book', every(2), async (turn) => {
    const books = quoted().filter(({ path }) => !path.startsWith('/v1/manifold/'));
    const { path } = books[turn % books.length] ?? at(turn);
    await fleet.read(`${path}/orderbook`).catch(unlessNotAvailable);
  });
  steady.start('old trades', (seconds * 1000) / BACKFILLS, async (turn) => {
    const end = Math.floor(Date.now() / 1000) - (turn % 5) * DAY_SECONDS;
    await fleet.read(`${at(turn).path}/trades?start=${end - 2 * DAY_SECONDS}&end=${end}&limit=100`);
  });
}

/** A slow book answer of a venue is not a failure of oddswire. */
function unlessNotAvailable(error: unknown): void {
  if (!String(error).includes('orderbook_not_available')) throw error;
}

async function watchWallets(fleet: Fleet): Promise<void> {
  const { exchange } = fleet;
  const addresses = Array.from({ length: POLYMARKET_WALLETS }, (_, no) => ({
    venue: 'polymarket',
    address: walletOf(exchange.seed, FIRST_RETAIL + no).address,
  }));
  const people = exchange.solana.people().map((address) => ({ venue: 'solana', address }));
  for (const wallet of [...addresses, ...people]) await fleet.call('POST', '/v1/wallets', wallet);
}

/** A price of each market, if it has one. */
async function quotes(fleet: Fleet): Promise<Quoted[]> {
  const found: Quoted[] = [];
  for (const venue of SOAK_VENUES) {
    for (const market of await fleet.read<Market[]>(`/v1/${venue}/markets?status=open&limit=50`)) {
      const path = `/v1/${venue}/markets/${encodeURIComponent(market.market_id)}`;
      const snapshot = await fleet.read<Price>(`${path}/prices`).catch(() => null);
      const first = snapshot?.outcomes.find(({ price }) => price > 0.05 && price < 0.95);
      if (first) found.push({ path, outcomeId: first.outcome_id, price: first.price });
    }
  }
  return found;
}
