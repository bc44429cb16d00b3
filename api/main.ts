import { bootProcess } from '../src/runtime/boot.ts';

await bootProcess({
  name: 'api',
  environment: process.env,
  exit: (code) => process.exit(code),
  // A runner that is gone meanwhile stops this process.
  onStarted: () => void process.send?.({ type: 'started' }, undefined, undefined, () => undefined),
  printLine: (line) => process.stderr.write(`oddswire api: ${line}\n`),
  async start(config, log, signal) {
    // Dynamic import: an invalid configuration is reported before a second of loading.
    const { startApi } = await import('./server/start-api.ts');
    return startApi(config, log, signal);
  },
});
