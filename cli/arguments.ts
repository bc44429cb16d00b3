import { parseArgs } from 'node:util';

/** Wrong arguments; `problems` lists every one. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join('; '));
    this.problems = problems;
  }
}

export interface Option {
  /** The name of its value in help and completion; absent for a flag. */
  readonly value?: string;
  /** A shell completes them; another value is a problem. */
  readonly choices?: readonly string[];
  readonly help?: string;
}

export type Options = Readonly<Record<string, Option>>;

/** The arguments of a call. */
export interface Arguments {
  /** The positional arguments, in order. */
  readonly words: string[];
  /** The last value of each option. */
  readonly texts: ReadonlyMap<string, string>;
  readonly flags: ReadonlySet<string>;
}

/**
 * The parsed arguments of a command. Adds unknown options, missing values and wrong choices to `problems`: the strict mode of `parseArgs`
 * stops at the first problem, but the caller needs all of them.
 */
export function readArguments(argv: readonly string[], options: Options, problems: string[]): Arguments {
  const types = Object.fromEntries(
    Object.entries(options).map(([name, { value }]) => [
      name,
      { type: value === undefined ? ('boolean' as const) : ('string' as const) },
    ]),
  );
  const words: string[] = [];
  const texts = new Map<string, string>();
  const flags = new Set<string>();
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
      const { choices } = option;
      if (choices !== undefined && !choices.includes(token.value)) {
        problems.push(`${token.rawName} must be one of ${choices.join(', ')}`);
      }
      texts.set(token.name, token.value);
    }
  }
  return { words, texts, flags };
}

/** For a command without arguments. @throws UsageError */
export function rejectArguments(argv: readonly string[]): void {
  if (argv.length > 0) throw new UsageError(argv.map((each) => `unknown argument ${each}`));
}

/** The choice of an option, undefined when it is absent or not one of them. */
export function choiceOf<Choice extends string>(
  { texts }: Pick<Arguments, 'texts'>,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  return choices.find((each) => each === texts.get(name));
}

/** The whole number of an option within these bounds; undefined when it is absent or, with a problem, invalid. */
export function wholeNumberOf(
  { texts }: Pick<Arguments, 'texts'>,
  name: string,
  [least, most]: readonly [number, number],
  problems: string[],
): number | undefined {
  const text = texts.get(name);
  if (text === undefined) return undefined;
  if (/^\d{1,15}$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text);
  problems.push(`--${name} must be a whole number from ${least} to ${most}`);
  return undefined;
}
