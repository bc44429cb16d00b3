import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { VARIABLES } from '../../src/config/variables.ts';
import { startTestCluster } from '../../test/support/postgres/embedded-cluster.ts';
import { endWithThisProcess } from '../../test/support/processes/orphan-guard.ts';
import { cpuSecondsWithChildren } from '../support/process-usage.ts';
import type { Simulator } from '../support/simulator.ts';
import { connectObserver, type DataFolder, type Observer } from './cluster.ts';
import type { SteadyOptions } from './options.ts';
import type { PollMs } from './service.ts';
import { measureWindow, type Window } from './window.ts';

/** Rows of the three kinds of facts. */
export interface Facts {
  readonly trades: number;
  readonly prices: number;
  readonly books: number;
}

export const FACT_KINDS = ['trades', 'prices', 'books'] as const;

export interface Baselines {
  readonly plain: Window;
  /** Rows per second that the plain program stored. */
  readonly facts: Facts;
  readonly failures: number;
  /** CPU seconds of one row of a bare COPY, with the client; absent for a kind without rows. */
  readonly copySeconds: Partial<Facts>;
}

/** The columns and the primary keys of `trade`, `price_history` and `book_history`, without partitions. */
const TABLES = `
  CREATE TABLE trade (token_id bigint, ts timestamptz, trade_id text COLLATE "C", price numeric NOT NULL, size numeric NOT NULL,
    side smallint, PRIMARY KEY (token_id, ts, trade_id));
  CREATE TABLE price (token_id bigint, received_at timestamptz, as_of timestamptz NOT NULL, price numeric NOT NULL, bid numeric,
    ask numeric, PRIMARY KEY (token_id, received_at));
  CREATE TABLE book (token_id bigint, as_of timestamptz, bids jsonb NOT NULL, asks jsonb NOT NULL, PRIMARY KEY (token_id, as_of));`;

/** The plain program, then a bare COPY of its rows, on the server of the ended service and on the same exchange. */
export async function measureBaselines(
  options: SteadyOptions,
  { data, simulator, pollMs }: { data: DataFolder; simulator: Simulator; pollMs: PollMs },
): Promise<Baselines> {
  const server = await startTestCluster({ durable: true, dataDir: data.clusterDir });
  let observer: Observer | undefined;
  try {
    const databaseUrl = await createDatabase(server.adminUrl, 'plain');
    observer = await connectObserver(databaseUrl);
    await observer.query(TABLES);
    const program = await startPlain({ simulatorUrl: simulator.url, databaseUrl, pollMs });
    try {
      await delay(options.warmUpSeconds * 1_000);
      const before = await program.counts();
      const plain = await measureWindow(
        {
          observer,
          pids: new Map([
            ['plain program', program.pid],
            ['simulator', simulator.pid],
          ]),
          metrics: new Map(),
          simulatorUrl: simulator.url,
        },
        options.seconds,
      );
      const after = await program.counts();
      await program.stop();
      const rate = (kind: keyof Facts) => (after[kind] - before[kind]) / plain.seconds;
      const facts = { trades: rate('trades'), prices: rate('prices'), books: rate('books') };
      return { plain, facts, failures: after.failures, copySeconds: await copyCosts(databaseUrl, observer.postmaster) };
    } finally {
      await program.stop();
    }
  } finally {
    await observer?.close();
    await server.stop();
  }
}

async function createDatabase(url: string, name: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const own = new URL(url);
  own.pathname = `/${name}`;
  return own.href;
}

type Counts = Facts & { readonly requests: number; readonly failures: number };

async function startPlain(given: { simulatorUrl: string; databaseUrl: string; pollMs: PollMs }) {
  const settings = { ...given, bookMarkets: Number(VARIABLES.POLL_BOOKS_MARKETS.default) };
  const child: ChildProcess = spawn(process.execPath, ['bench/steady/plain.mjs'], {
    env: { PATH: process.env['PATH'] ?? '', PLAIN: JSON.stringify(settings) },
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  endWithThisProcess(child);
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`the plain program ended with ${code}`);
  });
  ended.catch(() => undefined);
  const answer = () => Promise.race([once(child, 'message').then(([message]) => message as Counts), ended]);
  await answer();
  return {
    pid: child.pid ?? 0,
    counts: () => {
      const answered = answer();
      child.send('counts');
      return answered;
    },
    async stop() {
      if (!child.connected) return;
      const exited = once(child, 'exit');
      child.disconnect();
      await exited;
    },
  };
}

/** Few rows would take less than the hundredth of a second that the system counts. */
const COPIED_ROWS = 20_000;
const COPIES: Record<keyof Facts, { table: string; columns: string }> = {
  trades: { table: 'trade', columns: `token_id, ts, trade_id || '-' || n, price, size, side` },
  prices: { table: 'price', columns: `token_id, received_at + n * interval '1 day', as_of, price, bid, ask` },
  books: { table: 'book', columns: `token_id, as_of + n * interval '1 day', bids, asks` },
};

async function copyCosts(databaseUrl: string, postmaster: number): Promise<Partial<Facts>> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const costs: Partial<Record<keyof Facts, number>> = {};
    for (const kind of FACT_KINDS) {
      const { table, columns } = COPIES[kind];
      const { rows } = await client.query<{ count: number }>(`SELECT count(*)::int AS count FROM ${table}`);
      const stored = rows[0]?.count ?? 0;
      if (stored === 0) continue;
      const repeats = Math.ceil(COPIED_ROWS / stored);
      const out = copyTo(`COPY (SELECT ${columns} FROM ${table}, generate_series(1, ${repeats}) n) TO STDOUT`);
      const text = Buffer.concat(await client.query(out).toArray());
      await client.query(`CREATE TABLE copied (LIKE ${table} INCLUDING INDEXES)`);
      const [own, before] = [process.cpuUsage(), await cpuSecondsWithChildren(postmaster)];
      await pipeline([text], client.query(copyFrom('COPY copied FROM STDIN')));
      const { user, system } = process.cpuUsage(own);
      costs[kind] =
        ((await cpuSecondsWithChildren(postmaster)) - before + (user + system) / 1_000_000) / (stored * repeats);
      await client.query('DROP TABLE copied');
    }
    return costs;
  } finally {
    await client.end();
  }
}
