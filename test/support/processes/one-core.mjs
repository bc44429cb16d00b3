// Preloaded (`node --import`): this process, with all its threads, runs on the core SLOW_CORE only.
import { execFileSync } from 'node:child_process';

execFileSync('taskset', ['--all-tasks', '--cpu-list', '--pid', process.env.SLOW_CORE, String(process.pid)], {
  stdio: 'ignore',
});
