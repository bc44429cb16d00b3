import { type Arguments, type Option, type Options, parse, UsageError, wholeNumberOf } from '../../../cli/arguments.ts';
import { futureOf, pastOf, spanOf } from '../../../cli/spans.ts';
import type { CliCommand } from './command.ts';

/** Options of every command. */
export const COMMON: Options = {
  url: { value: 'URL', help: 'the address of the API, in place of ODDSWIRE_URL' },
  help: { help: 'describes the command' },
};

/** Options of commands that print rows. */
export const FORMATS: Options = {
  json: { help: 'prints the data of the API as JSON' },
  csv: { help: 'prints the rows as CSV, with a head' },
};

/** The arguments of a call of a command. @throws UsageError with every problem */
export function argumentsOf(command: CliCommand, argv: readonly string[]): Arguments {
  return parse(argv, { ...command, options: { ...command.options, ...COMMON } }, (given) => {
    if (given.flags.has('json') && given.flags.has('csv')) given.problems.push('choose --json or --csv');
    return given;
  });
}

/** @throws UsageError when a reader found a problem */
function valid<Value>({ problems }: Arguments, value: Value): Value {
  if (problems.length > 0) throw new UsageError(problems);
  return value;
}

/** The readers of `cli` for a command that runs already. @throws UsageError for an invalid value */
export const wholeNumber: typeof wholeNumberOf = (call, ...rest) => valid(call, wholeNumberOf(call, ...rest));
export const span: typeof spanOf = (call, ...rest) => valid(call, spanOf(call, ...rest));
export const moment: typeof pastOf = (call, ...rest) => valid(call, pastOf(call, ...rest));
export const futureMoment: typeof futureOf = (call, ...rest) => valid(call, futureOf(call, ...rest));

export const VENUE: Option = { value: 'VENUE', help: 'only this venue, such as kalshi; by default all' };
export const OUTCOME: Option = { value: 'ID', help: 'one outcome of the market' };
export const CURSOR: Option = {
  value: 'CURSOR',
  help: 'continues behind the last row of an earlier call (meta.next_cursor of --json)',
};
export const RANGE: Options = {
  start: { value: 'TIME', help: 'from this time: an age such as 24h, a date, ISO 8601 in UTC, or epoch seconds' },
  end: { value: 'TIME', help: 'until before this time' },
};
