import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Command } from '../cli/program.ts';
import { type Config, loadConfig } from '../src/config/config.ts';
import { OddswireError } from '../src/domain/values/errors.ts';
import { openOperatorDatabase } from '../src/embedded/operator-database.ts';
import { createLogger, type Logger } from '../src/observe/logger.ts';
import { type Database, sqlState } from '../src/store/db/tx.ts';
import { archiveFolder, demoFolder } from './demo/folder.ts';

/** The context of a command. */
export interface CommandContext {
  db: Database;
  config: Config;
  log: Logger;
  /** The address of the database, past any pooler. */
  databaseUrl: string;
  /** The folder of the embedded database; absent with a DATABASE_URL. */
  dataDir?: string;
}

/** The folder of the archive: `ARCHIVE_DIR`, or that of the demo whose database the command uses. */
export function archiveDirOf({ config, dataDir }: CommandContext): string | undefined {
  const ofDemo = dataDir === undefined ? undefined : archiveFolder(dataDir);
  return config.archive.dir ?? (ofDemo !== undefined && existsSync(ofDemo) ? ofDemo : undefined);
}

interface OperatorCommand<Options> extends Pick<Command, 'usage' | 'verbs' | 'options'> {
  name: string;
  /** @throws UsageError */
  parse(argv: readonly string[]): Options;
  /** Whether it connects as the role of DATABASE_MIGRATE_URL. */
  migrates?: true;
  /** Whether it uses the object store of the archive, and so needs its key. */
  usesArchive?: true;
  /** Returns the exit code. */
  run(options: Options, context: CommandContext): Promise<number>;
}

/** A placeholder for the key ring that every process must have: most commands open no secret. */
const NO_KEY_RING = `none:${Buffer.alloc(32).toString('base64')}`;
/** Most commands use no object store; a container of another process has its address without its key. */
const NO_STORE_KEY = 'not-set';
/** SQLSTATEs of a missing table or column. */
const SCHEMA_DIFFERS = ['42P01', '42703'];
const NO_DATABASE = 'postgres://none';

/**
 * A command on the database of `DATABASE_URL`, or else on the embedded database of `oddswire start` or `oddswire demo`. Without
 * `DATA_DIR` a running database precedes one that does not run.
 */
export function operatorCommand<Options>(definition: OperatorCommand<Options>): Command {
  const { name, usage, verbs, options: completed, parse, migrates, usesArchive, run } = definition;
  return {
    usage,
    ...(verbs && { verbs }),
    ...(completed && { options: completed }),
    async run(argv) {
      const options = parse(argv);
      const databaseUrl =
        (migrates && process.env['DATABASE_MIGRATE_URL']) ||
        process.env['DATABASE_DIRECT_URL'] ||
        process.env['DATABASE_URL'];
      const config = loadConfig({
        ...process.env,
        DATABASE_URL: databaseUrl || NO_DATABASE,
        SECRETS_KEYS: process.env['SECRETS_KEYS'] || NO_KEY_RING,
        ...(!usesArchive && { ARCHIVE_S3_ACCESS_KEY_ID: NO_STORE_KEY, ARCHIVE_S3_SECRET_ACCESS_KEY: NO_STORE_KEY }),
      });
      const log = createLogger({ process: name, level: 'warn', destination: process.stderr });
      const dataDir = resolve(config.dataDir);
      const opened = await openOperatorDatabase({
        name,
        databaseUrl,
        dataDirs: [dataDir, demoFolder(dataDir)],
        prefersRunning: !process.env['DATA_DIR'],
        log,
      });
      try {
        if (opened.dataDir === demoFolder(dataDir)) {
          process.stderr.write(`oddswire ${name}: uses the database of the demo in ${opened.dataDir}\n`);
        }
        return await run(options, { ...opened, config, log });
      } catch (error) {
        if (!SCHEMA_DIFFERS.includes(sqlState(error) ?? '')) throw error;
        throw new OddswireError('other_schema', 'the database has another version: `oddswire migrate` migrates it');
      } finally {
        await opened.close();
      }
    },
  };
}
