import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { eventually } from '../test/support/eventually.ts';
import { createTestDatabase } from '../test/support/postgres/database.ts';
import { type Fleet, ofEach, startFleet } from '../test/support/processes/fleet.ts';
import { type CpuShares, startCpuShares } from './feeds/cpu-shares.ts';
import { type MovedMarket, type MoveTimes, measureMoves } from './feeds/price-moves.ts';
import { NODE_OPTIONS } from './support/node-options.ts';
import { percentile, sizeOf, whole } from './support/numbers.ts';
import { note, report } from './support/report.ts';

/** Moved markets, and moves of each. BENCH_MOVES=10 for the published figures. */
const MARKETS = 10;
const MOVES = sizeOf('BENCH_MOVES', 2);
/** Messages of the flooded feed per second. */
const FLOOD = sizeOf('BENCH_MESSAGES', 2_000);
const NOISY_MARKETS = 30;
const ROUND_MS = 20;
/** The defaults of a production system, unlike those of tests. */
const PRODUCTION = {
  POLL_MARKETS_MS: '60000',
  POLL_PRICES_MS: '5000',
  POLL_TRADES_MS: '2000',
  POLL_BOOKS_MS: '5000',
};

interface VenueState {
  feed?: { state: string; subscribed: number; messages_per_second: number };
}

interface Measured extends MoveTimes {
  /** Messages of the feed per second, by the streamer. */
  readonly messagesPerSecond: number;
  /** The state of the feed at the end. */
  readonly state: string;
  readonly cpu: CpuShares;
}

async function feedOf(fleet: Fleet): Promise<VenueState['feed']> {
  const [venue] = await fleet.read<VenueState[]>('/v1/venues');
  return venue?.feed;
}

/** Markets that are stored, with a price, and subscribed if there is a feed. */
async function readyMarkets(fleet: Fleet, hasFeed: boolean): Promise<MovedMarket[]> {
  const markets = fleet.exchange.state().markets.filter(({ phase, hasTraders }) => phase === 'open' && hasTraders);
  await eventually(
    () =>
      Promise.all(
        markets.map(({ conditionId }) =>
          fleet.read(`/v1/polymarket/markets/${conditionId}/prices`).then(
            () => true,
            () => false,
          ),
        ),
      ),
    (found) => found.every(Boolean),
    { timeoutMs: 60_000, everyMs: 500 },
  );
  if (hasFeed) {
    await eventually(
      () => feedOf(fleet),
      (feed) => feed?.state === 'live' && feed.subscribed >= 2 * markets.length,
      { timeoutMs: 60_000, everyMs: 500 },
    );
  }
  return markets.map(({ conditionId, outcomes }) => ({ marketId: conditionId, tokenId: outcomes[0].tokenId }));
}

/** Trades of these markets until the returned function ends them: some messages of the feed per trade. */
function startFlood({ exchange }: Fleet, markets: readonly MovedMarket[], perSecond: number): () => Promise<void> {
  let isOn = true;
  /** A forced price makes about this many messages. */
  const each = 12;
  const perRound = (perSecond * ROUND_MS) / 1_000 / each;
  async function run(): Promise<void> {
    let made = 0;
    let due = 0;
    while (isOn) {
      const begunMs = performance.now();
      // A round that is late is not caught up: the exchange and the clients of the bench share this process.
      for (due += perRound; due >= 1; due -= 1) {
        made += 1;
        const { tokenId } = markets[made % markets.length] ?? { tokenId: '' };
        exchange.forcePrice({ tokenId, price: ((20 + (made % 57)) / 100).toFixed(2), holdMs: 600_000 });
      }
      await delay(Math.max(1, begunMs + ROUND_MS - performance.now()));
    }
  }
  const running = run();
  return async () => {
    isOn = false;
    await running;
  };
}

/**
 * The exchange dates a change to the start of its second. Ahead by a second, none is older than the confirmation of the former quote, which
 * would delay it until the next poll. The venue itself states milliseconds.
 */
function lead({ exchange }: Fleet): void {
  exchange.pause();
  exchange.step(1);
  exchange.resume();
}

async function measure(feeds: 'on' | 'off', flood: number): Promise<Measured> {
  const database = await createTestDatabase();
  const fleet = await startFleet({
    databaseUrl: database.url,
    counts: { ...ofEach(1), streamer: feeds === 'on' ? 1 : 0 },
    exchange: {
      seed: 3,
      markets: MARKETS + NOISY_MARKETS,
      liveMarkets: MARKETS + NOISY_MARKETS,
      historyHours: 0.2,
      rollingSeconds: 0,
    },
    environment: { ...PRODUCTION, ...NODE_OPTIONS },
  });
  try {
    lead(fleet);
    const markets = await readyMarkets(fleet, feeds === 'on');
    const [moved, noisy] = [markets.slice(0, MARKETS), markets.slice(MARKETS)];
    const endFlood = flood > 0 ? startFlood(fleet, noisy, flood) : undefined;
    if (endFlood) await delay(3_000);
    const pauseMs = feeds === 'on' ? 500 : Number(PRODUCTION.POLL_BOOKS_MS);
    const endCpu = await startCpuShares(fleet, database.db);
    const times = await measureMoves(fleet, database.db, moved, { rounds: MOVES, pauseMs });
    const cpu = await endCpu();
    const { state = 'stopped', messages_per_second: messagesPerSecond = 0 } = (await feedOf(fleet)) ?? {};
    await endFlood?.();
    return { ...times, messagesPerSecond, state, cpu };
  } finally {
    await fleet.stop();
    await database.drop();
  }
}

const PARTS = [
  ['stored row', 'storedMs', 250],
  ['client of the stream', 'streamMs', 400],
  ['POST received', 'postMs', 500],
] as const;

it('measures a price from its change at the venue, with feeds beside polls alone', async () => {
  const polls = await measure('off', 0);
  const quiet = await measure('on', 0);
  const flooded = await measure('on', FLOOD);
  const text = (samples: number[]) =>
    `p50 ${whole(percentile(samples, 0.5))} ms, p99 ${whole(percentile(samples, 0.99))} ms`;
  for (const [title, measured] of [
    ['', quiet],
    [`, ${whole(flooded.messagesPerSecond)} messages/s`, flooded],
  ] as const) {
    report(
      PARTS.map(([part, key, goal]) => ({
        title: `venue change to ${part}, feed${title}, ${measured[key].length} changes`,
        measured: text(measured[key]),
        baseline: `polls alone: ${text(polls[key])}`,
        ratio: percentile(measured[key], 0.5) / percentile(polls[key], 0.5),
        goal: { atMost: goal, of: { name: 'p99', value: percentile(measured[key], 0.99), unit: 'ms' } },
      })),
    );
  }
  const percent = ({ cpu, state }: Measured) =>
    `${[...cpu].map(([name, share]) => `${name} ${(100 * share).toFixed(0)} %`).join(', ')}; feed ${state} at the end`;
  note(`CPU of a core: ${percent(quiet)}`);
  note(`with ${FLOOD} messages/s: ${percent(flooded)}`);
  const [load = 0] = loadavg();
  note(`the exchange, the receiver and the client of the stream share one process; load average ${load.toFixed(1)}`);
  for (const { storedMs, streamMs, postMs } of [polls, quiet, flooded]) {
    for (const samples of [storedMs, streamMs, postMs]) {
      expect(samples).toHaveLength(MARKETS * MOVES);
      expect(samples.every((ms) => Number.isFinite(ms))).toBe(true);
    }
  }
});
