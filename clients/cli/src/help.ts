import type { Option } from '../../../cli/arguments.ts';
import type { CliCommand, Commands } from './command.ts';
import { COMMON } from './read-arguments.ts';

/** The list of all commands. */
export function listOf(commands: Commands): string {
  const lines = aligned(Object.entries(commands).map(([name, { summary }]) => [name, summary]));
  return `usage: oddswire-cli COMMAND [ARGUMENTS]

${lines}
Variables: ODDSWIRE_URL is the address of the API, ODDSWIRE_KEY an API key. NO_COLOR turns colours off.
\`oddswire-cli COMMAND --help\` describes a command.
`;
}

/** The text of `--help`. */
export function helpOf({ forms, summary, options, notes }: CliCommand): string {
  const usage = forms.map((form, at) => `${at === 0 ? 'usage: ' : '       '}oddswire-cli ${form}`).join('\n');
  const described = aligned(
    Object.entries({ ...options, ...COMMON }).map(([name, option]) => [flagOf(name, option), helpText(option)]),
  );
  return `${usage}\n\n${summary}\n\n${described}${notes === undefined ? '' : `\n${notes}\n`}`;
}

function flagOf(name: string, { value }: Option): string {
  return value === undefined ? `--${name}` : `--${name} ${value}`;
}

function helpText({ help = '', choices }: Option): string {
  return choices === undefined ? help : `${help}: ${choices.join(', ')}`;
}

function aligned(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([name]) => name.length));
  return rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}\n`).join('');
}
