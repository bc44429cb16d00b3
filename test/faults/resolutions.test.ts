import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, expect, inject, it } from 'vitest';
import type { MarketLedger } from '../../sim/resolution-ledger.ts';
import { type Database, sql } from '../../src/store/db/tx.ts';
import { MARKET_VENUES } from '../e2e/venue-ledger.ts';
import { eventually } from '../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../support/postgres/database.ts';
import { type Fleet, ofEach, startFleet } from '../support/processes/fleet.ts';
import { WEBHOOK_SECRET } from '../support/processes/system.ts';
import { CampaignLog } from './campaign/campaign-log.ts';
import { Keeper } from './campaign/keeper.ts';
import { type Life, ledgersByMarket, someLife, toldBy, truthOf } from './campaign/lives-of-results.ts';
import { ResolutionTracker } from './campaign/resolution-tracker.ts';
import { replayCommand, SEED, streamOf } from './campaign/seed.ts';

/** Each is one market, which all four venues list. */
const LIVES = Number(process.env['RESOLUTION_LIVES'] ?? 40);
/** The queues are in Postgres, or in Redis with RESOLUTION_QUEUES=redis. */
const IS_ON_REDIS = process.env['RESOLUTION_QUEUES'] === 'redis';
/** The answers of one event, which is one contract on Manifold. Markets with traders end by plan, so only these have some. */
const GROUPED = 5;
/** One of so many kills is a kill of the aggregator, the others of the poller. */
const AGGREGATOR_EVERY = 4;
const LIMIT_MS = 200_000 + LIVES * 1_000;

const COUNT_OPEN = sql('test_open_markets', `SELECT count(*)::int AS markets FROM market WHERE status = 'open'`);
const RULES = sql(
  'test_rules',
  `SELECT venue_market_id AS market_id, resolution_criteria AS text FROM market WHERE venue = 'polymarket'`,
);
/** The listing of Limitless omits markets with a result, and oddswire asks for them again after an hour. So the test asks for corrections. */
const ASK_AGAIN = sql(
  'test_ask_again',
  `UPDATE market_stats s SET missing_since = clock_timestamp() FROM market m
   WHERE m.id = s.market_id AND m.venue = 'limitless' AND m.venue_market_id = ANY ($1::text[]) AND s.missing_since IS NULL`,
);
const POLLED = sql(
  'test_polled_markets',
  `SELECT count(*)::int AS venues FROM poll_state WHERE kind = 'markets' AND last_attempt_at > $1 AND last_success_at > $1`,
);
const ROWS = sql(
  'test_resolution_rows',
  `SELECT m.venue, m.venue_market_id AS market_id, r.transition, r.round, r.is_report, r.seq
   FROM market_resolution r JOIN market m ON m.id = r.market_id ORDER BY r.seq`,
);
const STANDINGS = sql(
  'test_versions_of_results',
  `SELECT DISTINCT status, state FROM (
     SELECT status, resolution_state AS state FROM market
     UNION ALL SELECT facts ->> 'status', facts ->> 'resolution_state' FROM market_version) v WHERE state IN ('proposed', 'disputed')`,
);

interface Change {
  venue: string;
  marketId: string;
  transition: string;
}
interface Row extends Change {
  round: number | null;
  isReport: boolean;
  seq: bigint | null;
}

let database: TestDatabase | undefined;
let fleet: Fleet | undefined;
let keeper: Keeper | undefined;
let log: CampaignLog | undefined;
let isProven = false;
afterEach(async () => {
  keeper?.stop();
  await fleet?.stop();
  await log?.close({ isKept: !isProven });
  if (!isProven) process.stdout.write(`\nthe records are in ${log?.folder}; again: ${replayCommand()}\n`);
  await database?.drop();
});

async function start(databaseUrl: string, records: CampaignLog): Promise<Fleet> {
  const redisUrl = IS_ON_REDIS ? inject('redisUrl') : null;
  if (IS_ON_REDIS && redisUrl === null) throw new Error('RESOLUTION_QUEUES=redis needs redis-server');
  fleet = await startFleet({
    databaseUrl,
    ...(redisUrl !== null && { redisUrl }),
    counts: ofEach(1),
    queuePrefix: `res${randomBytes(5).toString('hex')}`,
    exchange: { seed: 17, markets: LIVES + GROUPED, liveMarkets: GROUPED, rollingSeconds: 0, historyHours: 0.1 },
    environment: {
      VENUES: MARKET_VENUES.join(','),
      LIMITLESS_REQUESTS_PER_SECOND: '200',
      POLL_MARKETS_MS: '500',
      POLL_PRICES_MS: '20000',
      POLL_BOOKS_MS: '20000',
      POLL_TRADES_MS: '20000',
    },
    listenerOf: (role, number) => ({
      line: (text) => records.write(`${role}-${number}.log`, text),
      exit: (how) => {
        const member = fleet?.membersOf(role)[number];
        if (member) keeper?.ended(member, how);
      },
    }),
  });
  return fleet;
}

/** The ledgers that oddswire must equal: a venue that shows only its present hides steps that happen at once. */
function comparedOf({ conditionId, isHasty }: Life, ledgers: ReadonlyMap<string, MarketLedger[]>): MarketLedger[] {
  return (ledgers.get(conditionId) ?? []).filter(({ venue }) => venue === 'polymarket' || !isHasty);
}

const lineOf = ({ venue, marketId, transition }: Change, round?: number | null) =>
  `${venue} ${marketId} ${transition} ${round ?? ''}`;

/** The tracker has every stored row once, in the order of the journal. Returns the rows. */
async function expectTracked(db: Database, tracker: ResolutionTracker): Promise<Row[]> {
  const rows = await eventually(
    () => db.query<Row>(ROWS),
    (stored) => stored.every(({ seq }) => seq !== null),
  );
  await tracker.read();
  const tracked = tracker.rows.map((row) => lineOf({ ...row, marketId: row.market_id }, row.round));
  expect(tracked).toEqual(rows.map((row) => lineOf(row, row.round)));
  return rows;
}

/** Each row is one event, which the receiver got at least once. */
async function expectEvents({ receiver }: Fleet, rows: readonly Row[]): Promise<void> {
  expect(rows.filter(({ isReport }) => !isReport)).toEqual([]);
  const received = () =>
    new Map(
      receiver.requests.map(({ headers, json }) => [String(headers['webhook-id']), (json as { data: Change }).data]),
    );
  await eventually(
    async () => received().size,
    (events) => events >= rows.length,
  );
  expect([...received().values()].map((change) => lineOf(change)).sort()).toEqual(
    rows.map((row) => lineOf(row)).sort(),
  );
}

it(
  `the timelines of ${LIVES} markets equal the ledger of the venues when pollers and publishers are killed`,
  async () => {
    process.stdout.write(`\nresolutions: seed ${SEED}\n`);
    const startedAtMs = performance.now();
    const random = streamOf('resolutions');
    database = await createTestDatabase();
    const { db } = database;
    const records = new CampaignLog();
    log = records;
    const running = await start(database.url, records);
    const keeping = new Keeper(running, records);
    keeper = keeping;
    const { exchange, receiver } = running;
    const tracker = new ResolutionTracker(running);
    await running.call('POST', '/v1/webhooks', {
      url: `${receiver.url}/hook`,
      events: ['market_resolution'],
      secret: WEBHOOK_SECRET,
    });
    const plain = exchange.state().markets.filter(({ hasTraders }) => !hasTraders);
    const lives = plain.map(({ conditionId }) => someLife(random, conditionId));
    expect(lives).toHaveLength(LIVES);
    await eventually(
      () => db.query<{ markets: number }>(COUNT_OPEN),
      ([open]) => (open?.markets ?? 0) >= LIVES * MARKET_VENUES.length,
    );

    const places = new Map(lives.map((life) => [life, 0]));
    const rulesOf = new Map<string, string[]>();

    function take({ conditionId, steps }: Life, place: number): void {
      for (const step of steps[place] ?? []) {
        exchange.steer(step);
        records.note('steered', { ...step });
        if (step.rules !== undefined) rulesOf.set(conditionId, [...(rulesOf.get(conditionId) ?? []), step.rules]);
      }
    }

    /** Takes the next step of each life whose present oddswire shows. Returns a line per life that is not over. */
    async function advance(): Promise<string[]> {
      await tracker.read();
      const ledgers = ledgersByMarket(exchange.resolutions());
      const stored = await db.query<{ marketId: string; text: string }>(RULES);
      const textOf = new Map(stored.map(({ marketId, text }) => [marketId, text.replace(/\s+/g, ' ')]));
      const uncorrected: string[] = [];
      const left = lives.flatMap((life) => {
        const { conditionId, steps } = life;
        const behind = comparedOf(life, ledgers).filter(
          ({ venue, marketId, transitions }) => tracker.rowsOf(venue, marketId).length < transitions.length,
        );
        uncorrected.push(...behind.filter(({ venue }) => venue === 'limitless').map(({ marketId }) => marketId));
        const missing = behind.map((ledger) => `${ledger.venue} ${ledger.marketId} lacks ${truthOf(ledger).at(-1)}`);
        const rules = rulesOf.get(conditionId)?.at(-1) ?? '';
        if (textOf.get(conditionId)?.includes(rules) === false) missing.push(`${conditionId} lacks ${rules}`);
        if (missing.length > 0) return missing;
        const place = places.get(life) ?? 0;
        if (place >= steps.length) return [];
        take(life, place);
        places.set(life, place + 1);
        return [`${conditionId} takes step ${place + 1}`];
      });
      await db.query(ASK_AGAIN, [uncorrected]);
      return left;
    }

    let isOver = false;
    let kills = 0;
    /** Kills come after news, so that a slow machine does not kill each process before its first poll. */
    async function killAgainAndAgain(): Promise<void> {
      while (!isOver) {
        const known = tracker.rows.length;
        await eventually(async () => isOver || tracker.rows.length > known, Boolean, { timeoutMs: LIMIT_MS });
        // The second kill of a pair often hits a process that is still starting.
        for (let left = random.chance(300_000) ? 2 : 1; left > 0 && !isOver; left -= 1) {
          const [member] = running.membersOf(kills % AGGREGATOR_EVERY === 1 ? 'aggregator' : 'poller');
          if (member) await keeping.kill(member);
          kills += 1;
          await delay(random.between(300, 1_500));
        }
      }
    }
    const killing = killAgainAndAgain();
    try {
      await eventually(advance, (left) => left.length === 0, { timeoutMs: LIMIT_MS, everyMs: 200 });
    } finally {
      isOver = true;
      await killing;
    }
    await keeping.whole();
    const wholeAt = new Date();
    await eventually(
      () => db.query<{ venues: number }>(POLLED, [wholeAt]),
      ([polled]) => polled?.venues === MARKET_VENUES.length,
    );

    const rows = await expectTracked(db, tracker);
    const ledgers = ledgersByMarket(exchange.resolutions());
    for (const ledger of lives.flatMap((life) => comparedOf(life, ledgers))) {
      const { venue, marketId } = ledger;
      expect([venue, marketId, ...toldBy(tracker.rowsOf(venue, marketId), ledger)]).toEqual([
        venue,
        marketId,
        ...truthOf(ledger),
      ]);
    }
    for (const [conditionId, texts] of rulesOf) {
      const { versions } = await running.read<{ versions: unknown[] }>(`/v1/polymarket/markets/${conditionId}/rules`);
      expect([conditionId, versions.length]).toEqual([conditionId, texts.length + 1]);
    }
    const standings = await db.query<{ status: string; state: string }>(STANDINGS);
    expect(new Set(standings.map(({ state }) => state))).toEqual(new Set(['proposed', 'disputed']));
    expect(standings.filter(({ status }) => status === 'resolved' || status === 'settled')).toEqual([]);
    await expectEvents(running, rows);
    expect(keeping.ends).toEqual([]);
    expect(kills).toBeGreaterThanOrEqual(AGGREGATOR_EVERY);
    isProven = true;
    const seconds = Math.round((performance.now() - startedAtMs) / 1000);
    process.stdout.write(`resolutions: ${LIVES} lives, ${rows.length} rows, ${kills} kills in ${seconds} s\n`);
  },
  LIMIT_MS * 2,
);
