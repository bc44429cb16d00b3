import { ROLES, type Role } from '../src/queues/jobs.ts';
import { bootProcess } from '../src/runtime/boot.ts';
import { StartupError } from '../src/runtime/lifecycle.ts';

function isRole(text: string | undefined): text is Role {
  return ROLES.some((role) => role === text);
}

const role = process.argv[2];
const name = isRole(role) ? role : 'worker';

await bootProcess({
  name,
  environment: process.env,
  exit: (code) => process.exit(code),
  printLine: (line) => process.stderr.write(`oddswire ${name}: ${line}\n`),
  async start(config, log, signal) {
    if (!isRole(role)) throw new StartupError(`usage: workers/main.js ${ROLES.join('|')}`);
    // Loading takes a second, so errors of the call and of the configuration are reported before it.
    const { startWorker } = await import('./start-worker.ts');
    const { startAgain } = await import('../src/runtime/start-again.ts');
    return startAgain(() => startWorker(role, config, log, signal), log, signal);
  },
});
