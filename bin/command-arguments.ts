import { parseArgs } from 'node:util';
import { OddswireError } from '../src/domain/values/errors.ts';

/** Invalid arguments; `problems` lists every one. */
export class UsageError extends OddswireError {
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super('usage', problems.join('; '));
    this.problems = problems;
  }
}

/** The options of a command: options with a value, and flags. A shell completes the choices. */
export type OptionTypes = Readonly<
  Record<string, { type: 'string'; choices?: readonly string[] } | { type: 'boolean' }>
>;

export interface CommandArguments {
  /** The positional arguments, in order. */
  words: string[];
  /** The values of options; the last one of a repeated option. */
  texts: Map<string, string>;
  flags: Set<string>;
}

/**
 * The parsed arguments of a command. Adds unknown options and options without their value to `problems`:
 * the strict mode of `parseArgs` stops at the first problem, but an operator needs all of them.
 */
export function readArguments(argv: readonly string[], options: OptionTypes, problems: string[]): CommandArguments {
  const words: string[] = [];
  const texts = new Map<string, string>();
  const flags = new Set<string>();
  const { tokens } = parseArgs({ args: [...argv], options, strict: false, allowPositionals: true, tokens: true });
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const known = Object.entries(options).find(([name]) => name === token.name)?.[1];
    if (known === undefined) problems.push(`unknown option ${token.rawName}`);
    else if (known.type === 'boolean') {
      if (token.value !== undefined) problems.push(`${token.rawName} takes no value`);
      flags.add(token.name);
    } else if (token.value === undefined || (!token.inlineValue && token.value.startsWith('--'))) {
      problems.push(`${token.rawName} needs a value`);
    } else {
      texts.set(token.name, token.value);
    }
  }
  return { words, texts, flags };
}

/** For a command without arguments. @throws UsageError */
export function rejectArguments(argv: readonly string[]): void {
  if (argv.length > 0) throw new UsageError(argv.map((each) => `unknown argument ${each}`));
}

/** The choice of an option; undefined when it is absent or, with a problem, unknown. */
export function readChoice<Choice extends string>(
  { texts }: CommandArguments,
  name: string,
  choices: readonly Choice[],
  problems: string[],
): Choice | undefined {
  const text = texts.get(name);
  const choice = choices.find((each) => each === text);
  if (text !== undefined && choice === undefined) problems.push(`--${name} must be one of ${choices.join(', ')}`);
  return choice;
}

/** The whole number from 0 to `max` of an option, else `fallback`. */
export function readWholeNumber(
  { texts }: CommandArguments,
  name: string,
  { fallback, max }: { fallback: number; max: number },
  problems: string[],
): number {
  const text = texts.get(name);
  if (text === undefined) return fallback;
  if (/^\d{1,15}$/.test(text) && Number(text) <= max) return Number(text);
  problems.push(`--${name} must be a whole number from 0 to ${max}`);
  return fallback;
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration as an operator types it (`30s`, `90m`, `24h`, `7d`), in milliseconds. */
export function parseSpan(text: string): number | null {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const unitMs = UNITS_MS[unit ?? ''];
  return count === undefined || unitMs === undefined ? null : Number(count) * unitMs;
}

/** A time as an operator types it: epoch seconds, or a date or time in ISO 8601 (UTC unless it has a zone). */
export function parseMoment(text: string): number | null {
  if (/^\d{1,12}$/.test(text)) return Number(text);
  if (!/^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?$/.test(text)) return null;
  const hasZone = /(Z|[+-]\d{2}:?\d{2})$/.test(text) && text.length > 10;
  const ms = Date.parse(text.length > 10 && !hasZone ? `${text.replace(' ', 'T')}Z` : text.replace(' ', 'T'));
  return Number.isNaN(ms) ? null : Math.floor(ms / 1000);
}

/** A past time as an operator types it, as an age (`90m`, `24h`, `7d`) or as in `parseMoment`: epoch milliseconds. */
export function parsePast(text: string, nowMs: number): number | null {
  const ageMs = parseSpan(text);
  if (ageMs !== null) return nowMs - ageMs;
  const seconds = parseMoment(text);
  return seconds === null ? null : seconds * 1000;
}
