import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Cleans up when this process ends without doing so. */
export interface Guard {
  /** Ends the guard; from now on its owner cleans up. */
  dismiss(): Promise<void>;
}

/**
 * Runs a shell script, with the arguments from `$1` on, after any end of this process: for servers
 * and mounts that a killed test run would leave behind.
 */
export function guard(script: string, ...args: readonly string[]): Guard {
  // It ends with its standard input, so with this process.
  const child = spawn('/bin/sh', ['-c', `read -r end; ${script}`, 'sh', ...args], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.unref();
  return {
    async dismiss() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      // Otherwise this process could end before the following clean-up.
      child.ref();
      child.kill('SIGKILL');
      await gone;
    },
  };
}
