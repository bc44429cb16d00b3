import { createHash, randomBytes } from 'node:crypto';
import { afterAll, expect, inject } from 'vitest';
import type { ExchangeOptions } from '../../../sim/exchange.ts';
import type { RandomStream } from '../../../sim/random.ts';
import type { ReplyRule } from '../../../sim/receiver.ts';
import { eventually } from '../../support/eventually.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { type Fleet, type FleetOptions, ofEach, startFleet } from '../../support/processes/fleet.ts';
import { WEBHOOK_SECRET } from '../../support/processes/system.ts';
import type { BackendKind } from '../../support/redis/queue-backends.ts';
import { AlertLoad, SPARE_MARKETS } from './alert-load.ts';
import { CampaignLog } from './campaign-log.ts';
import { Crossings } from './crossings.ts';
import { Keeper } from './keeper.ts';
import { expectIdleQueues, expectNothingHeld } from './orphans.ts';
import { type CampaignReport, reportTable } from './report.ts';
import { replayCommand, SEED, streamOf } from './seed.ts';
import { deliveryCounts, expectAlerts, expectNothingLost } from './settled.ts';

export interface CampaignOptions extends Partial<Pick<FleetOptions, 'counts' | 'environment' | 'environmentOf'>> {
  /** The scenario, for the table. */
  name: string;
  backend: BackendKind;
  exchange?: ExchangeOptions;
  /** The caller's database, which the caller drops. Default: a database of the campaign on the run's server. */
  database?: TestDatabase;
  /** The Redis of the backend redis. Default: the run's server. */
  redisUrl?: string;
  /** False: a deliverer's clock may be so wrong that receivers reject its timestamps. Default true. */
  areSignaturesFresh?: boolean;
}

/** For a loaded machine that starts ten processes at once. */
const START_LIMIT_MS = 200_000;
const RECOVERY_LIMIT_MS = 120_000;
const HELD_LIMIT_MS = 90_000;

const reports: CampaignReport[] = [];
afterAll(() => {
  if (reports.length > 0) process.stdout.write(`\n${reportTable(reports)}\n`);
});

interface Parts {
  options: CampaignOptions;
  fleet: Fleet;
  database: TestDatabase;
  queuePrefix: string;
  redisUrl: string | undefined;
  log: CampaignLog;
  keeper: Keeper;
  crossings: Crossings;
  load: AlertLoad;
  tapeFrom: number;
  strikes: Strikes;
}

/** Faults in progress, and the end of the last one. */
interface Strikes {
  inProgress: number;
  overAtMs: number;
}

/** All of oddswire as OS processes under steady load. Its inputs and outputs are recorded outside of them. */
export class Campaign {
  readonly fleet: Fleet;
  readonly database: TestDatabase;
  readonly queuePrefix: string;
  readonly redisUrl: string | undefined;
  /** The source of every choice of the scenario. */
  readonly random: RandomStream;
  readonly keeper: Keeper;
  readonly load: AlertLoad;
  readonly crossings: Crossings;
  readonly log: CampaignLog;
  readonly #options: CampaignOptions;
  readonly #tapeFrom: number;
  readonly #strikes: Strikes;
  readonly #report: CampaignReport;
  readonly #recoveriesMs: number[] = [];
  /** Events that the receiver answered with 2xx. */
  readonly #accepted = new Set<string>();
  #rule: ReplyRule = {};
  #isProven = false;

  constructor(parts: Parts) {
    this.fleet = parts.fleet;
    this.database = parts.database;
    this.queuePrefix = parts.queuePrefix;
    this.redisUrl = parts.redisUrl;
    this.log = parts.log;
    this.keeper = parts.keeper;
    this.crossings = parts.crossings;
    this.load = parts.load;
    this.random = streamOf(parts.options.name, parts.options.backend);
    this.#options = parts.options;
    this.#tapeFrom = parts.tapeFrom;
    this.#strikes = parts.strikes;
    const { name, backend } = parts.options;
    const none = { faults: 0, alerts: 0, events: 0, deliveries: 0, twice: 0, crossings: 0 };
    this.#report = { scenario: name, store: backend, ...none, recoveriesMs: this.#recoveriesMs };
    reports.push(this.#report);
    this.#listen();
  }

  /** Another subscription of the account, which the load targets too. */
  async subscribe(path: string): Promise<string> {
    const { id } = await this.fleet.call<{ id: string }>('POST', '/v1/webhooks', {
      url: `${this.fleet.receiver.url}${path}`,
      events: ['price_alert'],
      secret: WEBHOOK_SECRET,
    });
    this.load.webhookIds.push(id);
    return id;
  }

  /** Sets the receiver's answers. Default: 200 at once. */
  replyWith(rule: ReplyRule): void {
    this.#rule = rule;
  }

  /**
   * One fault, which is over when `inject` resolves. During a fault no poll counts for the held crossings, and their markets
   * do not trade, so the first fault waits until enough other markets trade.
   */
  async blow(label: string, inject: () => unknown): Promise<void> {
    if (this.#strikes.inProgress === 0) await this.#explained(() => this.#untilMarketsAreFree());
    this.log.note('blow', { label });
    this.#report.faults += 1;
    this.#strikes.inProgress += 1;
    try {
      await this.#explained(async () => inject());
    } finally {
      this.#strikes.inProgress -= 1;
      this.#strikes.overAtMs = Date.now();
      this.log.note('blow over', { label });
    }
  }

  async #untilMarketsAreFree(): Promise<void> {
    await eventually(
      async () => this.crossings.free().length,
      (free) => free > SPARE_MARKETS,
      { timeoutMs: HELD_LIMIT_MS },
    );
  }

  /**
   * Sends a probe through the whole system: it creates an alert and forces the price across the target; the event reaches the
   * receiver with valid signatures. Returns the time of its arrival, epoch milliseconds.
   */
  async probe(limitMs = RECOVERY_LIMIT_MS, webhookId?: string): Promise<number> {
    return this.#explained(async () => {
      const crossing = await eventually(
        () => this.load.cross(0, webhookId),
        (found) => found !== undefined,
        { timeoutMs: limitMs },
      );
      const isOfCrossing = (json: unknown) =>
        (json as { data?: { alertId?: string } }).data?.alertId === crossing?.alertId;
      const request = await this.fleet.receiver.waitFor(({ json }) => isOfCrossing(json), limitMs);
      expect(request.bodySignature).toBe('ok');
      if (this.#options.areSignaturesFresh !== false) expect(request.standardSignature).toBe('ok');
      return request.receivedAtMs;
    });
  }

  /** Waits for a probe; returns, and reports, its time since the end of the last fault, milliseconds. */
  async recovered(limitMs?: number): Promise<number> {
    const tookMs = (await this.probe(limitMs)) - this.#strikes.overAtMs;
    this.#recoveriesMs.push(tookMs);
    this.log.note('recovered', { tookMs });
    return tookMs;
  }

  /**
   * Ends load and processes and compares all recorded actions with all stored and delivered data: see settled.ts and
   * orphans.ts. Afterwards no process runs.
   */
  async expectNothingLost(options: { mayFailJobs?: boolean } = {}): Promise<void> {
    const { fleet, keeper, load, crossings, database, log } = this;
    await this.#explained(async () => {
      await load.stop();
      await keeper.whole();
      await eventually(
        async () => crossings.held,
        (held) => held === 0,
        { timeoutMs: HELD_LIMIT_MS },
      );
      this.#count();
      expect(load.problems, 'failed calls without a fault').toEqual([]);
      expect(keeper.ends, 'processes that ended unexpectedly').toEqual([]);
      await expectNothingLost(fleet, database, this.#tapeFrom, this.#options);
      await expectAlerts(database, { made: load.made, crossed: crossings.all });
      const received = new Set(fleet.receiver.requests.map(({ headers }) => String(headers['webhook-id'])));
      expect(
        [...received].filter((id) => !this.#accepted.has(id)),
        'events that no receiver accepted',
      ).toEqual([]);
      this.#count();
      keeper.stop();
      const { backend } = this.#options;
      const store = {
        backend,
        databaseUrl: database.url,
        redisUrl: this.redisUrl,
        prefix: this.queuePrefix,
        environment: fleet.environment,
      };
      const codes = await expectIdleQueues(store, () => fleet.stop(), options);
      const unwell = fleet.members.filter((_, index) => codes[index] !== 0);
      expect(unwell.map(({ process: { name, lines } }) => [name, ...lines.slice(-5)])).toEqual([]);
      await expectNothingHeld(database);
    });
    this.#isProven = true;
    log.note('proven');
  }

  /** Ends everything. Prints the folder of the records after a failure, or with FAULTS_KEEP. */
  async stop(): Promise<void> {
    this.keeper.stop();
    const loadEnds = this.load.stop();
    await this.fleet.stop();
    await loadEnds;
    for (const row of this.#isProven ? [] : this.fleet.exchange.ledger().trades) this.log.note('printed', { ...row });
    const isKept = !this.#isProven || process.env['FAULTS_KEEP'] !== undefined;
    await this.log.close({ isKept });
    if (isKept) process.stdout.write(`\n${this.#hint()}\n`);
    if (this.#options.database === undefined) await this.database.drop();
  }

  #count(): void {
    const counts = deliveryCounts(this.fleet);
    this.#report.alerts = this.load.made.length;
    this.#report.crossings = this.crossings.all.length;
    this.#report.events = counts.length;
    this.#report.deliveries = counts.reduce((sum, count) => sum + count, 0);
    this.#report.twice = counts.filter((count) => count > 1).length;
  }

  #listen(): void {
    this.fleet.receiver.replyWith(async (request, response) => {
      const rule = this.#rule;
      const reply = typeof rule === 'function' ? await rule(request, response) : rule;
      const ownStatus = response.headersSent ? response.statusCode : null;
      const status = reply === undefined ? ownStatus : (reply.status ?? 200);
      const id = String(request.headers['webhook-id']);
      const body = createHash('sha256').update(request.body).digest('hex').slice(0, 16);
      if (status !== null && status >= 200 && status < 300) this.#accepted.add(id);
      const { path, headers, duplicate } = request;
      const attempt = headers['x-webhook-attempt'];
      this.log.note('received', {
        id,
        path,
        delivery: headers['x-webhook-delivery'],
        attempt,
        duplicate,
        status,
        body,
      });
      return reply;
    });
  }

  #hint(): string {
    return `seed ${SEED}; the records are in ${this.log.folder}; again: ${replayCommand()}`;
  }

  /** A failure names the command that repeats it. */
  async #explained<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      this.log.note('failed', { error: String(error).slice(0, 2_000) });
      if (error instanceof Error && !error.message.includes(this.log.folder)) error.message += `\n${this.#hint()}`;
      throw error;
    }
  }
}

/** Starts everything, waits until oddswire has stored the exchange's markets, and starts the load. */
export async function startCampaign(options: CampaignOptions): Promise<Campaign> {
  const { name, backend } = options;
  process.stdout.write(`\n${name} on ${backend}: seed ${SEED}\n`);
  const database = options.database ?? (await createTestDatabase());
  const queuePrefix = `c${randomBytes(5).toString('hex')}`;
  const redisUrl = backend === 'redis' ? (options.redisUrl ?? inject('redisUrl') ?? undefined) : undefined;
  const log = new CampaignLog();
  const strikes: Strikes = { inProgress: 0, overAtMs: 0 };
  let crossings: Crossings | undefined;
  let keeper: Keeper | undefined;
  const fleet: Fleet = await startFleet({
    databaseUrl: database.url,
    ...(redisUrl !== undefined && { redisUrl }),
    queuePrefix,
    counts: options.counts ?? ofEach(1),
    startLimitMs: START_LIMIT_MS,
    ...(options.environment && { environment: options.environment }),
    ...(options.environmentOf && { environmentOf: options.environmentOf }),
    exchange: {
      seed: 11,
      speed: 2,
      rollingSeconds: 0,
      ...options.exchange,
      onAnswered: (request, record) => {
        if (strikes.inProgress === 0 && record.startedAtMs >= strikes.overAtMs) crossings?.answered(request, record);
      },
    },
    listenerOf: (role, number) => ({
      line: (text) => log.write(`${role}-${number}.log`, text),
      exit: (how) => {
        const member = keeper && fleet.membersOf(role)[number];
        if (member) keeper?.ended(member, how);
      },
    }),
  });
  try {
    keeper = new Keeper(fleet, log);
    crossings = new Crossings(fleet.exchange, streamOf(name, backend, 'crossings'), log);
    const load = new AlertLoad(fleet, crossings, streamOf(name, backend, 'load'), log);
    await knowsMarkets(fleet);
    const tapeFrom = fleet.exchange.second();
    const parts = { options, fleet, database, queuePrefix, redisUrl, log, keeper, crossings, load, tapeFrom, strikes };
    const campaign = new Campaign(parts);
    await campaign.subscribe('/hook');
    load.start();
    return campaign;
  } catch (error) {
    keeper?.stop();
    await fleet.stop();
    throw error;
  }
}

async function knowsMarkets(fleet: Fleet): Promise<void> {
  await eventually(
    () => fleet.read<unknown[]>('/v1/polymarket/markets?status=open&limit=50'),
    (markets) => markets.length >= 4,
  );
  await eventually(
    () => fleet.read<{ healthy: boolean; lag_seconds?: number }[]>('/v1/venues'),
    ([venue]) => venue?.healthy === true && venue.lag_seconds !== undefined,
  );
}
