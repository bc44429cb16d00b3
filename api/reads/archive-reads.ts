import type { ArchiveReader } from '../../src/archive/reader.ts';
import { SCHEMA_VERSION } from '../../src/domain/archive/kinds.ts';
import { logLimited } from '../../src/observe/limited-lines.ts';
import type { Logger } from '../../src/observe/logger.ts';
import type { PastFile } from '../../src/store/archive/past.ts';
import { ApiError } from '../errors.ts';
import { type ArchiveFolder, archiveUnavailable } from './archive-folder.ts';

/** For the files of a read, before it begins. */
const MAX_WAIT_MS = 10_000;

/** Statements over files of the archive; without a folder they are refused. */
export class ArchiveReads {
  readonly #folder: ArchiveFolder | undefined;
  readonly #reader: ArchiveReader | undefined;
  readonly #log: Logger;

  constructor(options: { folder?: ArchiveFolder; reader?: ArchiveReader; log: Logger }) {
    this.#folder = options.folder;
    this.#reader = options.reader;
    this.#log = options.log;
  }

  /**
   * The first read of a file compares all its bytes: a request does not wait longer for that than for a read, and the comparison goes on.
   * @throws ApiError `archive_unavailable`
   */
  async pathsOf(files: readonly PastFile[]): Promise<string[]> {
    const folder = this.#folder;
    if (folder === undefined) {
      if (files.length === 0) return [];
      throw archiveUnavailable('off');
    }
    if (files.some(({ schemaVersion }) => schemaVersion > SCHEMA_VERSION)) throw archiveUnavailable('newer_schema');
    const paths = Promise.all(files.map((file) => folder.pathOf(file)));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(archiveUnavailable('busy')), MAX_WAIT_MS);
    });
    try {
      return await Promise.race([paths, late]);
    } finally {
      clearTimeout(timer);
      paths.catch(() => undefined);
    }
  }

  /** @throws ApiError `archive_unavailable` */
  async rows(statement: string): Promise<readonly Record<string, unknown>[]> {
    if (this.#reader === undefined) throw archiveUnavailable('off');
    try {
      return await this.#reader.run(statement);
    } catch (error) {
      if (error instanceof ApiError) throw error;
      const fault = (error as { code?: unknown }).code === 'archive_busy' ? 'busy' : 'read_failed';
      const fields = { cause: fault, err: error };
      logLimited(this.#log, { level: 'error', fields, message: 'read of the archive failed', kind: fault });
      throw archiveUnavailable(fault, error);
    }
  }
}
