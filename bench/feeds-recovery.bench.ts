import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { SocketFault } from '../sim/exchange.ts';
import type { FeedHost } from '../sim/feeds/socket-faults.ts';
import { type FeedVenue, quotesAgree } from '../test/integration/streamer/streamer-harness.ts';
import { createTestDatabase } from '../test/support/postgres/database.ts';
import { type Fleet, type Member, ofEach, startFleet } from '../test/support/processes/fleet.ts';
import { Recoveries, type Recovery } from './feeds/recoveries.ts';
import { sizeOf } from './support/numbers.ts';
import { note, report } from './support/report.ts';

/** Rounds of each fault; the longest times count. BENCH_RECOVERIES=3 for the published figures. */
const ROUNDS = sizeOf('BENCH_RECOVERIES', 1);
const MARKETS = 20;
const FAULT_MS = 3_000;
const RECOVERY_GOAL_S = 2;
const TAKEOVER_GOAL_S = 5;
const WITHIN = { timeoutMs: 90_000, everyMs: 100 };
const VENUES: readonly FeedVenue[] = ['polymarket', 'kalshi', 'limitless'];
/** The reasons of a feed that is open and sends nothing. */
const SILENT = new Set(['silent', 'half_open']);
/** Quotes come from the feeds alone. */
const ENVIRONMENT = {
  VENUES: VENUES.join(),
  POLL_PRICES_MS: '3600000',
  POLL_BOOKS_MS: '3600000',
  LIMITLESS_REQUESTS_PER_SECOND: '20',
};

/**
 * Faults with `hasNoSign` have no goal. No message shows a lost book of Limitless, so the next book of the market or a poll corrects it. The
 * end of a refusal is not visible: the wait of the backoff, up to 4 s after a fault of 3 s, belongs to its recovery.
 */
const FAULTS: readonly { host: FeedHost; venue: FeedVenue; fault: SocketFault; hasNoSign?: true }[] = [
  { host: 'clob', venue: 'polymarket', fault: { how: 'restart' } },
  { host: 'clob', venue: 'polymarket', fault: { how: 'drop', share: 0.3 } },
  { host: 'kalshi', venue: 'kalshi', fault: { how: 'drop', share: 0.3 } },
  { host: 'limitless', venue: 'limitless', fault: { how: 'drop', share: 0.3 }, hasNoSign: true },
  { host: 'clob', venue: 'polymarket', fault: { how: 'repeat', share: 0.3 } },
  { host: 'clob', venue: 'polymarket', fault: { how: 'reorder', share: 0.3 } },
  { host: 'clob', venue: 'polymarket', fault: { how: 'garbage', share: 0.3 } },
  { host: 'clob', venue: 'polymarket', fault: { how: 'arrays' } },
  { host: 'kalshi', venue: 'kalshi', fault: { how: 'arrays', share: 0.5 } },
  { host: 'clob', venue: 'polymarket', fault: { how: 'flood', times: 10 } },
  { host: 'clob', venue: 'polymarket', fault: { how: 'reject', status: 429 }, hasNoSign: true },
  { host: 'clob', venue: 'polymarket', fault: { how: 'freeze' } },
  { host: 'clob', venue: 'polymarket', fault: { how: 'half_open' } },
];

/** The first of them. */
const FAULT_COUNT = sizeOf('BENCH_FAULTS', FAULTS.length);

const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;
const longest = (all: readonly number[]) => Math.max(...all);

function reportRecovery(title: string, found: readonly Recovery[], hasGoal = true): void {
  const noticed = found.flatMap(({ noticedMs }) => noticedMs ?? []);
  const recoveryMs = longest(found.map((each) => each.recoveryMs));
  report([
    {
      title: `${title}, until the quotes are those of the exchange`,
      measured: seconds(recoveryMs),
      baseline: noticed.length === 0 ? 'no loss' : `noticed ${seconds(longest(noticed))} after the last data`,
      ...(hasGoal && {
        goal: { atMost: RECOVERY_GOAL_S, of: { name: 'after the fault', value: recoveryMs / 1_000, unit: 's' } },
      }),
    },
  ]);
  expect(found.every((each) => Number.isFinite(each.recoveryMs))).toBe(true);
}

/** Runs a fault of the exchange; the moment of its end, epoch milliseconds. */
async function run({ exchange }: Fleet, host: FeedHost, socket: SocketFault): Promise<number> {
  const { id } = exchange.addFault({ host, kind: 'socket', socket });
  // Only a new handshake is refused.
  if (socket.how === 'reject') exchange.addFault({ host, kind: 'socket', socket: { how: 'restart' } });
  if (socket.how !== 'restart') await delay(FAULT_MS);
  exchange.clearFaults(id);
  return Date.now();
}

/** Disturbs a streamer, then measures until the other one owns all parts, and from then until the quotes are right. */
async function takeOver(recoveries: Recoveries, disturb: () => void): Promise<Recovery & { takeoverMs: number }> {
  let takeoverMs = Number.NaN;
  const recovery = await recoveries.measure(async () => {
    disturb();
    takeoverMs = await recoveries.untilOwned(1);
    return Date.now();
  });
  return { ...recovery, takeoverMs };
}

function reportTakeover(title: string, found: readonly (Recovery & { takeoverMs: number })[]): void {
  const takeoverMs = longest(found.map((each) => each.takeoverMs));
  report([
    {
      title: `${title}, until the other one owns its parts`,
      measured: seconds(takeoverMs),
      baseline: 'the lease lasts 3.5 s',
      goal: { atMost: TAKEOVER_GOAL_S, of: { name: 'after the fault', value: takeoverMs / 1_000, unit: 's' } },
    },
  ]);
  reportRecovery(`${title}, from then`, found);
}

it('measures the recovery of feeds from each fault, and the takeover of the parts of a streamer', async () => {
  const database = await createTestDatabase();
  const fleet = await startFleet({
    databaseUrl: database.url,
    counts: { ...ofEach(1), streamer: 2 },
    exchange: { seed: 31, markets: MARKETS, liveMarkets: MARKETS, rollingSeconds: 0, historyHours: 0.2 },
    environment: ENVIRONMENT,
  });
  try {
    const recoveries = new Recoveries(fleet, database.db, VENUES);
    const settle = async () => {
      await recoveries.untilOwned(2);
      for (const venue of VENUES) await quotesAgree(database.db, fleet.exchange, venue, WITHIN);
    };
    await settle();
    for (const { host, venue, fault, hasNoSign } of FAULTS.slice(0, FAULT_COUNT)) {
      const found: Recovery[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        const isSilent = fault.how === 'freeze' || fault.how === 'half_open';
        found.push(await recoveries.measure(() => run(fleet, host, fault), isSilent ? SILENT : undefined));
      }
      reportRecovery(
        `${fault.how.replace('_', ' ')}${fault.status ? ` ${fault.status}` : ''} on ${venue}`,
        found,
        !hasNoSign,
      );
    }
    const killed: (Recovery & { takeoverMs: number })[] = [];
    const stopped: typeof killed = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const [first, second] = fleet.membersOf('streamer') as [Member, Member];
      killed.push(await takeOver(recoveries, () => void first.process.end('SIGKILL')));
      await fleet.start(first);
      await settle();
      stopped.push(await takeOver(recoveries, () => second.process.signal('SIGSTOP')));
      second.process.signal('SIGCONT');
      await settle();
    }
    reportTakeover('a killed streamer', killed);
    reportTakeover('a suspended streamer', stopped);
    note(
      `longest of ${ROUNDS} rounds; a fault of a feed lasts ${seconds(FAULT_MS)}, freeze and half open until they are noticed`,
    );
  } finally {
    await fleet.stop();
    await database.drop();
  }
});
