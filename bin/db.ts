import { rejectArguments } from '../cli/arguments.ts';
import type { Command } from '../cli/program.ts';
import { VARIABLES } from '../src/config/variables.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/embedded/postgres.ts';
import { createLogger } from '../src/observe/logger.ts';
import { EmbeddedPostgresError } from '../src/runtime/errors.ts';
import { EXIT_CONFIG } from '../src/runtime/lifecycle.ts';
import { logLevelOf } from './terminal.ts';

/** After a kill of the runner, its other processes have this time to finish their work. */
const CLIENTS_MS = 18_000;

/** `oddswire db`: the embedded Postgres as a process of the Procfile. */
export const command: Command = {
  usage: `usage: oddswire db

  Runs the embedded Postgres of DATA_DIR until SIGTERM or SIGINT, or until its runner ends. \`oddswire start\` starts it as a process.`,
  async run(argv) {
    rejectArguments(argv);
    try {
      await runDatabase();
      return 0;
    } catch (error) {
      if (!(error instanceof EmbeddedPostgresError)) throw error;
      process.stderr.write(`oddswire db: ${error.message}\n`);
      return EXIT_CONFIG;
    }
  },
};

interface StopOrder {
  readonly letClientsFinish: boolean;
}

/** Sends the URL of the server to the runner over the channel, never to a log. */
async function runDatabase(): Promise<void> {
  const order = stopOrder();
  const log = createLogger({ process: 'db', level: logLevelOf(process.env) });
  const dataDir = process.env['DATA_DIR'] || VARIABLES.DATA_DIR.default || '.data';
  const server = await startEmbeddedPostgres({ dataDir, log });
  const { adopted, location, port, pid: serverPid } = server;
  log.info({ adopted, location, port, serverPid }, 'the embedded database is ready');
  process.send?.({ type: 'ready', url: server.url, adopted, serverPid });
  const { letClientsFinish } = await untilStopOrLoss(order, server);
  if (letClientsFinish && (await server.untilUnused(CLIENTS_MS))) {
    log.info('the next runner takes over the database');
    return;
  }
  await server.stop();
  log.info('the embedded database is stopped');
}

function stopOrder(): Promise<StopOrder> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.on(signal, () => resolve({ letClientsFinish: false }));
    }
    process.on('disconnect', () => resolve({ letClientsFinish: true }));
  });
}

/** @throws when the server ends first. A stop ends the connection too, but nothing waits for its loss then. */
function untilStopOrLoss(order: Promise<StopOrder>, server: EmbeddedPostgres): Promise<StopOrder> {
  return new Promise((resolve, reject) => {
    order.then(resolve, reject);
    server.lost.then(() => reject(new Error('the embedded database ended unexpectedly')), reject);
  });
}
