import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Collects all garbage, as a busy process does. */
export async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // A weakly held object stays until the end of the task that used it.
  for (let turn = 0; turn < 5; turn += 1) {
    await setImmediate();
    collect();
  }
}
