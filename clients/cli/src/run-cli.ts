import { UsageError } from '../../../cli/arguments.ts';
import { coloursOf, isBrokenPipe } from '../../../cli/output.ts';
import { nearest } from '../../../src/domain/values/nearest.ts';
import { printable } from '../../../src/domain/values/text.ts';
import {
  createClient,
  OddswireApiError,
  type OddswireClient,
  OddswireConnectionError,
} from '../../typescript/src/index.ts';
import { type Call, type CliCommand, CommandError, type Settings, SettingsError } from './command.ts';
import { COMMANDS } from './commands.ts';
import { EXIT, exitCodeOf, linesOf } from './exit-codes.ts';
import { helpOf, listOf } from './help.ts';
import type { Io } from './io.ts';
import { argumentsOf } from './read-arguments.ts';
import { VERSION } from './version.ts';

const HELP = new Set(['--help', '-h', 'help']);

/** Runs one command and resolves with the exit code. It reports nothing when the reader of the output ended. */
export async function runCli([name, ...argv]: readonly string[], io: Io): Promise<number> {
  try {
    if (name === undefined) {
      await io.stderr.write(listOf(COMMANDS));
      return EXIT.usage;
    }
    if (name === '--version') return await printed(io, `${VERSION}\n`);
    const isHelp = HELP.has(name);
    if (isHelp && argv[0] === undefined) return await printed(io, listOf(COMMANDS));
    const wanted = isHelp ? (argv[0] ?? '') : name;
    const command = Object.hasOwn(COMMANDS, wanted) ? COMMANDS[wanted] : undefined;
    if (command === undefined) return await reportUnknown(io, wanted);
    if (isHelp || argv.includes('--help') || argv.includes('-h')) return await printed(io, helpOf(command));
    return await run(name, command, argv, io);
  } catch (error) {
    if (isBrokenPipe(error)) return EXIT.brokenPipe;
    throw error;
  }
}

async function run(name: string, command: CliCommand, argv: readonly string[], io: Io): Promise<number> {
  const report = (lines: readonly string[]) =>
    io.stderr.write(
      lines.map((line, at) => `${at === 0 ? `oddswire-cli ${name}: ` : ''}${printable(line)}\n`).join(''),
    );
  try {
    return await command.run(callOf(command, argv, io));
  } catch (error) {
    if (error instanceof UsageError) {
      for (const problem of error.problems) await report([problem]);
      await io.stderr.write(`${helpOf(command).split('\n\n')[0]}\n`);
      return EXIT.usage;
    }
    if (error instanceof SettingsError) {
      await report([error.message]);
      return EXIT.settings;
    }
    if (error instanceof CommandError) {
      await report([error.message]);
      return error.exitCode;
    }
    if (error instanceof OddswireApiError || error instanceof OddswireConnectionError) {
      await report(linesOf(error));
      return exitCodeOf(error);
    }
    // A request that ended with the signal of Ctrl-C.
    if (io.signal.aborted && error === io.signal.reason) return EXIT.done;
    // The client rejects an id such as ".." before it sends a request.
    if (error instanceof RangeError) {
      await report([error.message]);
      return EXIT.usage;
    }
    throw error;
  }
}

function callOf(command: CliCommand, argv: readonly string[], io: Io): Call {
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
  return {
    ...parsed,
    io,
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

async function printed(io: Io, text: string): Promise<number> {
  await io.stdout.write(text);
  return EXIT.done;
}

async function reportUnknown(io: Io, name: string): Promise<number> {
  const close = nearest(name, Object.keys(COMMANDS));
  const hint = close === undefined ? '' : `; did you mean "${close}"?`;
  await io.stderr.write(
    `oddswire-cli: unknown command "${name}"${hint}\n\`oddswire-cli --help\` lists the commands.\n`,
  );
  return EXIT.usage;
}
