import { spawn } from 'node:child_process';
import { once } from 'node:events';

/** Cleans up should this process not get to it. */
export interface Guard {
  /** Ends the guard; from here on its owner cleans up. */
  dismiss(): Promise<void>;
}

/**
 * Runs a shell script, with the arguments as `$1` and on, once this process is gone, however that happens: for servers
 * and mounts that a killed test run would leave behind.
 */
export function guard(script: string, ...args: readonly string[]): Guard {
  // It ends with its standard input, that is with this process.
  const child = spawn('/bin/sh', ['-c', `read -r end; ${script}`, 'sh', ...args], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.unref();
  return {
    async dismiss() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = once(child, 'exit');
      // Else nothing may keep this process alive for the clean-up that follows.
      child.ref();
      child.kill('SIGKILL');
      await gone;
    },
  };
}
