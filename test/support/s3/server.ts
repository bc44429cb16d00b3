import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { isListening } from '../is-listening.ts';
import { guard } from '../processes/guard.ts';
import { hasProgram } from '../processes/has-program.ts';
import { steadyPort } from '../processes/steady-port.ts';

/** `go install github.com/versity/versitygw/cmd/versitygw@v1.8.0` installs it. */
const PROGRAM = 'versitygw';
const KEY = { accessKeyId: 'TESTKEYID', secretAccessKey: 'secret-of-the-tests' };
const BUCKET = 'archive';

/** A real server of S3, with one bucket in a folder. */
export interface S3Server {
  readonly url: string;
  readonly bucket: string;
  readonly key: typeof KEY;
  /** The folder whose files are the objects of the bucket. */
  readonly folder: string;
  close(): Promise<void>;
}

/** Whether this machine can run the server; prints the reason of the skipped tests when it cannot. */
export const hasS3 = () => hasProgram(PROGRAM, 'the object store');

export async function startS3(): Promise<S3Server> {
  const dir = await mkdtemp(join(tmpdir(), 's3-server-'));
  const folder = join(dir, 'data', BUCKET);
  await mkdir(folder, { recursive: true });
  await mkdir(join(dir, 'facts'));
  const port = await steadyPort();
  const argv = ['--port', `127.0.0.1:${port}`, '--quiet', '--keep-alive'];
  const server = spawn(PROGRAM, [...argv, 'posix', '--sidecar', join(dir, 'facts'), join(dir, 'data')], {
    env: {
      ROOT_ACCESS_KEY_ID: KEY.accessKeyId,
      ROOT_SECRET_ACCESS_KEY: KEY.secretAccessKey,
      PATH: process.env['PATH'],
    },
    stdio: 'ignore',
  });
  const watch = guard('kill -9 "$1"; rm -rf "$2"', String(server.pid), dir);
  await eventually(
    () => isListening(port),
    (isThere) => isThere,
  );
  return {
    url: `http://127.0.0.1:${port}`,
    bucket: BUCKET,
    key: KEY,
    folder,
    async close() {
      const ended = once(server, 'exit');
      server.kill('SIGKILL');
      await ended;
      await watch.dismiss();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
