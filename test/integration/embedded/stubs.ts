import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Small programs that behave like our processes, correctly or not. Each prints `up <pid>` once it listens to signals. */
const STUBS = {
  /** Ends on a signal or at the end of its runner. */
  good: `
    const end = (why) => { console.log('ending: ' + why); process.exit(0); };
    process.on('SIGTERM', () => end('SIGTERM'));
    process.on('disconnect', () => end('disconnect'));
    console.log('env ' + JSON.stringify({ DATABASE_URL: process.env.DATABASE_URL, PORT: process.env.PORT,
      METRICS_PORT: process.env.METRICS_PORT, DATABASE_POOLS: process.env.DATABASE_POOLS, SECRETS_KEYS: process.env.SECRETS_KEYS }));
  `,
  /** Reports its start after SIGUSR2. */
  reporting: `
    process.on('SIGTERM', () => process.exit(0));
    process.on('disconnect', () => process.exit(0));
    process.on('SIGUSR2', () => {
      console.log('reported');
      process.send({ type: 'started' });
    });
  `,
  /** Ends after a delay. */
  slow: `
    process.on('SIGTERM', () => setTimeout(() => { console.log('done'); process.exit(0); }, 300));
    process.on('disconnect', () => process.exit(0));
  `,
  /** Ignores SIGTERM. */
  stubborn: `
    process.on('SIGTERM', () => console.log('ignored'));
    process.on('disconnect', () => process.exit(0));
  `,
  /** Ends unexpectedly. */
  crashing: `process.exit(3);`,
  /** Reports a permanent fault. */
  refusing: `process.stderr.write('oddswire stub: PORT is taken\\n'); process.exit(78);`,
  /** Replaces the embedded database. */
  db: `
    const end = () => { console.log('ending'); process.exit(0); };
    process.on('SIGTERM', end);
    process.on('disconnect', end);
    process.send({ type: 'ready', url: 'postgres://stub/oddswire' });
  `,
} as const;

/** Writes the stubs to a new folder and returns it: `node <name>.mjs` runs one from there. */
export async function writeStubs(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'oddswire-stubs-'));
  for (const [name, code] of Object.entries(STUBS)) {
    const program = `setInterval(() => {}, 60_000);\n${code}\nconsole.log('up ' + process.pid);\n`;
    await writeFile(join(folder, `${name}.mjs`), program);
  }
  return folder;
}
