import { ROLES, type Role, STREAMER } from '../src/queues/jobs.ts';
import { bootProcess } from '../src/runtime/boot.ts';
import { StartupError } from '../src/runtime/lifecycle.ts';

const NAMES = [...ROLES, STREAMER] as const;

function isRole(text: string | undefined): text is Role {
  return ROLES.some((role) => role === text);
}

const role = process.argv[2];
const name = NAMES.find((known) => known === role) ?? 'worker';

await bootProcess({
  name,
  environment: process.env,
  exit: (code) => process.exit(code),
  // A runner that is gone meanwhile stops this process.
  onStarted: () => void process.send?.({ type: 'started' }, undefined, undefined, () => undefined),
  printLine: (line) => process.stderr.write(`oddswire ${name}: ${line}\n`),
  async start(config, log, signal) {
    if (name === 'worker') throw new StartupError(`usage: workers/main.js ${NAMES.join('|')}`);
    // Loading takes a second, so errors of the call and of the configuration are reported before it.
    if (!isRole(role)) {
      const { startStreamer } = await import('./start-streamer.ts');
      return startStreamer(config, log, signal);
    }
    const { startWorker } = await import('./start-worker.ts');
    return startWorker(role, config, log, signal);
  },
});
