import type { Command } from '../cli/program.ts';

interface Entry {
  /** One line of the list of commands. */
  readonly summary: string;
  /** Loads the command's code, so that `--help` and wrong arguments need no second of loading. */
  load(): Promise<{ command: Command }>;
}

/** Every subcommand, in the order of the help. */
export const COMMANDS: Readonly<Record<string, Entry>> = {
  start: { summary: 'runs every process on this machine', load: () => import('./start.ts') },
  demo: { summary: 'the same on a simulated exchange, with a local receiver', load: () => import('./demo.ts') },
  keys: { summary: 'API keys, quotas, and the key ring of sealed values', load: () => import('./keys.ts') },
  operators: { summary: 'logins of the operator pages', load: () => import('./operators.ts') },
  rejected: { summary: 'lists rejected records of the venues', load: () => import('./rejected.ts') },
  audit: { summary: 'compares stored candles with stored trades', load: () => import('./audit.ts') },
  'audit-trail': {
    summary: 'exports the trail of all changes by operators and accounts',
    load: () => import('./audit-trail.ts'),
  },
  export: { summary: 'writes stored trades, candles, prices or books to a file', load: () => import('./export.ts') },
  backfill: {
    summary: 'requests the older trades of a venue, and shows their progress',
    load: () => import('./backfill.ts'),
  },
  archive: { summary: 'checks the files of the archive, and repairs them', load: () => import('./archive.ts') },
  migrate: { summary: 'migrates the database without starting a process', load: () => import('./migrate.ts') },
  'restore-check': {
    summary: 'checks a restored database before the processes start',
    load: () => import('./restore-check.ts'),
  },
  roles: { summary: 'prints the SQL of the two database roles of production', load: () => import('./roles.ts') },
  config: { summary: 'prints every environment variable with its default', load: () => import('./config.ts') },
  completion: {
    summary: 'prints the completion for a shell',
    load: async () => ({ command: (await import('./completion.ts')).completionCommand(COMMANDS) }),
  },
  db: { summary: 'runs the embedded Postgres as a process, for the Procfile', load: () => import('./db.ts') },
};
