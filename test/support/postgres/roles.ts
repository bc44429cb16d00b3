import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { inject } from 'vitest';
import { oddswire } from '../../integration/bin/run-command.ts';

/** An empty database with the two roles of `oddswire roles`. */
export interface RestrictedDatabase {
  /** For the superuser. */
  adminUrl: string;
  migrateUrl: string;
  appUrl: string;
  drop(): Promise<void>;
}

/** Creates the roles by the script that operators run. Their names are random, because roles belong to the whole server. */
export async function createRestrictedDatabase(): Promise<RestrictedDatabase> {
  const server = inject('adminUrl');
  const suffix = randomBytes(6).toString('hex');
  const database = `test_roles_${suffix}`;
  const [migrator, app] = [`migrator_${suffix}`, `app_${suffix}`];
  const urlOf = (role: string) => {
    const url = new URL(server);
    url.pathname = `/${database}`;
    if (role !== '') Object.assign(url, { username: role, password: suffix });
    return url.href;
  };
  await asSuperuser(server, `CREATE DATABASE ${database}`);
  const argv = ['roles', '--migrator', migrator, '--app', app, '--database', database];
  const { stdout } = await oddswire(argv);
  const passwords = [migrator, app].map((role) => `ALTER ROLE ${role} PASSWORD '${suffix}'`);
  await asSuperuser(urlOf(''), stdout, ...passwords);
  return {
    adminUrl: urlOf(''),
    migrateUrl: urlOf(migrator),
    appUrl: urlOf(app),
    async drop() {
      await asSuperuser(server, `DROP DATABASE ${database} WITH (FORCE)`, `DROP ROLE ${app}`, `DROP ROLE ${migrator}`);
    },
  };
}

/** Runs each text as one query of its own. */
export async function asSuperuser(url: string, ...texts: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (const text of texts) await client.query(text);
  } finally {
    await client.end();
  }
}
