import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Settings } from '../command.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import type { Io } from '../io.ts';
import { replaceFile, stateFolder } from '../state-folder.ts';

/** The memory of `listen` between two runs. */
export interface ListenState {
  /** The position behind the last handled event; undefined before the first message. */
  cursor?: string;
  /** The signing secret that `listen` made. */
  secret?: string;
}

/** The file of one account and target: two targets of an account each get every event. */
export function stateFileOf({ url, key }: Settings, forward: string | undefined, env: Io['env']): string {
  const id = createHash('sha256')
    .update(JSON.stringify([url, key, forward ?? null]))
    .digest('hex')
    .slice(0, 16);
  return join(stateFolder(env), `listen-${id}.json`);
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
  try {
    await replaceFile(file, `${JSON.stringify(state)}\n`);
  } catch (error) {
    throw new CommandError(`cannot keep the position in ${file}: ${(error as Error).message}`, EXIT.failed);
  }
}
