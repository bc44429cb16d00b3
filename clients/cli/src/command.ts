import type { Arguments, Options } from '../../../cli/arguments.ts';
import type { Colours } from '../../../cli/output.ts';
import type { OddswireClient } from '../../typescript/src/index.ts';
import type { Io } from './io.ts';
import type { KnownIds } from './short-ids/known-ids.ts';
import type { IdKind } from './short-ids/short-id.ts';

/** A subcommand. */
export interface CliCommand {
  /** One line of the list of commands. */
  readonly summary: string;
  /** Its calls, without the name of the program, such as `book MARKET`. */
  readonly forms: readonly string[];
  /** The words that may follow its name. */
  readonly verbs?: readonly string[];
  readonly options: Options;
  /** The number of words behind the name: least and most. */
  readonly words: readonly [number, number];
  /** Where it takes ids of venues, which may be short ids: all its words, and comma lists of options. */
  readonly ids?: { readonly words?: IdKind; readonly options?: Readonly<Record<string, IdKind>> };
  /** More about the command, below its options. */
  readonly notes?: string;
  /** Resolves with the exit code. @throws UsageError for wrong arguments */
  run(call: Call): Promise<number>;
}

export type Commands = Readonly<Record<string, CliCommand>>;

/** One call of a command. */
export interface Call extends Arguments {
  readonly io: Io;
  readonly colours: Colours;
  /** Every command. */
  readonly commands: Commands;
  /** The client of ODDSWIRE_URL and ODDSWIRE_KEY. @throws SettingsError without them, or when one is invalid */
  client(): OddswireClient<string>;
  /** Address and key. @throws SettingsError without them, or when one is invalid */
  settings(): Settings;
  /** The short ids of the API that this machine knows. @throws SettingsError, CommandError */
  knownIds(): Promise<KnownIds>;
  print(text: string): Promise<void>;
  /** A line beside the output, on standard error. */
  note(text: string): Promise<void>;
}

export interface Settings {
  readonly url: string;
  readonly key: string;
}
