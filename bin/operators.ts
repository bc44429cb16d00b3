import { OddswireError } from '../src/domain/values/errors.ts';
import { hashPassword } from '../src/domain/values/password.ts';
import { SESSION_IDLE_MS } from '../src/store/accounts/sessions.ts';
import type { Database, Queryable } from '../src/store/db/tx.ts';
import { changeOperator, type ListedOperator, listOperators, type OperatorChange } from '../src/store/ops/operators.ts';
import { operatorCommand } from './operator-command.ts';
import {
  OPERATORS_OPTIONS,
  OPERATORS_USAGE,
  type OperatorsOptions,
  parseOperatorsArguments,
} from './operators/arguments.ts';
import { print } from './output/print.ts';
import { shortTime, table } from './output/report-table.ts';
import { readNewPassword } from './read-password.ts';
import { recordCommand } from './recorded.ts';

/** `oddswire operators`: the logins of the operator pages. */
export const command = operatorCommand<OperatorsOptions>({
  name: 'operators',
  usage: OPERATORS_USAGE,
  verbs: Object.keys(OPERATORS_OPTIONS),
  options: Object.assign({}, ...Object.values(OPERATORS_OPTIONS)),
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
    shortTime(createdAt.getTime()),
    shortTime(passwordChangedAt.getTime()),
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
