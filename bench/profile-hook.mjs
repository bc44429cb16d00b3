import { mkdirSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector';
import { basename, join } from 'node:path';

/**
 * Profiles the process that imports it, from start to exit, into the folder in its own URL: `--import
 * file:///…/profile-hook.mjs?folder=/tmp/x`. Node 20 accepts no `--cpu-prof` in NODE_OPTIONS. A process that will be killed
 * instead of exiting, such as a vitest worker, first emits `profile-end` with a name on `process`.
 */
const folder = new URL(import.meta.url).searchParams.get('folder') ?? '.';
const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.setSamplingInterval', { interval: 500 });
session.post('Profiler.start');

/** `deliverer` of `node dist/workers/main.js deliverer`, `api` of `node dist/api/main.js`. */
function nameOfProcess() {
  const [, script = 'node', role] = process.argv;
  const [name, directory] = script
    .replace(/\.\w+$/, '')
    .split('/')
    .reverse();
  return role ?? (name === 'main' ? directory : name);
}

function write(name) {
  session.post('Profiler.stop', (error, result) => {
    if (error !== null) {
      console.error(`no profile of ${name} (${process.pid}): ${error.message}`);
      return;
    }
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, `${basename(name)}-${process.pid}.cpuprofile`), JSON.stringify(result.profile));
  });
  session.disconnect();
}

const writeAtExit = () => write(nameOfProcess());
process.once('exit', writeAtExit);
process.once('profile-end', (name) => {
  process.off('exit', writeAtExit);
  write(name);
});
