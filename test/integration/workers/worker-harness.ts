import { setTimeout as delay } from 'node:timers/promises';
import { type Config, loadConfig } from '../../../src/config/config.ts';
import { forwardAbort } from '../../../src/domain/values/signals.ts';
import { LivenessTracker } from '../../../src/observe/liveness.ts';
import { createLogger, type Logger } from '../../../src/observe/logger.ts';
import { createMetrics } from '../../../src/observe/metrics.ts';
import { LANES } from '../../../src/queues/jobs.ts';
import type { Producer } from '../../../src/queues/producer.ts';
import { WindowMemory } from '../../../src/store/alerts/windows.ts';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { Database, type Statement, type Tx } from '../../../src/store/db/tx.ts';
import type { VenueAdapter } from '../../../src/venues/port.ts';
import { createSecretBox } from '../../../src/webhooks/secret-box.ts';
import type { Sender } from '../../../src/webhooks/sender.ts';
import { PollLeases } from '../../../workers/polling/poll-leases.ts';
import type { JobContext } from '../../../workers/process/define.ts';
import type { WorkerDeps } from '../../../workers/process/deps.ts';

export const ALL_LANES: readonly number[] = Array.from({ length: LANES }, (_, lane) => lane);

/** The key ring of the tests, as SECRETS_KEYS. */
export const RING = `k1:${Buffer.alloc(32, 1).toString('base64')}`;

/** The DATABASE_URL of jobs that use a given database. */
export const UNUSED_URL = 'postgres://127.0.0.1/unused';

export function testConfig(databaseUrl: string, variables: Record<string, string> = {}): Config {
  return loadConfig({ DATABASE_URL: databaseUrl, SECRETS_KEYS: RING, VENUES: 'polymarket', ...variables });
}

/** A log in memory, with its lines. */
export function capturedLog(): { log: Logger; lines: string[] } {
  const lines: string[] = [];
  const log = createLogger({
    process: 'test',
    level: 'debug',
    destination: { write: (line) => void lines.push(line) },
  });
  return { log, lines };
}

/** Replaces the queues and records the wake-ups. */
interface WakeRecorder extends Producer {
  readonly woken: string[];
}

export function wakeRecorder(): WakeRecorder {
  const woken: string[] = [];
  return {
    woken,
    async enqueue(name) {
      woken.push(name);
    },
    wake(name) {
      woken.push(name);
    },
    wakeStage(name, shards) {
      if (shards.length > 0) woken.push(name);
    },
    requestPoll(name) {
      woken.push(name);
    },
    wakePublisher: () => undefined,
    hostPublisher: () => undefined,
    wakeDeliveries(subscriptionPks, delayMs, delayedFor) {
      const reason = delayedFor === undefined ? '' : ` for a ${delayedFor}`;
      for (const pk of subscriptionPks)
        woken.push(`deliver-webhook ${pk}${delayMs === undefined ? '' : ` in ${delayMs}`}${reason}`);
    },
    queue() {
      throw new Error('no queues here');
    },
    idle: async () => undefined,
    close: async () => undefined,
  };
}

const NO_SENDER: Sender = {
  reserve: () => Promise.reject(new Error('this test sends nothing')),
  send: () => Promise.reject(new Error('this test sends nothing')),
  close: async () => undefined,
};

/** For tests without queues: every use throws. */
const NO_BACKEND = {} as WorkerDeps['backend'];

export interface ContextFields extends Partial<WorkerDeps> {
  db: Database;
  config: Config;
  adapter?: VenueAdapter;
  /** Fires at the job's deadline. */
  deadline?: AbortSignal;
}

const SILENT = createLogger({ process: 'test', level: 'silent' });

/** A real job context, except for the given fields. One call stands for one process. */
export function jobContext(fields: ContextFields): JobContext {
  const stopping = fields.stopping ?? new AbortController().signal;
  const over = new AbortController();
  for (const source of [stopping, fields.deadline]) if (source) forwardAbort(source, over);
  const presence = { key: null, register: async () => undefined, query: async () => [] };
  return {
    pollLeases: new PollLeases({ presence: fields.presence ?? presence, log: fields.log ?? SILENT, db: fields.db }),
    partitions: new Partitions(fields.db),
    producer: wakeRecorder(),
    adapters: new Map(fields.adapter ? [[fields.adapter.venue, fields.adapter]] : []),
    walletAdapters: new Map(),
    tokenAdapters: new Map(),
    sender: NO_SENDER,
    secretBox: createSecretBox(fields.config.secretsKeys),
    metrics: createMetrics('test', { ofNode: false }),
    log: SILENT,
    now: Date.now,
    backend: NO_BACKEND,
    dependencies: [],
    presence,
    tracker: new LivenessTracker(),
    windows: new WindowMemory(),
    ...fields,
    stopping,
    signal: over.signal,
    run: () => Promise.reject(new Error('this test runs no job inside another one')),
  };
}

/** Repeats `read` until its value satisfies. The time-out of the test ends a wait without success. */
export async function until<T>(read: () => Promise<T>, satisfies: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await read();
    if (satisfies(value)) return value;
    await delay(20);
  }
}

/** The error of a stopping server. */
function shutDown(): Error {
  return Object.assign(new Error('terminating connection due to administrator command'), { code: '57P01' });
}

/** A database whose connection is lost at a chosen moment, as by a crash of the server or of the process. */
export class LosableDatabase extends Database {
  /** Called before each transaction. True loses the transaction before it starts. */
  loseBefore: (transaction: number) => boolean = () => false;
  /** Called at the end of the work of each transaction. True loses the transaction before its commit. */
  loseAtCommit: (transaction: number) => boolean = () => false;
  /** Single statements with these names are lost. */
  loseStatements: readonly string[] = [];
  #transactions = 0;

  override async query<Row>(statement: Statement, values: readonly unknown[] = []): Promise<Row[]> {
    if (this.loseStatements.includes(statement.name)) throw shutDown();
    return super.query<Row>(statement, values);
  }

  override async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    this.#transactions += 1;
    const number = this.#transactions;
    if (this.loseBefore(number)) throw shutDown();
    return super.transaction(async (tx) => {
      const result = await work(tx);
      if (this.loseAtCommit(number)) throw shutDown();
      return result;
    });
  }
}
