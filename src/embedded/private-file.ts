import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Logger } from '../observe/logger.ts';

/**
 * Creates a folder and its parents with access for other users, independent of the umask: the database of a root user runs
 * as another user. Existing folders keep their modes.
 */
export async function makeOpenFolder(path: string): Promise<void> {
  const firstMade = await mkdir(path, { recursive: true });
  if (firstMade === undefined) return;
  for (let folder = path; folder.length >= firstMade.length; folder = dirname(folder)) await chmod(folder, 0o755);
}

/** The file's text, or null when it does not exist. Makes a file private that other users can read, with a warning. */
export async function readPrivateFile(path: string, log: Logger): Promise<string | null> {
  try {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) {
      await chmod(path, 0o600);
      log.warn({ path, mode: (mode & 0o777).toString(8) }, 'other users could read a secret file; its mode is now 600');
    }
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

/** Writes a file that only its owner can read, in one step: a crash leaves the old text or the new one. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  await makeOpenFolder(dirname(resolve(path)));
  // A random name, opened exclusively: root never writes through a planted link.
  const partial = `${path}.${randomBytes(6).toString('hex')}`;
  await writeFile(partial, text, { mode: 0o600, flag: 'wx' });
  await rename(partial, path);
}

/** The secret in `path`; `make` creates a missing or empty file. */
export async function loadOrCreateSecret(path: string, make: () => string, log: Logger): Promise<string> {
  const kept = (await readPrivateFile(path, log))?.trim();
  if (kept !== undefined && kept !== '') return kept;
  const made = make();
  await writePrivateFile(path, `${made}\n`);
  return made;
}
