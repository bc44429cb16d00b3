import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { folderOf, formerPlaceOf } from '../../domain/archive/file.ts';
import { SCHEMA_VERSION } from '../../domain/archive/kinds.ts';
import { volumeRuleOf } from '../../domain/markets/volume-witness.ts';
import { addDecimals, compareDecimals, decimal } from '../../domain/values/decimal.ts';
import { asError } from '../../domain/values/errors.ts';
import { readChangedDays } from '../../store/archive/check.ts';
import { summarizeDay } from '../../store/archive/copy.ts';
import { findFile, type ListedFile } from '../../store/archive/file-list.ts';
import { readStatedHours } from '../../store/coverage/reads.ts';
import { unitOf } from '../../store/coverage/settle.ts';
import { type Partition, readSeam } from '../../store/db/partitions.ts';
import type { Database } from '../../store/db/tx.ts';
import type { Duckdb } from '../duckdb.ts';
import { MANIFEST, sha256Of } from '../folder.ts';
import { placeOf, storedFile } from '../store/day.ts';
import type { ObjectStore } from '../store/s3.ts';
import { checkStored } from './check-store.ts';
import { dayKey, type Finding, repairable } from './finding.ts';
import { compareFiles, compareWithPostgres, readFacts, readHourVolumes } from './rows.ts';

/** The sums of a file round each trade to ten digits. */
const ROUNDING = decimal('0.001');
/** Clocks may differ by this. */
const CLOCK_MS = 300_000;

/** The disk of the unfinished files, or DuckDB with its limit of memory: other days can be compared. */
const OF_THE_MACHINE = ['ENOSPC', 'EDQUOT', 'EACCES', 'EROFS', 'archive_failed'];

export interface CheckContext {
  readonly db: Database;
  readonly dir: string;
  readonly store?: ObjectStore | undefined;
  readonly duckdb: Duckdb;
  readonly signal: AbortSignal;
  /** A folder for unfinished files, outside of the archive. */
  readonly work: string;
  /** Keys of days with noted changes: their file gets a later revision. */
  readonly changed: ReadonlySet<string>;
  /** The partitions of the kind; null when one table has all rows. */
  readonly partitions: readonly Partition[] | null;
}

/** A day in the catalog: its file, its folder, the coverage of its hours, and its rows in Postgres. */
export async function checkDay(row: ListedFile, context: CheckContext): Promise<Finding[]> {
  const file = await checkFile(row, context);
  const isReadable = file.length === 0;
  return [
    ...file,
    ...(await checkFolder(row, context, isReadable)),
    ...(await checkStored(row, context)),
    ...(isReadable ? await checkCoverage(row, context) : []),
    ...(isReadable ? await checkPostgres(row, context) : []),
  ];
}

/** The file of the day against the catalog. */
async function checkFile(row: ListedFile, context: CheckContext): Promise<Finding[]> {
  const { dir, duckdb } = context;
  const { file, bytes, sha256, madeAt } = row;
  if (madeAt.getTime() > Date.now() + CLOCK_MS) {
    const problem = `was made at ${madeAt.toISOString()}, which is to come: a clock was wrong`;
    return [repairable(`${folderOf(row)}/${file ?? ''}`, problem, { step: 'make', day: row })];
  }
  if (file === null) return [];
  const place = `${folderOf(row)}/${file}`;
  const path = join(dir, place);
  const broken = (problem: string) => [repairable(place, problem, { step: 'make', day: row })];
  try {
    const { size } = await stat(path);
    if (size !== bytes) return await damaged(row, `has ${size} bytes in place of ${bytes}`, context);
    if ((await sha256Of(path)) !== sha256) {
      return await damaged(row, 'has another sha256 than the catalog states', context);
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOENT') return [unreadable(place, error)];
    const isFormer = await stat(join(dir, formerPlaceOf(file))).then(
      () => true,
      () => false,
    );
    if (!isFormer) return damaged(row, 'is missing', context);
    return [repairable(place, 'is in .former, but the catalog names it', { step: 'describe', day: row })];
  }
  if (row.schemaVersion > SCHEMA_VERSION) return [newerSchema(place, row.schemaVersion)];
  try {
    const facts = await readFacts(duckdb, row, path);
    if (facts.schemaVersion > SCHEMA_VERSION) return [newerSchema(place, facts.schemaVersion)];
    if (facts.rows !== row.rows) return broken(`has ${facts.rows} rows, and the catalog states ${row.rows}`);
    if (facts.checksum !== row.checksum) return broken('has other rows than the checksum of the catalog states');
    if (facts.outside > 0) {
      const remedy = 'keep a copy of the file: it can have rows that nothing else has';
      return [{ place, problem: `has ${facts.outside} rows of other days`, remedy }];
    }
    return [];
  } catch (error) {
    return broken(`cannot be read: ${asError(error).message}`);
  }
}

/** The object store may have the file as it was. */
async function damaged(row: ListedFile, problem: string, { store, signal }: CheckContext): Promise<Finding[]> {
  const file = storedFile(row);
  const isStored = file !== undefined && store !== undefined && (await store.holds(placeOf(file), file, signal));
  const place = `${folderOf(row)}/${row.file ?? ''}`;
  return [repairable(place, problem, isStored ? { step: 'restore', day: file } : { step: 'make', day: row })];
}

function unreadable(place: string, error: unknown): Finding {
  return { place, problem: `cannot be read: ${asError(error).message}`, remedy: 'repair the disk or its rights' };
}

function newerSchema(place: string, version: number): Finding {
  return {
    place,
    problem: `has the schema ${version}, and this program knows schemas up to ${SCHEMA_VERSION}`,
    remedy: 'check it with the release that made it',
  };
}

/** The manifest of the day, and files that no row of the catalog names. */
async function checkFolder(row: ListedFile, context: CheckContext, isReadable: boolean): Promise<Finding[]> {
  const folder = folderOf(row);
  const names = await readdir(join(context.dir, folder)).catch((): string[] => []);
  const describe = { step: 'describe', day: row } as const;
  const findings: Finding[] = [];
  if (names.includes(MANIFEST)) {
    const problem = await manifestProblem(row, context);
    if (problem !== undefined) findings.push(repairable(`${folder}/${MANIFEST}`, problem, describe));
  } else if (row.file !== null) {
    findings.push(repairable(`${folder}/${MANIFEST}`, 'is missing', describe));
  }
  for (const name of names) {
    if (name === MANIFEST || name === row.file) continue;
    if ((await findFile(context.db, name)) !== null) {
      findings.push(repairable(`${folder}/${name}`, 'is of a former revision: engines read its rows twice', describe));
      continue;
    }
    findings.push(await unknownFile(`${folder}/${name}`, row, context, isReadable));
  }
  return findings;
}

/** A file without a row. It may have rows that nothing else has. */
export async function unknownFile(
  place: string,
  row: ListedFile | undefined,
  { dir, duckdb }: Pick<CheckContext, 'dir' | 'duckdb'>,
  isReadable: boolean,
): Promise<Finding> {
  const problem = 'no row of the catalog names it';
  if (!place.endsWith('.parquet')) return { place, problem, remedy: 'move it out of the folder' };
  const remedy = 'keep it outside of the folder: it may have rows that nothing else has';
  const keep: Finding = { place, problem, remedy, isStranger: true };
  if (row === undefined || row.file === null || !isReadable) return keep;
  const path = join(dir, place);
  try {
    const present = join(dir, folderOf(row), row.file);
    const { onlyLeft } = await compareFiles(duckdb, row.kind, [path, present]);
    if (onlyLeft === 0) return repairable(place, problem, { step: 'remove', day: row, path });
    return { ...keep, problem: `${problem}, and ${onlyLeft} of its rows are not in the file of the day` };
  } catch (error) {
    return { ...keep, problem: `${problem}, and it cannot be read: ${asError(error).message}` };
  }
}

/** The facts of a manifest that must be those of the catalog. */
const STATED = {
  file: 'file',
  revision: 'revision',
  schema_version: 'schemaVersion',
  rows: 'rows',
  in_effect: 'inEffect',
  bytes: 'bytes',
  sha256: 'sha256',
  checksum: 'checksum',
} as const satisfies Record<string, keyof ListedFile>;

async function manifestProblem(row: ListedFile, { dir }: CheckContext): Promise<string | undefined> {
  let manifest: { kind?: unknown; venue?: unknown; date?: unknown; files?: readonly Record<string, unknown>[] };
  try {
    manifest = JSON.parse(await readFile(join(dir, folderOf(row), MANIFEST), 'utf8'));
  } catch (error) {
    return `cannot be read: ${asError(error).message}`;
  }
  const { kind, venue, date } = row;
  if (manifest?.kind !== kind || manifest.venue !== venue || manifest.date !== date) return 'describes another day';
  const files = Array.isArray(manifest.files) ? manifest.files : [];
  const expected = row.file === null ? 0 : 1;
  if (files.length !== expected) return `names ${files.length} files in place of ${expected}`;
  const [stated] = files;
  if (stated === undefined) return undefined;
  const wrong = Object.entries(STATED).filter(([name, of]) => stated[name] !== row[of]);
  return wrong.length === 0 ? undefined : `states another ${wrong.map(([name]) => name).join(', ')} than the catalog`;
}

/** Hours that coverage calls complete or quiet must have their volume in the file. */
async function checkCoverage(row: ListedFile, { db, dir, duckdb, changed }: CheckContext): Promise<Finding[]> {
  const rule = row.kind === 'trades' ? volumeRuleOf(row.venue) : undefined;
  if (rule === undefined || changed.has(dayKey(row))) return [];
  const hours = await readStatedHours(db, row.venue, Date.parse(`${row.date}T00:00:00Z`));
  if (hours.every(({ stored }) => stored === undefined || stored === '0')) return [];
  const volumes = new Map<string, string>();
  if (row.file !== null) {
    const path = join(dir, folderOf(row), row.file);
    for (const { marketId, startMs, volume } of await readHourVolumes(duckdb, path, await unitOf(db, row.venue, rule)))
      volumes.set(`${marketId} ${startMs}`, volume);
  }
  const lacking = hours.flatMap(({ marketId, startMs, stored, class: judged }) => {
    const archived = decimal(volumes.get(`${marketId} ${startMs}`) ?? '0');
    if (stored === undefined || compareDecimals(addDecimals(archived, ROUNDING), stored) >= 0) return [];
    return [
      `${marketId} ${new Date(startMs).toISOString().slice(11, 16)}: ${judged} with ${stored}, archived ${archived}`,
    ];
  });
  const [first] = lacking;
  if (first === undefined) return [];
  const more = lacking.length > 1 ? `, and ${lacking.length - 1} more hours` : '';
  const problem = `lacks volume that coverage states (${first}${more})`;
  // Rows that Postgres has are a finding of their own.
  return [{ place: folderOf(row), problem, remedy: 'ask for a repair of the trades, or read them from a backup' }];
}

/** The rows of the file against those of Postgres, when it still has them. */
async function checkPostgres(row: ListedFile, context: CheckContext): Promise<Finding[]> {
  const { db, dir, duckdb, signal, work, changed, partitions } = context;
  const startMs = Date.parse(`${row.date}T00:00:00Z`);
  const partition = partitions?.find(({ fromMs, untilMs }) => fromMs <= startMs && startMs < untilMs);
  if (changed.has(dayKey(row)) || (partitions !== null && partition === undefined)) return [];
  const seamMs = await readSeam(db, row.kind);
  if (seamMs !== undefined && startMs < seamMs) return [];
  const summary = await summarizeDay(db, row, signal);
  if (summary.rows === row.rows && summary.checksum === row.checksum) return [];
  // Rows came since the check began: the next revision has them.
  if ((await readChangedDays(db)).some((day) => dayKey(day) === dayKey(row))) return [];
  const place = `${folderOf(row)}/${row.file ?? ''}`;
  const day = row;
  if (row.file === null) {
    const rows = summary.rows - summary.inEffect;
    if (rows === 0) return [];
    return [repairable(place, `has no file, and Postgres has ${rows} rows`, { step: 'make', day })];
  }
  const isFirstOfPartition = partition?.fromMs === startMs;
  const path = join(dir, folderOf(row), row.file);
  const options = { db, work, signal, isFirstOfPartition };
  const difference = await compareWithPostgres(duckdb, row, path, options).catch((error: unknown) => {
    const { code } = error as { code?: unknown };
    if (OF_THE_MACHINE.some((each) => each === code)) return asError(error);
    throw error;
  });
  if (difference instanceof Error) {
    signal.throwIfAborted();
    const problem = `cannot be compared with Postgres: ${difference.message}`;
    return [{ place, problem, remedy: 'end the cause, and check the day again' }];
  }
  const { onlyLeft, onlyRight } = difference;
  if (onlyLeft > 0) {
    return [
      {
        place,
        problem: `has ${onlyLeft} rows that Postgres does not have, and lacks ${onlyRight} rows of Postgres`,
        remedy: 'find out how Postgres lost them; keep a copy of the file until then',
      },
    ];
  }
  if (onlyRight === 0) return [];
  return [repairable(place, `lacks ${onlyRight} rows of Postgres`, { step: 'make', day })];
}
