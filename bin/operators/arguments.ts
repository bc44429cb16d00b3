import { choiceOf, type Options, readArguments, UsageError } from '../../cli/arguments.ts';
import { isConfiguredName, OPERATOR_ROLES, type OperatorRole } from '../../src/store/ops/operators.ts';

export type OperatorsOptions = { json: boolean } & (
  | { verb: 'add'; name: string; role: OperatorRole }
  | { verb: 'password' | 'remove'; name: string }
  | { verb: 'list' }
);
type Verb = OperatorsOptions['verb'];

export const OPERATORS_USAGE = `usage: oddswire operators add NAME [--role viewer|operator] [--json]
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
  or with an operator here: restart it after the first one.`;

const JSON_FLAG = { json: {} };

export const OPERATORS_OPTIONS: Readonly<Record<Verb, Options>> = {
  add: { role: { value: 'ROLE', choices: OPERATOR_ROLES }, ...JSON_FLAG },
  password: JSON_FLAG,
  remove: JSON_FLAG,
  list: JSON_FLAG,
};
const NAME = /^[a-z0-9][a-z0-9._@-]{0,63}$/;

/** The parsed arguments. @throws UsageError that lists every problem */
export function parseOperatorsArguments(argv: readonly string[]): OperatorsOptions {
  const problems: string[] = [];
  const [first = '', ...rest] = argv;
  const verb = (Object.keys(OPERATORS_OPTIONS) as Verb[]).find((each) => each === first);
  if (verb === undefined) throw new UsageError([`name a command: ${Object.keys(OPERATORS_OPTIONS).join(', ')}`]);
  const given = readArguments(rest, OPERATORS_OPTIONS[verb], problems);
  const json = given.flags.has('json');
  const name = verb === 'list' ? '' : readName(given.words.shift() ?? '', verb, problems);
  const role = choiceOf(given, 'role', OPERATOR_ROLES) ?? 'viewer';
  problems.push(...given.words.map((word) => `unknown argument ${word}`));
  if (problems.length > 0) throw new UsageError(problems);
  if (verb === 'list') return { verb, json };
  return verb === 'add' ? { verb, json, name, role } : { verb, json, name };
}

function readName(text: string, verb: Verb, problems: string[]): string {
  const name = text.toLowerCase();
  if (!NAME.test(name)) problems.push(`${verb} takes a name of 1 to 64 of the characters a-z 0-9 . _ @ -`);
  else if (isConfiguredName(name)) problems.push(`the name ${name} belongs to a password of the configuration`);
  return name;
}
