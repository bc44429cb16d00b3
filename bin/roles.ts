import { parse } from '../cli/arguments.ts';
import { print } from '../cli/output.ts';
import type { Command } from '../cli/program.ts';
import { type RoleNames, rolesSql } from '../src/store/db/roles.ts';

const NAME_VALUE = { value: 'NAME' };
const OPTIONS = { migrator: NAME_VALUE, app: NAME_VALUE, database: NAME_VALUE };
const DEFAULTS: RoleNames = { migrator: 'oddswire_migrator', app: 'oddswire_app', database: 'oddswire' };
/** Postgres cuts longer names. */
const NAME = /^[a-z_][a-z0-9_]{0,62}$/;

/** `oddswire roles`: the SQL of the two database roles. */
export const command: Command = {
  usage: `usage: oddswire roles [--migrator NAME] [--app NAME] [--database NAME]

  Prints SQL that creates two database roles, and connects to nothing. The role of --migrator owns the schema: DATABASE_MIGRATE_URL, for
  \`oddswire migrate\`. The role of --app reads and writes rows: DATABASE_URL, for every process. Run the SQL as a superuser in the database
  of --database, and then set a password for each role. A database that one role owns so far keeps this role as its migrator.
  Defaults: ${DEFAULTS.migrator}, ${DEFAULTS.app}, ${DEFAULTS.database}.

  oddswire roles | psql -d oddswire`,
  options: OPTIONS,
  async run(argv) {
    await print(rolesSql(namesOf(argv)));
    return 0;
  },
};

function namesOf(argv: readonly string[]): RoleNames {
  return parse(argv, { options: OPTIONS }, ({ texts, problems }) => {
    const names = { ...DEFAULTS, ...Object.fromEntries(texts) };
    for (const [option, name] of Object.entries(names)) {
      if (!NAME.test(name)) problems.push(`--${option} must be lower-case letters, digits and _, at most 63`);
    }
    if (names.migrator === names.app) problems.push('--migrator and --app must differ');
    return names;
  });
}
