import { chmod, mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Creates a folder and its parents with access for other users, independent of the umask: the database of a root user runs
 * as another user. Existing folders keep their modes.
 */
export async function makeOpenFolder(path: string): Promise<void> {
  const firstMade = await mkdir(path, { recursive: true });
  if (firstMade === undefined) return;
  for (let folder = path; folder.length >= firstMade.length; folder = dirname(folder)) await chmod(folder, 0o755);
}
