import { type Arguments, choiceOf, type Options, parse, verbOf } from '../cli/arguments.ts';
import { print } from '../cli/output.ts';
import { table, utc } from '../cli/table.ts';
import { OddswireError } from '../src/domain/values/errors.ts';
import { hashPassword } from '../src/domain/values/password.ts';
import { SESSION_IDLE_MS } from '../src/store/accounts/sessions.ts';
import type { Database, Queryable } from '../src/store/db/tx.ts';
import {
  changeOperator,
  isConfiguredName,
  type ListedOperator,
  listOperators,
  OPERATOR_ROLES,
  type OperatorChange,
  type OperatorRole,
} from '../src/store/ops/operators.ts';
import { operatorCommand } from './operator-command.ts';
import { readNewPassword } from './read-password.ts';
import { recordCommand } from './recorded.ts';

type OperatorsOptions = { json: boolean } & (
  | { verb: 'add'; name: string; role: OperatorRole }
  | { verb: 'password' | 'remove'; name: string }
  | { verb: 'list' }
);
type Verb = OperatorsOptions['verb'];

const JSON_FLAG = { json: {} };

const OPTIONS: Readonly<Record<Verb, Options>> = {
  add: { role: { value: 'ROLE', choices: OPERATOR_ROLES }, ...JSON_FLAG },
  password: JSON_FLAG,
  remove: JSON_FLAG,
  list: JSON_FLAG,
};
const VERBS = Object.keys(OPTIONS) as Verb[];
const NAME = /^[a-z0-9][a-z0-9._@-]{0,63}$/;

/** `oddswire operators`: the logins of the operator pages. */
export const command = operatorCommand<OperatorsOptions>({
  name: 'operators',
  usage: `usage: oddswire operators add NAME [--role viewer|operator] [--json]
       oddswire operators password NAME [--json]
       oddswire operators remove NAME [--json]
       oddswire operators list [--json]

  add       adds a login of the operator pages; the default role is viewer, which reads and does not act
  password  sets a new password and ends the operator's sessions at once
  remove    removes the login and ends its sessions at once
  list      lists operators with their roles and the number of their sessions, never the passwords

  NAME has 1 to 64 of the characters a-z 0-9 . _ @ - and begins with a letter or a digit.
  The password has 12 to 1024 characters. In a terminal the command asks for it twice without showing it; otherwise it reads it from
  standard input, as in \`pass show ops | oddswire operators add alice\`.
  The names ops and viewer belong to OPS_PASSWORD and OPS_VIEWER_PASSWORD. The API opens the pages when it starts with a password there
  or with an operator here: restart it after the first one.`,
  verbs: VERBS,
  options: Object.assign({}, ...Object.values(OPTIONS)),
  parse: parseOperatorsArguments,
  async run(options, { db }) {
    const { verb, json } = options;
    if (verb === 'list') {
      const now = new Date();
      const operators = await listOperators(db, now, new Date(now.getTime() - SESSION_IDLE_MS));
      await print(json ? `${operatorsJson(operators)}\n` : operatorsText(operators));
      return 0;
    }
    await change(db, await changeOf(options));
    await print(
      json ? `${JSON.stringify({ name: options.name, done: verb })}\n` : `${RESULTS[verb]} ${options.name}\n`,
    );
    return 0;
  },
});

/** The parsed arguments. @throws UsageError that lists every problem */
export function parseOperatorsArguments(argv: readonly string[]): OperatorsOptions {
  const verb = verbOf(argv, VERBS);
  return parse(argv.slice(1), { options: OPTIONS[verb], words: [0, verb === 'list' ? 0 : 1] }, (given) => {
    const json = given.flags.has('json');
    if (verb === 'list') return { verb, json };
    const name = readName(given, verb);
    return verb === 'add'
      ? { verb, json, name, role: choiceOf(given, 'role', OPERATOR_ROLES) ?? 'viewer' }
      : { verb, json, name };
  });
}

function readName({ words, problems }: Arguments, verb: Verb): string {
  const name = (words[0] ?? '').toLowerCase();
  if (!NAME.test(name)) problems.push(`${verb} takes a name of 1 to 64 of the characters a-z 0-9 . _ @ -`);
  else if (isConfiguredName(name)) problems.push(`the name ${name} belongs to a password of the configuration`);
  return name;
}

const RESULTS = { add: 'added', password: 'set the password and ended the sessions of', remove: 'removed' } as const;

async function changeOf(options: Exclude<OperatorsOptions, { verb: 'list' }>): Promise<OperatorChange> {
  const { verb, name } = options;
  if (verb === 'remove') return { action: 'remove', name };
  const passwordHash = await hashPassword(await readNewPassword());
  return verb === 'add'
    ? { action: 'add', name, role: options.role, passwordHash }
    : { action: 'password', name, passwordHash };
}

async function change(db: Database, wanted: OperatorChange): Promise<void> {
  const { action, name } = wanted;
  const detail = wanted.action === 'add' ? wanted.role : '';
  const record = (tx: Queryable) => recordCommand(tx, { action: `operator.${action}`, subject: name, detail });
  if (await changeOperator(db, wanted, record)) return;
  throw wanted.action === 'add'
    ? new OddswireError('operator_exists', `the operator ${wanted.name} exists already`)
    : new OddswireError('no_such_operator', `no operator has the name ${wanted.name}`);
}

function operatorsText(operators: readonly ListedOperator[]): string {
  if (operators.length === 0) return 'No operators.\n';
  const rows = operators.map(({ name, role, createdAt, passwordChangedAt, sessions }) => [
    name,
    role,
    utc(createdAt),
    utc(passwordChangedAt),
    String(sessions),
  ]);
  return table([['name', 'role', 'created', 'password set', 'sessions'], ...rows], [4]);
}

function operatorsJson(operators: readonly ListedOperator[]): string {
  return JSON.stringify(
    operators.map(({ name, role, createdAt, passwordChangedAt, sessions }) => ({
      name,
      role,
      created_at: createdAt,
      password_changed_at: passwordChangedAt,
      sessions,
    })),
  );
}
