import { nearest } from '../src/domain/values/nearest.ts';
import { printable } from '../src/domain/values/text.ts';
import { type Options, UsageError } from './arguments.ts';
import { isBrokenPipe } from './output.ts';
import { aligned } from './table.ts';

const EXIT_USAGE = 2;
/** 128 and the number of SIGPIPE, as a shell reports a program whose reader ended. */
const EXIT_BROKEN_PIPE = 141;
const HELP = new Set(['--help', '-h', 'help']);

/** A subcommand of a program. */
export interface Command {
  /** The text of `--help`. Its first paragraph has the forms of a call. */
  readonly usage: string;
  /** The words that may follow its name, for the completion of a shell. */
  readonly verbs?: readonly string[];
  /** The options of all verbs. */
  readonly options?: Options;
  /** Runs until the work is done and resolves with the exit code. @throws UsageError for wrong arguments */
  run(argv: readonly string[]): Promise<number>;
}

interface Program {
  readonly name: string;
  readonly version: string;
  /** Every command, in the order of the list. */
  readonly commands: Readonly<Record<string, { readonly summary: string; load(): Promise<{ command: Command }> }>>;
  /** Lines below the list of commands. */
  readonly notes?: string;
  print(text: string): Promise<void>;
  printError(text: string): Promise<void>;
  /** The failure of a command; undefined when the program cannot name it. */
  explain(error: unknown): Failure | undefined;
}

/** A failure that a command reports. */
export interface Failure {
  readonly messages: readonly string[];
  readonly exitCode: number;
}

/** Runs one command and resolves with the exit code. It reports nothing when the reader of the output ended. */
export async function runProgram([name, ...argv]: readonly string[], program: Program): Promise<number> {
  const { commands, print, printError } = program;
  try {
    if (name === undefined) {
      await printError(listOf(program));
      return EXIT_USAGE;
    }
    const isHelp = HELP.has(name);
    const wanted = isHelp ? argv[0] : name;
    if (name === '--version' || wanted === undefined) {
      await print(wanted === undefined ? listOf(program) : `${program.version}\n`);
      return 0;
    }
    const entry = Object.hasOwn(commands, wanted) ? commands[wanted] : undefined;
    if (entry === undefined) {
      await printError(unknownText(program, wanted));
      return EXIT_USAGE;
    }
    const { command } = await entry.load();
    if (!isHelp && !asksForHelp(argv)) return await run(program, name, command, argv);
    await print(`${command.usage.trimEnd()}\n`);
    return 0;
  } catch (error) {
    if (isBrokenPipe(error)) return EXIT_BROKEN_PIPE;
    throw error;
  }
}

/** A failure prints lines that state the reason, and no control characters of foreign text. */
async function run(program: Program, name: string, command: Command, argv: readonly string[]): Promise<number> {
  const report = async (messages: readonly string[]) => {
    for (const message of messages) {
      const text = message.split('\n').map(printable).join('\n');
      await program.printError(`${program.name} ${name}: ${text}\n`);
    }
  };
  try {
    return await command.run(argv);
  } catch (error) {
    if (isBrokenPipe(error)) throw error;
    if (error instanceof UsageError) {
      await report(error.problems);
      await program.printError(`${command.usage.split('\n\n')[0]}\n`);
      return EXIT_USAGE;
    }
    const failure = program.explain(error);
    if (failure === undefined) throw error;
    await report(failure.messages);
    return failure.exitCode;
  }
}

function listOf({ name, commands, notes }: Program): string {
  const lines = aligned(Object.entries(commands).map(([command, { summary }]) => [command, summary]));
  const end = `\`${name} COMMAND --help\` describes a command.\n`;
  return `usage: ${name} COMMAND [ARGUMENTS]\n\n${lines}\n${notes === undefined ? '' : `${notes}\n`}${end}`;
}

function unknownText({ name, commands }: Program, wanted: string): string {
  const close = nearest(wanted, Object.keys(commands));
  const hint = close === undefined ? '' : `; did you mean "${close}"?`;
  return `${name}: unknown command "${printable(wanted)}"${hint}\n\`${name} --help\` lists the commands.\n`;
}

/** Whether the arguments ask for help. Text behind `--` belongs to the command. */
function asksForHelp(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  return argv.slice(0, end < 0 ? undefined : end).some((each) => each === '--help' || each === '-h');
}
