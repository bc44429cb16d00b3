import type { Option } from '../../../cli/arguments.ts';
import { aligned } from '../../../cli/table.ts';
import type { CliCommand } from './command.ts';
import { COMMON } from './read-arguments.ts';

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
