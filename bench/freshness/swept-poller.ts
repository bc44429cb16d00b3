import { EventEmitter, once } from 'node:events';
import { newToken } from '../../src/domain/values/ids.ts';
import { acquirePollLease, POLL_LEASES } from '../../src/store/catalog/poll-state.ts';
import type { Database } from '../../src/store/db/tx.ts';
import { OddswireProcess } from '../../test/support/processes/system.ts';
import { NODE_OPTIONS } from '../support/node-options.ts';
import type { SweptVenue } from './catalog.ts';

type PollLease = NonNullable<Awaited<ReturnType<typeof acquirePollLease>>>;

const OTHER_KINDS = ['markets', 'trades', 'books', 'witness'] as const;

/** The log line of a complete sweep (workers/polling/sweep-walk.ts). */
export interface LoggedSweep {
  readonly venue: SweptVenue;
  readonly seconds: number;
  readonly markets: number;
  readonly pages: number;
  /** Prices that the sweep changed. */
  readonly changed: number;
}

/** The environment of the processes, by the address of each venue's simulator. */
export function pollerEnvironment(
  databaseUrl: string,
  urls: Readonly<Partial<Record<SweptVenue, string>>>,
): Record<string, string> {
  const { kalshi, polymarket } = urls;
  return {
    DATABASE_URL: databaseUrl,
    SECRETS_KEYS: `bench:${Buffer.alloc(32, 7).toString('base64')}`,
    VENUES: Object.keys(urls).join(','),
    ...(kalshi !== undefined && { KALSHI_API_URL: `${kalshi}/kalshi/trade-api/v2` }),
    ...(polymarket !== undefined && {
      POLYMARKET_GAMMA_URL: `${polymarket}/gamma`,
      POLYMARKET_CLOB_URL: `${polymarket}/clob`,
      POLYMARKET_DATA_URL: `${polymarket}/data`,
    }),
    METRICS_PORT: '0',
    ...NODE_OPTIONS,
  };
}

/** A poller process that polls only prices: the leases of the other polls of its venues are held. */
export class SweptPoller {
  readonly #db: Database;
  readonly #leases: readonly PollLease[];
  readonly #heartbeat: NodeJS.Timeout;
  readonly #sweeps = new EventEmitter();
  readonly #process: OddswireProcess;

  private constructor(db: Database, leases: readonly PollLease[], environment: Record<string, string>) {
    this.#db = db;
    this.#leases = leases;
    const renew = () => leases.forEach((lease) => void POLL_LEASES.renew(db, lease));
    this.#heartbeat = setInterval(renew, (POLL_LEASES.seconds * 1_000) / 3);
    this.#process = new OddswireProcess('poller', environment, { line: (text) => this.#read(text) });
  }

  static async start(
    db: Database,
    venues: readonly SweptVenue[],
    environment: Record<string, string>,
  ): Promise<SweptPoller> {
    const leases = await Promise.all(
      venues.flatMap((venue) =>
        OTHER_KINDS.map(async (kind) => {
          const lease = await acquirePollLease(db, venue, kind, newToken());
          if (lease === null) throw new Error(`the ${kind} poll of ${venue} runs`);
          return lease;
        }),
      ),
    );
    const poller = new SweptPoller(db, leases, environment);
    await poller.#process.start();
    return poller;
  }

  get pid(): number {
    const { pid } = this.#process;
    if (pid === undefined) throw new Error('the poller does not run');
    return pid;
  }

  /** Resolves at the end of the current sweep of a venue. Sweeps follow each other without a pause. */
  async nextSweep(venue: SweptVenue): Promise<LoggedSweep> {
    const [sweep] = (await once(this.#sweeps, venue)) as [LoggedSweep];
    return sweep;
  }

  async end(): Promise<void> {
    clearInterval(this.#heartbeat);
    await this.#process.end('SIGTERM');
    for (const lease of this.#leases) await POLL_LEASES.abandon(this.#db, lease);
  }

  #read(text: string): void {
    if (!text.includes('"price sweep complete"')) return;
    const sweep = JSON.parse(text) as LoggedSweep;
    this.#sweeps.emit(sweep.venue, sweep);
  }
}
