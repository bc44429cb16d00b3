import { VARIABLES } from '../src/config/variables.ts';
import { asError } from '../src/domain/values/errors.ts';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../src/embedded/embedded-postgres.ts';
import { createLogger } from '../src/observe/logger.ts';
import { EmbeddedPostgresError } from '../src/runtime/errors.ts';
import { EXIT_CONFIG } from '../src/runtime/lifecycle.ts';
import { logLevelOf } from './log-level.ts';

/**
 * The embedded Postgres as a process: runs until SIGTERM or SIGINT, or until the runner ends. Sends its URL to the runner
 * over the channel, never to a log.
 */

/** After a kill of the runner, its other processes have this time to finish their work. */
const CLIENTS_MS = 18_000;

const log = createLogger({ process: 'db', level: logLevelOf(process.env) });
const dataDir = process.env['DATA_DIR'] || VARIABLES.DATA_DIR.default || '.data';

let stopping = false;
let requestStop: (order: { letClientsFinish: boolean }) => void = () => undefined;
const order = new Promise<{ letClientsFinish: boolean }>((resolve) => {
  requestStop = resolve;
});
for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  process.on(signal, () => requestStop({ letClientsFinish: false }));
}
process.on('disconnect', () => requestStop({ letClientsFinish: true }));

async function main(): Promise<number> {
  const server = await startEmbeddedPostgres({ dataDir, log });
  const { adopted, location, port, pid: serverPid } = server;
  log.info({ adopted, location, port, serverPid }, 'the embedded database is ready');
  process.send?.({ type: 'ready', url: server.url, adopted, serverPid });
  const { letClientsFinish } = await Promise.race([order, lossOf(server)]);
  stopping = true;
  if (letClientsFinish && (await server.untilUnused(CLIENTS_MS))) {
    log.info('the next runner takes over the database');
    return 0;
  }
  await server.stop();
  log.info('the embedded database is stopped');
  return 0;
}

async function lossOf(server: EmbeddedPostgres): Promise<never> {
  await server.lost;
  // Stopping ends the connection too, and nothing listens on it afterwards.
  if (stopping) return new Promise(() => undefined);
  throw new Error('the embedded database ended unexpectedly');
}

main().then(
  (code) => process.exit(code),
  (thrown: unknown) => {
    const error = asError(thrown);
    if (error instanceof EmbeddedPostgresError) {
      process.stderr.write(`oddswire db: ${error.message}\n`);
      process.exit(EXIT_CONFIG);
    }
    log.error({ err: error }, 'the database process failed');
    process.exit(1);
  },
);
