import { mkdir, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Io } from './io.ts';

/** The folder of the files that the program keeps between two runs. */
export function stateFolder(env: Io['env']): string {
  return join(env['XDG_STATE_HOME'] || join(env['HOME'] || homedir(), '.local', 'state'), 'oddswire');
}

/** Replaces a file in one step, readable by its owner only. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await writeFile(temporary, text, { mode: 0o600 });
  await rename(temporary, file);
}
