import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { guard } from '../../support/processes/guard.ts';

/** The child processes that keep this process alive. */
const children = () => process.getActiveResourcesInfo().filter((name) => name === 'ProcessWrap').length;

it('a guard keeps its process alive only while it is being dismissed, and then does nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'oddswire-guard-'));
  try {
    const before = children();
    const watch = guard('touch "$1/cleaned"', folder);
    expect(children()).toBe(before);
    const dismissed = watch.dismiss();
    // With nothing else to wait for the process would end here, and what its owner still has to clean up would stay.
    expect(children()).toBe(before + 1);
    await dismissed;
    expect(await readdir(folder)).toEqual([]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
