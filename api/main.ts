import { bootProcess } from '../src/runtime/boot.ts';
import { startApi } from './start-api.ts';

await bootProcess({
  name: 'api',
  environment: process.env,
  exit: (code) => process.exit(code),
  say: (line) => process.stderr.write(`oddswire api: ${line}\n`),
  start: startApi,
});
