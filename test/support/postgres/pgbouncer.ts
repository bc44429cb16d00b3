import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { steadyPort } from '../processes/steady-port.ts';

/** Its shipped configuration. */
const SHIPPED = 'deploy/pgbouncer/pgbouncer.ini';
const PASSWORD = 'pooled';

export interface PgBouncer {
  /** The database through the pooler. */
  url: string;
  stop(): Promise<void>;
}

/** PgBouncer in front of a database, with the shipped configuration except for addresses and the number of connections. */
export async function startPgBouncer(options: { databaseUrl: string; poolSize: number }): Promise<PgBouncer> {
  const database = new URL(options.databaseUrl);
  const name = database.pathname.slice(1);
  const user = decodeURIComponent(database.username);
  // Its clients and its connections to Postgres use different passwords.
  const password = database.password === '' ? '' : ` password=${decodeURIComponent(database.password)}`;
  const port = await steadyPort();
  const dir = await mkdtemp(join(tmpdir(), 'oddswire-pgbouncer-'));
  // As root it switches to another user, which must be able to read its files.
  await chmod(dir, 0o755);
  const userlist = join(dir, 'userlist.txt');
  await writeFile(userlist, `"${user}" "${PASSWORD}"\n`);
  const ini = replaced(await readFile(SHIPPED, 'utf8'), {
    oddswire: `host=${database.hostname} port=${database.port} dbname=${name} user=${user}${password}`,
    listen_addr: '127.0.0.1',
    listen_port: String(port),
    auth_file: userlist,
    default_pool_size: String(options.poolSize),
  }).replace(/^oddswire =/m, `${name} =`);
  const file = join(dir, 'pgbouncer.ini');
  await writeFile(file, ini);
  const asNobody = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const server = spawn('pgbouncer', [...asNobody, file], { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(server, 'exit');
  const said: string[] = [];
  for await (const line of createInterface(server.stderr)) {
    said.push(line);
    if (line.includes('process up')) break;
  }
  if (!said.at(-1)?.includes('process up')) throw new Error(`pgbouncer did not start:\n${said.join('\n')}`);
  server.stderr.resume();
  return {
    url: `postgres://${database.username}:${PASSWORD}@127.0.0.1:${port}/${name}`,
    async stop() {
      server.kill('SIGTERM');
      await exited;
      await rm(dir, { recursive: true, force: true });
    },
  };
}

/** The configuration with other values of its settings. */
function replaced(ini: string, values: Readonly<Record<string, string>>): string {
  let text = ini;
  for (const [name, value] of Object.entries(values)) {
    const line = new RegExp(`^${name} = .*$`, 'm');
    if (!line.test(text)) throw new Error(`${SHIPPED} does not set ${name}`);
    text = text.replace(line, `${name} = ${value}`);
  }
  return text;
}
