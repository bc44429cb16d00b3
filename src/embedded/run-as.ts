import { spawn } from 'node:child_process';
import type { Logger } from '../observe/logger.ts';
import { EmbeddedPostgresError } from '../runtime/errors.ts';

/** The user of a program. Without `ids`: the user of this process. */
export interface ServerUser {
  readonly name: string;
  readonly ids?: { readonly uid: number; readonly gid: number };
}

/** The end of a program; `code` is null when a signal ended it or it could not be started. */
interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  /** Also the reason when the program could not be started. */
  readonly stderr: string;
}

/** The caller's locale and time zone must not affect the cluster. */
export const SERVER_ENVIRONMENT = {
  PATH: '/usr/bin:/bin:/usr/sbin:/sbin',
  LC_ALL: 'C',
  TZ: 'UTC',
  // Otherwise glibc keeps up to 64 MB of freed memory per session for the next large statement.
  MALLOC_TRIM_THRESHOLD_: '524288',
};

/** Runs a program to its end, in `/`, because `user` may have no access to the caller's directory. Never rejects. */
export function runAs(user: ServerUser, file: string, args: readonly string[]): Promise<Finished> {
  return new Promise((resolve) => {
    const child = spawn(file, args, {
      cwd: '/',
      env: SERVER_ENVIRONMENT,
      stdio: ['ignore', 'pipe', 'pipe'],
      ...user.ids,
    });
    const output = { stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output.stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output.stderr += text;
    });
    child.on('error', (error) => resolve({ code: null, stdout: output.stdout, stderr: error.message }));
    child.on('close', (code) => resolve({ code, ...output }));
  });
}

/**
 * The user of the server. Postgres refuses to run as root, so root uses `postgres` (created when missing), else `nobody`; any
 * other user runs it directly.
 * @throws EmbeddedPostgresError when root finds no other user
 */
export async function chooseServerUser(log: Logger): Promise<ServerUser> {
  const uid = process.getuid?.();
  if (uid === undefined) {
    throw new EmbeddedPostgresError('the embedded database needs Linux or macOS; set DATABASE_URL');
  }
  if (uid !== 0) return { name: `uid ${uid}` };
  const existing = await lookUp('postgres');
  if (existing !== null) return existing;
  if (await createUser('postgres')) {
    const created = await lookUp('postgres');
    if (created !== null) {
      log.warn({ user: 'postgres' }, 'created the system user postgres: Postgres refuses to run as root');
      return created;
    }
  }
  const fallback = await lookUp('nobody');
  if (fallback === null) {
    throw new EmbeddedPostgresError('Postgres refuses to run as root and there is no other user; set DATABASE_URL');
  }
  return fallback;
}

async function lookUp(name: string): Promise<ServerUser | null> {
  const root: ServerUser = { name: 'root' };
  const [uid, gid] = await Promise.all([runAs(root, 'id', ['-u', name]), runAs(root, 'id', ['-g', name])]);
  if (uid.code !== 0 || gid.code !== 0) return null;
  return { name, ids: { uid: Number(uid.stdout), gid: Number(gid.stdout) } };
}

async function createUser(name: string): Promise<boolean> {
  const root: ServerUser = { name: 'root' };
  const useradd = await runAs(root, 'useradd', [
    '--system',
    '--user-group',
    '--no-create-home',
    '--shell',
    '/bin/false',
    name,
  ]);
  if (useradd.code === 0) return true;
  // busybox
  const adduser = await runAs(root, 'adduser', ['-S', '-D', '-H', '-s', '/bin/false', name]);
  return adduser.code === 0;
}
