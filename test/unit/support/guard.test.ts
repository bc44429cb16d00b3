import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { guard } from '../../support/processes/guard.ts';

/** The child processes that keep this process alive. */
const children = () => process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap').length;

it('a guard keeps its process alive only during its dismissal, and then does nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'oddswire-guard-'));
  try {
    const before = children();
    const watch = guard('touch "$1/cleaned"', folder);
    expect(children()).toBe(before);
    const dismissed = watch.dismiss();
    // Otherwise the process would end here, before its owner's clean-up.
    expect(children()).toBe(before + 1);
    await dismissed;
    expect(await readdir(folder)).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
