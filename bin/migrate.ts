import { rejectArguments } from '../cli/arguments.ts';
import { print } from '../cli/output.ts';
import { OddswireError } from '../src/domain/values/errors.ts';
import { migrateDatabase } from '../src/runtime/migrate-database.ts';
import { canMigrate } from '../src/store/db/migrate.ts';
import { operatorCommand } from './operator-command.ts';

/** `oddswire migrate`: the migrations of this release. */
export const command = operatorCommand({
  name: 'migrate',
  usage: `usage: oddswire migrate

  Migrates the database to the version of this release, under the lock that starting processes take, and prints the migrations
  that ran. It connects with DATABASE_MIGRATE_URL, else DATABASE_DIRECT_URL or DATABASE_URL. A process does the same at its start when
  its role owns the schema; otherwise run this command before each release. \`oddswire roles\` prints the roles.`,
  migrates: true,
  parse: rejectArguments,
  async run(_options, { db, databaseUrl, config, log }) {
    if (!(await canMigrate(db))) {
      throw new OddswireError(
        'no_right',
        'this role does not own the schema: set DATABASE_MIGRATE_URL to the role that does',
      );
    }
    const ran = await migrateDatabase(databaseUrl, config.queues, log);
    await print(ran.length === 0 ? 'The database is up to date.\n' : ran.map((name) => `${name}\n`).join(''));
    return 0;
  },
});
