import { createHash } from 'node:crypto';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { CommandError, type Settings } from '../command.ts';
import { EXIT } from '../exit-codes.ts';
import type { Io } from '../io.ts';

/** The memory of `listen` between two runs. */
export interface ListenState {
  /** The position behind the last handled event; undefined before the first message. */
  cursor?: string;
  /** The signing secret that `listen` made. */
  secret?: string;
}

/** The file of one account and target: two targets of an account each get every event. */
export function stateFileOf({ url, key }: Settings, forward: string | undefined, env: Io['env']): string {
  const folder = env['XDG_STATE_HOME'] || join(env['HOME'] || homedir(), '.local', 'state');
  const id = createHash('sha256')
    .update(JSON.stringify([url, key, forward ?? null]))
    .digest('hex')
    .slice(0, 16);
  return join(folder, 'oddswire', `listen-${id}.json`);
}

/** An empty state without the file. @throws CommandError for a file that is not one of these */
export async function readState(file: string): Promise<ListenState> {
  try {
    const { cursor, secret } = JSON.parse(await readFile(file, 'utf8')) as Record<string, unknown>;
    return { ...(typeof cursor === 'string' && { cursor }), ...(typeof secret === 'string' && { secret }) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new CommandError(`cannot read the position in ${file}: ${(error as Error).message}`, EXIT.failed);
  }
}

/** Replaces the file in one step, readable by its owner only. @throws CommandError when it cannot be written */
export async function writeState(file: string, state: ListenState): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`;
  try {
    await mkdir(dirname(file), { recursive: true, mode: 0o700 });
    await writeFile(temporary, `${JSON.stringify(state)}\n`, { mode: 0o600 });
    await rename(temporary, file);
  } catch (error) {
    throw new CommandError(`cannot keep the position in ${file}: ${(error as Error).message}`, EXIT.failed);
  }
}
