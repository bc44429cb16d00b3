import { setFlagsFromString } from 'node:v8';
import type { Config } from '../src/config/config.ts';
import { environmentOf } from '../src/config/process-secrets.ts';
import type { Logger } from '../src/observe/logger.ts';
import { ROLES, STREAMER } from '../src/queues/jobs.ts';
import { bootProcess } from '../src/runtime/boot.ts';
import { StartupError } from '../src/runtime/lifecycle.ts';
import { Parts } from '../src/runtime/parts.ts';

type Start = (config: Config, log: Logger, signal: AbortSignal) => Promise<{ stop(): Promise<void> }>;

const STARTS: ReadonlyMap<string, Start> = new Map([
  ['api', async (...args) => (await import('../api/server/start-api.ts')).startApi(...args)],
  [STREAMER, async (...args) => (await import('../workers/start-streamer.ts')).startStreamer(...args)],
  ...ROLES.map((role): [string, Start] => [
    role,
    async (...args) => (await import('../workers/start-worker.ts')).startWorker(role, ...args),
  ]),
]);

// By default the memory of six processes in one grows to several times the size of what is kept.
setFlagsFromString('--heap-growing-percent=50');

/**
 * Several processes of the Procfile in one, each with its METRICS_PORT: `small/main.js api=9464 poller=9465`. Each has its own logger,
 * metrics, probes, heartbeat and presence, reads its own secrets, and stops by itself after a signal.
 */
const portOf = new Map(process.argv.slice(2).map((word) => word.split('=') as [string, string]));
const parts = new Parts(portOf.keys(), (code) => process.exit(code));
for (const event of ['SIGTERM', 'SIGINT', 'disconnect']) process.once(event, () => parts.stopping());

await Promise.all(
  [...portOf].map(([name, metricsPort]) =>
    bootProcess({
      name,
      environment: { ...environmentOf(name, process.env), METRICS_PORT: metricsPort },
      exit: (code) => parts.ended(name, code),
      printLine: (line) => process.stderr.write(`oddswire ${name}: ${line}\n`),
      async start(config, log, signal) {
        const start = STARTS.get(name);
        if (start === undefined)
          throw new StartupError(`usage: small/main.js ${[...STARTS.keys()].join('=PORT|')}=PORT …`);
        return start(config, log, signal);
      },
    }),
  ),
);
