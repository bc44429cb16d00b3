import { setImmediate } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Collects all garbage, as a busy process does; with one turn, all but weakly held objects of the present task. */
export async function collectGarbage(turns = 5): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  // A weakly held object stays until the end of the task that used it.
  for (let turn = 0; turn < turns; turn += 1) {
    await setImmediate();
    collect();
  }
}
