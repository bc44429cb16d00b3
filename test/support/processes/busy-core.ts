import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { endWithThisProcess } from './orphan-guard.ts';

/** Variables that keep a process on one core, and the loops that use most of that core. */
export interface BusyCore {
  readonly environment: Readonly<Record<string, string>>;
  stop(): void;
}

/**
 * Keeps one core busy with this many endless loops. Processes with the variables share that core with them: as many runnable processes as
 * loops get half of it. The machine needs `taskset`.
 */
export function startBusyCore(loops: number): BusyCore {
  const core = firstAllowedCore();
  const running = Array.from({ length: loops }, (): ChildProcess => {
    const child = spawn('taskset', ['--cpu-list', core, process.execPath, '-e', 'for (;;);'], { stdio: 'ignore' });
    endWithThisProcess(child);
    return child;
  });
  const preload = pathToFileURL('test/support/processes/one-core.mjs').href;
  return {
    environment: { NODE_OPTIONS: `--import ${preload}`, SLOW_CORE: core },
    stop: () => {
      for (const child of running) child.kill('SIGKILL');
    },
  };
}

/** A container may not have core 0. */
function firstAllowedCore(): string {
  const list = /^Cpus_allowed_list:\s*(\d+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  if (list === undefined) throw new Error('/proc/self/status names no allowed core');
  return list;
}
