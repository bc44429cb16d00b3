import { createWriteStream } from 'node:fs';
import { access } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { CheckedFiles } from '../../src/archive/checked-files.ts';
import { type Duckdb, hasDuckdb, openDuckdb } from '../../src/archive/duckdb.ts';
import { linesSql, mergeSql, type PastQuery } from '../../src/archive/export.ts';
import type { FetchedFiles } from '../../src/archive/store/fetched-files.ts';
import { SCHEMA_VERSION } from '../../src/domain/archive/kinds.ts';
import { INTERVAL_SECONDS } from '../../src/domain/markets/candle.ts';
import { OddswireError } from '../../src/domain/values/errors.ts';
import { type ExportHistory, readExportPast } from '../../src/store/archive/export-history.ts';
import type { PastFile } from '../../src/store/archive/past.ts';
import type { Database } from '../../src/store/db/tx.ts';
import {
  type ExportPlace,
  type ExportRequest,
  type ExportSelection,
  HistoryMoved,
  type PastRows,
} from '../../src/store/series/export.ts';
import type { WorkFolder } from './work-folder.ts';

/** DuckDB sorts rows of any number within this memory, and writes the others to the work folder. */
const MEMORY_MB = 512;
const MAX_THREADS = 4;
const PACKAGES = '@duckdb/node-api, hyparquet and hyparquet-compressors';

/** @throws OddswireError when the optional packages are not installed */
export function requireDuckdb(use: string): void {
  if (hasDuckdb()) return;
  throw new OddswireError(
    'archive_unavailable',
    `${use} needs the optional packages ${PACKAGES}: npm install installs them`,
  );
}

/** The rows of an export that files of the archive have. */
export class ArchivedRows {
  readonly #db: Database;
  readonly #folder: string | undefined;
  readonly #files: CheckedFiles | undefined;
  readonly #work: WorkFolder;

  /** `folder`: that of the archive. `fetched`: files of its object store. */
  constructor(options: {
    db: Database;
    folder: string | undefined;
    fetched?: FetchedFiles | undefined;
    work: WorkFolder;
  }) {
    this.#db = options.db;
    this.#folder = options.folder;
    this.#files = options.folder === undefined ? undefined : new CheckedFiles(options.folder, options.fetched);
    this.#work = options.work;
  }

  /** The path of the CSV of the rows that files may have. */
  get mergedPath(): string {
    return this.#work.pathOf('merged.csv');
  }

  /**
   * The rows behind a position; undefined while Postgres has all rows.
   * @throws OddswireError `archive_unavailable` when this process cannot read a file
   */
  async open(request: ExportRequest, after: ExportPlace | null): Promise<PastRows | undefined> {
    const history = await readExportPast(this.#db, request, () => createWriteStream(this.mergedPath));
    if (history.seam === null) return undefined;
    const query = await this.queryOf(request, history);
    const { presentFrom } = history;
    const seam = String(history.seam);
    if (query === null) return { seam, presentFrom, next: async () => undefined, close: async () => undefined };
    const duckdb = await this.duckdb();
    try {
      for (const statement of mergeSql(query)) await this.#moving(query, () => duckdb.run(statement));
      const { format, decimalFormat } = request;
      const groups = duckdb.lines(linesSql(query, { format, decimalFormat, after }));
      const found = new Lines(() => this.#moving(query, () => groups.next()));
      return { seam, presentFrom, next: (outcomeId) => found.next(outcomeId), close: () => duckdb.close() };
    } catch (error) {
      await duckdb.close();
      throw error;
    }
  }

  /**
   * What DuckDB reads; null when no file has rows of the selection.
   * @throws OddswireError `archive_unavailable`
   */
  async queryOf({ kind, marketId, intervals }: ExportSelection, history: ExportHistory): Promise<PastQuery | null> {
    const { files, merged, carriedFrom, outcomeIds, from, until } = history;
    if (files.length === 0 && merged === 0) return null;
    requireDuckdb('an export of rows that Postgres moved to files of the archive');
    const isCompared = merged > 0 && carriedFrom !== null;
    return {
      ...{ kind, marketId, outcomeIds, from, until, merged: merged > 0 ? this.mergedPath : null },
      intervals: intervals.map((interval) => INTERVAL_SECONDS[interval]),
      files: await this.#paths(files),
      carriedFrom: isCompared ? ((await this.#paths([carriedFrom]))[0] ?? null) : null,
    };
  }

  /** A process of DuckDB for the archive and the work folder. */
  duckdb(): Promise<Duckdb> {
    const folders = [this.#folder, this.#work.path].flatMap((path) => (path === undefined ? [] : [`${path}/`]));
    const threads = Math.min(MAX_THREADS, availableParallelism());
    const limits = { folders, spillFolder: this.#work.pathOf('spill'), memoryMb: MEMORY_MB, threads };
    return openDuckdb(limits, new AbortController().signal);
  }

  async #paths(files: readonly PastFile[]): Promise<string[]> {
    if (files.length === 0) return [];
    const checked = this.#files;
    if (checked === undefined) {
      throw new OddswireError(
        'archive_unavailable',
        'Postgres moved rows of this range to files of the archive: set ARCHIVE_DIR to its folder',
      );
    }
    const paths: string[] = [];
    for (const file of files) {
      if (file.schemaVersion > SCHEMA_VERSION) {
        throw new OddswireError('archive_unavailable', `the file has the columns of a newer release: ${file.file}`);
      }
      paths.push(await checked.pathOf(file));
    }
    return paths;
  }

  /** A revision moves the file of a day: DuckDB may open it a moment too late. */
  async #moving<T>(query: PastQuery, read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      for (const path of query.files) await access(path).catch((cause) => Promise.reject(new HistoryMoved(cause)));
      throw error;
    }
  }
}

type Groups = IteratorResult<readonly { first: string; lines: string; rows: number; keys: string[] }[]>;

/** Lines by outcome: those of outcomes that the export does not have are skipped. */
class Lines {
  readonly #read: () => Promise<Groups>;
  #groups: Groups['value'] = [];
  #at = 0;

  constructor(read: () => Promise<Groups>) {
    this.#read = read;
  }

  async next(outcomeId: string): Promise<{ lines: string; rows: number; keys: string[] } | undefined> {
    for (;;) {
      const group = this.#groups?.[this.#at];
      if (group === undefined) {
        const read = this.#groups === undefined ? undefined : await this.#read();
        this.#groups = read?.done ? undefined : read?.value;
        this.#at = 0;
        if (this.#groups === undefined) return undefined;
      } else if (group.first === outcomeId) {
        this.#at += 1;
        return group;
      } else if (Buffer.compare(Buffer.from(group.first), Buffer.from(outcomeId)) > 0) {
        return undefined;
      } else {
        this.#at += 1;
      }
    }
  }
}
