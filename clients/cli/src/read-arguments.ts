import { parseArgs } from 'node:util';
import { type Arguments, type CliCommand, type Option, type Options, UsageError } from './command.ts';

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

/** The parsed arguments. @throws UsageError with every problem: the strict mode of `parseArgs` stops at the first one */
export function readArguments(command: CliCommand, argv: readonly string[]): Arguments {
  const options: Options = { ...command.options, ...COMMON };
  const types = Object.fromEntries(
    Object.entries(options).map(([name, { value }]) => [
      name,
      { type: value === undefined ? ('boolean' as const) : ('string' as const) },
    ]),
  );
  const words: string[] = [];
  const texts = new Map<string, string>();
  const flags = new Set<string>();
  const problems: string[] = [];
  const { tokens } = parseArgs({
    args: [...argv],
    options: types,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const option = Object.hasOwn(options, token.name) ? options[token.name] : undefined;
    if (option === undefined) problems.push(`unknown option ${token.rawName}`);
    else if (option.value === undefined) {
      if (token.value !== undefined) problems.push(`${token.rawName} takes no value`);
      flags.add(token.name);
    } else if (token.value === undefined || (!token.inlineValue && token.value.startsWith('--'))) {
      problems.push(`${token.rawName} needs a value`);
    } else {
      problems.push(...choiceProblems(token.rawName, option, token.value));
      texts.set(token.name, token.value);
    }
  }
  const [least, most] = command.words;
  const verb = words[0];
  if (command.verbs !== undefined && verb !== undefined && !command.verbs.includes(verb)) {
    problems.push(`"${verb}" must be one of ${command.verbs.join(', ')}`);
  } else if (words.length < least) problems.push('an argument is missing');
  else if (words.length > most) problems.push(...words.slice(most).map((word) => `unknown argument ${word}`));
  if (flags.has('json') && flags.has('csv')) problems.push('choose --json or --csv');
  if (problems.length > 0) throw new UsageError(problems);
  return { words, texts, flags };
}

function choiceProblems(name: string, { choices }: Option, value: string): string[] {
  return choices === undefined || choices.includes(value) ? [] : [`${name} must be one of ${choices.join(', ')}`];
}

/** The whole number of an option. @throws UsageError */
export function wholeNumber(
  { texts }: Arguments,
  name: string,
  [least, most]: readonly [number, number],
): number | undefined {
  const text = texts.get(name);
  if (text === undefined) return undefined;
  if (/^\d{1,15}$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text);
  throw new UsageError([`--${name} must be a whole number from ${least} to ${most}`]);
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Epoch seconds of an option: an age (`90m`, `24h`, `7d`), epoch seconds, or a date or time in ISO 8601 (UTC unless it has a zone). */
export function moment({ texts }: Arguments, name: string, nowMs: number): number | undefined {
  const text = texts.get(name);
  if (text === undefined) return undefined;
  const span = spanSeconds(text);
  if (span !== undefined) return Math.floor(nowMs / 1_000) - span;
  if (/^\d{1,12}$/.test(text)) return Number(text);
  const [, date, time, zone] = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(Z|[+-]\d\d:?\d\d)?)?$/.exec(text) ?? [];
  const ms = date === undefined ? Number.NaN : Date.parse(`${date}T${time ?? '00:00'}${zone ?? 'Z'}`);
  if (!Number.isNaN(ms)) return Math.floor(ms / 1_000);
  throw new UsageError([`--${name} must be an age such as 24h, a date, a time in ISO 8601, or epoch seconds`]);
}

/** The same for a time to come: a span such as `90d` is from now. */
export function futureMoment(call: Arguments, name: string, nowMs: number): number | undefined {
  const span = spanSeconds(call.texts.get(name) ?? '');
  return span === undefined ? moment(call, name, nowMs) : Math.floor(nowMs / 1_000) + span;
}

/** The seconds of a span such as `90m` or `7d`. */
function spanSeconds(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  return count === undefined || unit === undefined ? undefined : Number(count) * (UNIT_SECONDS[unit] ?? 0);
}
