import { execFileSync, spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { guard } from '../processes/guard.ts';

/** A separate file system that can be filled. */
export interface SmallDisk {
  /** An empty folder on it. */
  readonly path: string;
  /** Uses all free space. */
  fill(): void;
  /** Frees the space that `fill` used. */
  clear(): Promise<void>;
  /** Removes it with its contents. Its users must have ended. */
  unmount(): Promise<void>;
}

/** Whether this process may mount a file system, which needs root's rights; prints the skipped tests otherwise. */
export async function canMount(skippedTests: string): Promise<boolean> {
  const where = await mkdtemp(join(tmpdir(), 'oddswire-disk-'));
  const isMounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', where]).status === 0;
  if (isMounted) execFileSync('umount', [where]);
  else console.warn(`\n!!! no right to mount a file system: ${skippedTests} SKIPPED !!!\n`);
  await rmdir(where);
  return isMounted;
}

/** Mounts a disk in memory. A kill of this process also unmounts it. */
export async function mountSmallDisk(options: { sizeMegabytes: number }): Promise<SmallDisk> {
  const where = await mkdtemp(join(tmpdir(), 'oddswire-disk-'));
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${options.sizeMegabytes}m,mode=0711`, 'tmpfs', where]);
  // Its users may need a moment to end as well.
  const watch = guard('for i in 1 2 3 4 5 6 7 8 9; do sleep 1; umount "$1" && break; done; rmdir "$1"', where);
  const path = join(where, 'files');
  await mkdir(path);
  const ballast = join(where, 'ballast');
  return {
    path,
    fill() {
      const { stderr } = spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=64k'], {
        encoding: 'utf8',
        env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' },
      });
      if (!stderr.includes('No space left')) throw new Error(`the disk did not fill: ${stderr}`);
    },
    clear: () => rm(ballast, { force: true }),
    async unmount() {
      await watch.dismiss();
      execFileSync('umount', [where]);
      await rmdir(where);
    },
  };
}
