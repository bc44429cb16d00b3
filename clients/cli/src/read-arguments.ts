import { type Arguments, type Options, readArguments, UsageError, wholeNumberOf } from '../../../cli/arguments.ts';
import { parseFuture, parsePast } from '../../../cli/spans.ts';
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
  const problems: string[] = [];
  const given = readArguments(argv, { ...command.options, ...COMMON }, problems);
  const { words, flags } = given;
  const [least, most] = command.words;
  const verb = words[0];
  if (command.verbs !== undefined && verb !== undefined && !command.verbs.includes(verb)) {
    problems.push(`"${verb}" must be one of ${command.verbs.join(', ')}`);
  } else if (words.length < least) problems.push('an argument is missing');
  else if (words.length > most) problems.push(...words.slice(most).map((word) => `unknown argument ${word}`));
  if (flags.has('json') && flags.has('csv')) problems.push('choose --json or --csv');
  if (problems.length > 0) throw new UsageError(problems);
  return given;
}

/** The whole number of an option. @throws UsageError */
export function wholeNumber(call: Arguments, name: string, bounds: readonly [number, number]): number | undefined {
  const problems: string[] = [];
  const number = wholeNumberOf(call, name, bounds, problems);
  if (problems.length > 0) throw new UsageError(problems);
  return number;
}

/** Epoch seconds of an option: an age (`90m`, `24h`, `7d`), epoch seconds, or a date or time in ISO 8601 (UTC unless it has a zone). */
export function moment(call: Arguments, name: string, nowMs: number): number | undefined {
  return momentBy(parsePast, call, name, nowMs);
}

/** The same for a time to come: a span such as `90d` is from now. */
export function futureMoment(call: Arguments, name: string, nowMs: number): number | undefined {
  return momentBy(parseFuture, call, name, nowMs);
}

function momentBy(parse: typeof parsePast, { texts }: Arguments, name: string, nowMs: number): number | undefined {
  const text = texts.get(name);
  if (text === undefined) return undefined;
  const seconds = parse(text, Math.floor(nowMs / 1_000));
  if (seconds !== null) return seconds;
  throw new UsageError([`--${name} must be an age such as 24h, a date, a time in ISO 8601, or epoch seconds`]);
}
