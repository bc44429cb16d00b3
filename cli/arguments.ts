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

/** The arguments that a command takes. */
interface Accepted {
  readonly options?: Options;
  /** The choices of the first word. */
  readonly verbs?: readonly string[];
  /** The least and the largest number of words; by default none. */
  readonly words?: readonly [number, number];
}

/** The arguments of a call. */
export interface Arguments {
  /** The positional arguments, in order. */
  readonly words: readonly string[];
  /** The last value of each option. */
  readonly texts: ReadonlyMap<string, string>;
  readonly flags: ReadonlySet<string>;
  /** The faults that are known so far. */
  readonly problems: string[];
}

/** The value that `read` makes of the arguments; it may add problems. @throws UsageError with every problem */
export function parse<Value>(argv: readonly string[], accepted: Accepted, read: (given: Arguments) => Value): Value {
  const { options = {}, verbs, words: [least, most] = [0, 0] } = accepted;
  const given = readArguments(argv, options);
  const { words, problems } = given;
  const [verb] = words;
  if (verbs !== undefined && verb !== undefined && !verbs.includes(verb)) {
    problems.push(`"${verb}" must be one of ${verbs.join(', ')}`);
  } else if (words.length < least) problems.push('an argument is missing');
  else problems.push(...words.slice(most).map((word) => `unknown argument ${word}`));
  const value = read(given);
  if (problems.length > 0) throw new UsageError(problems);
  return value;
}

/** For a command without arguments. @throws UsageError */
export function rejectArguments(argv: readonly string[]): void {
  parse(argv, {}, () => undefined);
}

/** The first argument, for commands whose verbs have options of their own. @throws UsageError without one of these verbs */
export function verbOf<Verb extends string>(
  [first]: readonly string[],
  verbs: readonly Verb[],
  noun = 'command',
): Verb {
  const verb = verbs.find((each) => each === first);
  if (verb === undefined) throw new UsageError([`name a ${noun}: ${verbs.join(', ')}`]);
  return verb;
}

/** Unlike the strict mode of `parseArgs`, which stops at the first problem, it finds all of them. */
function readArguments(argv: readonly string[], options: Options): Arguments {
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
      const { choices } = option;
      if (choices !== undefined && !choices.includes(token.value)) {
        problems.push(`${token.rawName} must be one of ${choices.join(', ')}`);
      }
      texts.set(token.name, token.value);
    }
  }
  return { words, texts, flags, problems };
}

/** The choice of an option, undefined when it is absent or not one of them. */
export function choiceOf<Choice extends string>(
  { texts }: Arguments,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  return choices.find((each) => each === texts.get(name));
}

/** The whole number of an option within these bounds; undefined when it is absent or, with a problem, invalid. */
export function wholeNumberOf(
  { texts, problems }: Arguments,
  name: string,
  [least, most]: readonly [number, number],
): number | undefined {
  const text = texts.get(name);
  if (text === undefined) return undefined;
  if (/^\d{1,15}$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text);
  problems.push(`--${name} must be a whole number from ${least} to ${most}`);
  return undefined;
}

/** The fields with a value: an absent option becomes an absent field. */
export function present<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
