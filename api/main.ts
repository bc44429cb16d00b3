import { bootProcess } from '../src/runtime/boot.ts';

await bootProcess({
  name: 'api',
  environment: process.env,
  exit: (code) => process.exit(code),
  say: (line) => process.stderr.write(`oddswire api: ${line}\n`),
  async start(config, log, signal) {
    // Loaded only now, so that a wrong configuration is reported at once and not after a second of loading.
    const { startApi } = await import('./server/start-api.ts');
    return startApi(config, log, signal);
  },
});
