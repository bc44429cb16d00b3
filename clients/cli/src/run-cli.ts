import type { Option } from '../../../cli/arguments.ts';
import { coloursOf } from '../../../cli/output.ts';
import { type Failure, runProgram } from '../../../cli/program.ts';
import { aligned } from '../../../cli/table.ts';
import { printable } from '../../../src/domain/values/text.ts';
import {
  createClient,
  OddswireApiError,
  type OddswireClient,
  OddswireConnectionError,
} from '../../typescript/src/index.ts';
import type { Call, CliCommand, Settings } from './command.ts';
import { COMMANDS } from './commands.ts';
import { CommandError, EXIT, exitCodeOf, linesOf, SettingsError } from './exit-codes.ts';
import type { Io } from './io.ts';
import { argumentsOf, COMMON } from './read-arguments.ts';
import { KnownIds } from './short-ids/known-ids.ts';
import { hasShortIds, withWholeIds } from './short-ids/whole-ids.ts';
import { VERSION } from './version.ts';

/** Runs one command and resolves with the exit code. */
export function runCli(argv: readonly string[], io: Io): Promise<number> {
  const commands = Object.entries(COMMANDS).map(([name, command]) => {
    const run = async (rest: readonly string[]) => command.run(await callOf(command, rest, io));
    return [name, { summary: command.summary, load: async () => ({ command: { usage: helpOf(command), run } }) }];
  });
  return runProgram(argv, {
    name: 'oddswire-cli',
    version: VERSION,
    commands: Object.fromEntries(commands),
    notes: 'Variables: ODDSWIRE_URL is the address of the API, ODDSWIRE_KEY an API key. NO_COLOR turns colours off.',
    print: (text) => io.stdout.write(text),
    printError: (text) => io.stderr.write(text),
    explain: (error) => explain(error, io.signal),
  });
}

function explain(error: unknown, signal: AbortSignal): Failure | undefined {
  if (error instanceof SettingsError) return { messages: [error.message], exitCode: EXIT.settings };
  if (error instanceof CommandError) return { messages: [error.message], exitCode: error.exitCode };
  if (error instanceof OddswireApiError || error instanceof OddswireConnectionError) {
    return { messages: [linesOf(error).map(printable).join('\n')], exitCode: exitCodeOf(error) };
  }
  // A request that ended with the signal of Ctrl-C.
  if (signal.aborted && error === signal.reason)
    return { messages: ['stopped before the answer'], exitCode: EXIT.interrupted };
  // The client rejects an id such as ".." before it sends a request.
  return error instanceof RangeError ? { messages: [error.message], exitCode: EXIT.usage } : undefined;
}

async function callOf(command: CliCommand, argv: readonly string[], io: Io): Promise<Call> {
  const parsed = argumentsOf(command, argv);
  const connect = (): { settings: Settings; client: OddswireClient<string> } => {
    const settings = settingsOf(parsed.texts.get('url'), io.env);
    try {
      const client = createClient({
        baseUrl: settings.url,
        apiKey: settings.key,
        // Text keeps every digit, and works with both values of DECIMAL_FORMAT.
        decimals: 'string',
        headers: { 'User-Agent': `oddswire-cli/${VERSION}` },
        onWarning: (warnings) =>
          void io.stderr.write(
            warnings.map(({ path, message }) => `warning: ${printable(`${path} ${message}`)}\n`).join(''),
          ),
      });
      return { settings, client };
    } catch (error) {
      if (error instanceof TypeError) throw new SettingsError(`ODDSWIRE_URL and ODDSWIRE_KEY: ${error.message}`);
      throw error;
    }
  };
  const knownIds = () => KnownIds.open(connect().settings.url, io.env);
  return {
    ...(hasShortIds(command, parsed) ? withWholeIds(command, parsed, await knownIds()) : parsed),
    io,
    knownIds,
    commands: COMMANDS,
    colours: coloursOf(io.stdout.isTerminal, io.env),
    settings: () => connect().settings,
    client: () => connect().client,
    print: (text) => io.stdout.write(text),
    note: (text) => io.stderr.write(`${text}\n`),
  };
}

function settingsOf(given: string | undefined, env: Io['env']): Settings {
  const [url, key] = [given ?? env['ODDSWIRE_URL'], env['ODDSWIRE_KEY']];
  if (url && key) return { url, key };
  const problems = [
    ...(url ? [] : [missing(given === undefined ? 'ODDSWIRE_URL' : '--url', url, 'the address of the API')]),
    ...(key ? [] : [missing('ODDSWIRE_KEY', key, 'an API key')]),
  ];
  throw new SettingsError(problems.join('; '));
}

function missing(name: string, value: string | undefined, meaning: string): string {
  return value === undefined ? `set ${name} to ${meaning}` : `${name} is empty; set it to ${meaning}`;
}

/** The text of `--help`. */
function helpOf({ forms, summary, options, notes }: CliCommand): string {
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
