import { resolve } from 'node:path';
import { type Config, ConfigError, loadConfig } from '../src/config/config.ts';
import { asError, OddswireError } from '../src/domain/values/errors.ts';
import { openOperatorDatabase } from '../src/embedded/operator-database.ts';
import { createLogger } from '../src/observe/logger.ts';
import { EXIT_CONFIG } from '../src/runtime/lifecycle.ts';
import { type Database, sqlState } from '../src/store/db/tx.ts';
import { UsageError } from './command-arguments.ts';

const EXIT_USAGE = 2;

/** The context of a command. */
export interface CommandContext {
  db: Database;
  config: Config;
}

interface OperatorCommand<Options> {
  name: string;
  usage: string;
  /** @throws UsageError */
  parse(argv: readonly string[]): Options;
  /** Returns the exit code. */
  run(options: Options, context: CommandContext): Promise<number>;
}

/** A placeholder for the key ring that every process must have: a command opens no secret. */
const NO_KEY_RING = `none:${Buffer.alloc(32).toString('base64')}`;
/** SQLSTATEs of a missing table or column. */
const SCHEMA_DIFFERS = ['42P01', '42703'];
const NO_DATABASE = 'postgres://none';

/**
 * Runs an operator's command and ends the process with its exit code: 2 for wrong arguments, 78 for a wrong configuration, 1 for
 * a failure, each with a line that states the reason. It uses the database of `DATABASE_URL`, or the database of `npm start`.
 */
export async function runOperatorCommand<Options>(command: OperatorCommand<Options>): Promise<void> {
  process.exit(await exitCodeOf(command));
}

async function exitCodeOf<Options>(command: OperatorCommand<Options>): Promise<number> {
  const { name } = command;
  const say = (line: string) => process.stderr.write(`oddswire ${name}: ${line}\n`);
  try {
    const options = command.parse(process.argv.slice(2));
    const databaseUrl = process.env['DATABASE_DIRECT_URL'] || process.env['DATABASE_URL'];
    const config = loadConfig({
      ...process.env,
      DATABASE_URL: databaseUrl || NO_DATABASE,
      SECRETS_KEYS: process.env['SECRETS_KEYS'] || NO_KEY_RING,
    });
    const log = createLogger({ process: name, level: 'warn', destination: process.stderr });
    const { db, close } = await openOperatorDatabase({ name, databaseUrl, dataDir: resolve(config.dataDir), log });
    try {
      return await command.run(options, { db, config });
    } finally {
      await close();
    }
  } catch (thrown) {
    if (thrown instanceof UsageError) {
      thrown.problems.forEach(say);
      process.stderr.write(`${command.usage}\n`);
      return EXIT_USAGE;
    }
    if (thrown instanceof ConfigError) {
      for (const problem of thrown.problems) say(`configuration: ${problem}`);
      return EXIT_CONFIG;
    }
    if (SCHEMA_DIFFERS.includes(sqlState(thrown) ?? '')) {
      say('the database has another version: start oddswire once to migrate it');
      return 1;
    }
    const error = asError(thrown);
    // The message of our own errors is complete; any other error needs its stack.
    say((error instanceof OddswireError ? error.message : error.stack) ?? error.message);
    return 1;
  }
}

/** Writes to stdout; resolves after the flush, which must precede the exit. */
export function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
