import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, relative, sep } from 'node:path';
import { type ArchiveDay, folderOf, formerPlaceOf } from '../../domain/archive/file.ts';
import { ARCHIVE_KIND_NAMES, type ArchiveKind } from '../../domain/archive/kinds.ts';
import { DAY_MS } from '../../domain/values/durations.ts';
import { asError, OddswireError } from '../../domain/values/errors.ts';
import type { Logger } from '../../observe/logger.ts';
import { lockingDay, noteRemoved } from '../../store/archive/catalog.ts';
import { type FormerFile, partitionsOf, readChangedDays, readFormerFiles } from '../../store/archive/check.ts';
import { findFile, type ListedFile, listFiles } from '../../store/archive/file-list.ts';
import type { Database, Queryable } from '../../store/db/tx.ts';
import { hasDuckdb, openDuckdb } from '../duckdb.ts';
import { removeFile, sha256Of } from '../folder.ts';
import { makeDay } from '../make-day.ts';
import { describeDay } from '../making.ts';
import { claimFolder } from '../owner.ts';
import { removeStored, restoreFile } from '../store/day.ts';
import type { ObjectStore } from '../store/s3.ts';
import { type CheckContext, checkDay, unknownFile } from './check-day.ts';
import { storedStrangers } from './check-store.ts';
import { dayKey, type Finding, type Repair, repairable } from './finding.ts';

const PAGE = 1_000;
const MEMORY_MB = 512;
/** Downloads find a former file for a day; then the next run of `maintain-storage` removes it. */
const FORMER_HOURS = 30;
/** A day can get a later revision while it is compared. */
const MAX_ROUNDS = 3;

/** The days to check; an absent field means all. */
export interface CheckFilter {
  readonly kinds?: readonly ArchiveKind[] | undefined;
  readonly venues?: readonly string[] | undefined;
  /** First and last UTC day, `YYYY-MM-DD`. */
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

interface CheckOptions {
  readonly db: Database;
  /** An absolute path. */
  readonly dir: string;
  readonly store?: ObjectStore | undefined;
  readonly filter: CheckFilter;
  readonly isRepair: boolean;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** Part of the names of unfinished files. */
  readonly tag: string;
  /** Called before each day. */
  onDay(day: ArchiveDay, done: number, total: number): void;
}

export interface CheckedFinding extends Finding {
  /** Whether a repair ended the problem. */
  readonly isRepaired: boolean;
}

interface Checked {
  readonly days: number;
  readonly files: number;
  readonly rows: number;
  readonly findings: readonly CheckedFinding[];
}

/**
 * Compares the archive with its catalog, its coverage and Postgres.
 * @throws OddswireError `archive_unavailable` when the folder cannot be read, or without the optional packages
 */
export async function checkArchive(options: CheckOptions): Promise<Checked> {
  const { db, dir, store } = options;
  if (!hasDuckdb()) {
    throw new OddswireError('archive_unavailable', 'the optional packages of the archive are not installed');
  }
  await entriesOf(dir);
  if (options.isRepair) await claimFolder(dir, db, { store });
  const work = await mkdtemp(join(tmpdir(), 'oddswire-check-'));
  try {
    return await checkAll(options, work);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** `work`: a folder for unfinished files. */
async function checkAll(options: CheckOptions, work: string): Promise<Checked> {
  const { db, dir, store, filter, signal } = options;
  const limits = {
    folders: [`${dir}/`, `${work}/`],
    spillFolder: join(work, 'spill'),
    memoryMb: MEMORY_MB,
    threads: 1,
  };
  const duckdb = await openDuckdb(limits, signal);
  try {
    const listed = await listAll(db, filter);
    const asked = listed.filter((row) => isAsked(row, filter));
    const changed = new Set((await readChangedDays(db)).map(dayKey));
    const context = { db, dir, store, duckdb, signal, work, changed };
    const findings: CheckedFinding[] = [];
    const add = async (found: readonly Finding[], again: () => Promise<Finding[]>) => {
      const left = options.isRepair ? await repaired(found, again, options) : found;
      const isLeft = (each: Finding) =>
        left.some(({ place, problem }) => place === each.place && problem === each.problem);
      const gone = found.filter((each) => !isLeft(each));
      const ended = gone.filter(({ isStranger }) => isStranger !== true);
      const moved = gone.filter((each) => !ended.includes(each));
      // The repair of its day moves a file that no row names, and no one has decided about it.
      const places = moved.length === 0 ? [] : await entriesOf(dir);
      for (const each of moved) {
        const place = formerPlaceOf(basename(each.place));
        if (places.includes(place)) findings.push({ ...each, place, isRepaired: false });
      }
      findings.push(...ended.map((each) => ({ ...each, isRepaired: true })));
      findings.push(...left.map((each) => ({ ...each, isRepaired: false })));
    };
    const partitions = new Map<ArchiveKind, CheckContext['partitions']>();
    for (const kind of ARCHIVE_KIND_NAMES) partitions.set(kind, await partitionsOf(db, kind));
    let done = 0;
    for (const row of asked) {
      signal.throwIfAborted();
      options.onDay(row, done, asked.length);
      const check = () => checkPresent(row, { ...context, partitions: partitions.get(row.kind) ?? null });
      await add(await check(), check);
      done += 1;
    }
    for (const day of holesOf(listed).filter((each) => isAsked(each, filter))) {
      const find = async () => ((await presentOf(db, day)) === undefined ? [holeIn(day)] : []);
      await add(await find(), find);
    }
    const byFolder = new Map(listed.map((row) => [folderOf(row), row]));
    const named = new Set(findings.map(({ place }) => place));
    for (const [place, day] of strangersOf(await entriesOf(dir), byFolder, filter)) {
      if (named.has(place)) continue;
      const find = () => strangerAt(place, day, context, day && byFolder.get(folderOf(day)));
      await add(await find(), find);
    }
    const former = await readFormerFiles(db);
    for (const each of former.filter((one) => isAsked(one, filter))) {
      await add(await checkFormer(each, options), async () => []);
    }
    if (store !== undefined && isWhole(filter)) {
      // A description of an earlier revision can move an object whose row is not committed yet; then the day has it twice.
      const names = new Set([...former, ...listed].flatMap(({ file }) => file ?? []));
      const known = { folders: new Set(byFolder.keys()), names };
      await add(await storedStrangers(store, known, signal), async () => []);
    }
    const files = asked.filter(({ file }) => file !== null).length;
    return { days: asked.length, files, rows: asked.reduce((sum, { rows }) => sum + rows, 0), findings };
  } finally {
    await duckdb.close();
  }
}

/** Files and folders below the archive, relative to it, with `/`. */
async function entriesOf(dir: string): Promise<string[]> {
  try {
    const entries = await readdir(dir, { withFileTypes: true, recursive: true });
    return entries
      .filter((entry) => !entry.isDirectory())
      .map((entry) => relative(dir, join(entry.parentPath, entry.name)).split(sep).join('/'))
      .toSorted();
  } catch (error) {
    throw new OddswireError(
      'archive_unavailable',
      `the folder of the archive cannot be read: ${asError(error).message}`,
      {
        cause: error,
      },
    );
  }
}

/** Holes need the days around the asked ones. */
async function listAll(db: Database, { kinds, venues }: CheckFilter): Promise<ListedFile[]> {
  const all: ListedFile[] = [];
  let after: Parameters<typeof listFiles>[2]['after'];
  do {
    const { files, next } = await listFiles(db, { kinds, venues }, { limit: PAGE, after });
    all.push(...files);
    after = next;
  } while (after !== undefined);
  return all;
}

function isAsked({ kind, venue, date }: ArchiveDay, { kinds, venues, from, to }: CheckFilter): boolean {
  const isKind = kinds?.includes(kind) ?? true;
  const isVenue = venues?.includes(venue) ?? true;
  return isKind && isVenue && (from ?? date) <= date && (to ?? date) >= date;
}

function isWhole(filter: CheckFilter): boolean {
  return Object.values(filter).every((value) => value === undefined);
}

async function presentOf(db: Queryable, { kind, venue, date }: ArchiveDay): Promise<ListedFile | undefined> {
  const filter = { kinds: [kind], venues: [venue], from: date, to: date };
  const { files } = await listFiles(db, filter, { limit: 1 });
  return files[0];
}

async function checkPresent(row: ListedFile, context: CheckContext): Promise<Finding[]> {
  for (let round = 1; ; round += 1) {
    const compared = round === 1 ? row : await presentOf(context.db, row);
    if (compared === undefined) return [];
    const findings = await checkDay(compared, context);
    if (findings.length === 0 || round === MAX_ROUNDS) return findings;
    if ((await presentOf(context.db, row))?.revision === compared.revision) return findings;
  }
}

/** Days without a row of the catalog between two days with one. */
function holesOf(listed: readonly ListedFile[]): ArchiveDay[] {
  const holes: ArchiveDay[] = [];
  for (const [index, { kind, venue, date }] of listed.entries()) {
    const next = listed[index + 1];
    if (next === undefined || next.kind !== kind || next.venue !== venue) continue;
    for (let ms = Date.parse(date) + DAY_MS; ms < Date.parse(next.date); ms += DAY_MS) {
      holes.push({ kind, venue, date: new Date(ms).toISOString().slice(0, 10) });
    }
  }
  return holes;
}

function holeIn(day: ArchiveDay): Finding {
  return repairable(folderOf(day), 'the catalog has days before and after it, but not this one', { step: 'make', day });
}

const DAY_FOLDER = /^([a-z]+)\/venue=([a-z]+)\/date=(\d{4}-\d\d-\d\d)$/;
const DAY_OF_FILE = /^([a-z]+)-([a-z]+)-(\d{4}-\d\d-\d\d)-r/;

/** Files outside of the folders of listed days, with the day of their name. Unfinished files are in folders that begin with a point. */
function* strangersOf(
  entries: readonly string[],
  byFolder: ReadonlyMap<string, ListedFile>,
  filter: CheckFilter,
): Generator<readonly [string, ArchiveDay | undefined]> {
  const isAll = isWhole(filter);
  for (const place of entries) {
    const isFormer = place.startsWith(formerPlaceOf(''));
    if (place.startsWith('.') && !isFormer) continue;
    const folder = place.split('/').slice(0, -1).join('/');
    if (byFolder.has(folder)) continue;
    const [, kind, venue, date] =
      (isFormer ? DAY_OF_FILE.exec(place.slice(formerPlaceOf('').length)) : DAY_FOLDER.exec(folder)) ?? [];
    const isDay = ARCHIVE_KIND_NAMES.some((name) => name === kind) && venue !== undefined && date !== undefined;
    if (!isDay) {
      if (isAll) yield [place, undefined];
      continue;
    }
    const day: ArchiveDay = { kind: kind as ArchiveKind, venue, date };
    if (isAsked(day, filter)) yield [place, day];
  }
}

async function strangerAt(
  place: string,
  day: ArchiveDay | undefined,
  context: Pick<CheckContext, 'db' | 'dir' | 'duckdb'>,
  row: ListedFile | undefined,
): Promise<Finding[]> {
  const { db } = context;
  const isNamed = async (reader: Queryable) =>
    (await findFile(reader, basename(place))) !== null ||
    (day !== undefined && place.startsWith(`${folderOf(day)}/`) && (await presentOf(reader, day)) !== undefined);
  // A job may have added the row of the day since the list was read. It places the file and commits the row under the lock of the day.
  if (await (day === undefined ? isNamed(db) : lockingDay(db, day, isNamed))) return [];
  const isThere = (await entriesOf(context.dir)).includes(place);
  return isThere ? [await unknownFile(place, row, context, true)] : [];
}

async function checkFormer(
  { file, sha256, bytes, hours, revision, ...day }: FormerFile,
  { dir, store, signal }: CheckOptions,
): Promise<Finding[]> {
  const place = formerPlaceOf(file);
  if (hours > FORMER_HOURS) {
    const remedy = 'start the aggregator: `maintain-storage` removes it';
    return [{ place, problem: `was superseded ${hours} hours ago, and is kept for 24`, remedy }];
  }
  let problem = 'is missing';
  for (const each of [place, `${folderOf(day)}/${file}`]) {
    const found = await sha256Of(join(dir, each)).catch(() => undefined);
    if (found === sha256) return [];
    if (found !== undefined) problem = 'has another sha256 than the catalog states';
  }
  // Downloads find it in the store when the aggregator moved to another machine.
  if (problem === 'is missing' && (await store?.holds(place, { bytes, sha256 }, signal))) return [];
  return [repairable(place, problem, { step: 'forget', day, revision, file })];
}

/** Repairs the findings of a place. Returns those that remain. */
async function repaired(
  found: readonly Finding[],
  again: () => Promise<Finding[]>,
  options: CheckOptions,
): Promise<Finding[]> {
  const repairs = new Map<string, Repair>();
  for (const { repair } of found) {
    if (repair === undefined) continue;
    // A day that is made again gets a new description, and so does one whose file comes back.
    const key = repair.step === 'remove' ? repair.path : dayKey(repair.day);
    if (repair.step !== 'describe' || !repairs.has(key)) repairs.set(key, repair);
  }
  if (repairs.size === 0) return [...found];
  const failures: string[] = [];
  for (const repair of repairs.values()) {
    try {
      await doRepair(repair, options);
    } catch (error) {
      failures.push(asError(error).message);
    }
  }
  const left = await again();
  const note = failures.length === 0 ? '' : ` (the repair failed: ${failures.join('; ')})`;
  return left.map((each) => (each.repair === undefined ? each : { ...each, remedy: `${each.remedy}${note}` }));
}

async function doRepair(repair: Repair, { db, dir, store, log, signal, tag }: CheckOptions): Promise<void> {
  if (repair.step === 'remove') {
    await lockingDay(db, repair.day, async (tx) => {
      // A job may have added its row meanwhile.
      if ((await findFile(tx, basename(repair.path))) === null) await rm(repair.path, { force: true });
    });
  } else if (repair.step === 'forget') {
    if (store !== undefined) await removeStored(store, { ...repair.day, file: repair.file }, signal);
    await lockingDay(db, repair.day, async (tx) => {
      await removeFile(dir, repair.day, repair.file);
      await noteRemoved(tx, { ...repair.day, revision: repair.revision });
    });
  } else if (repair.step === 'describe' || repair.step === 'restore') {
    if (repair.step === 'restore' && store !== undefined) await restoreFile(dir, repair.day, store, signal);
    await describeDay(repair.day, { db, dir, store, signal });
  } else await makeDay(repair.day, { db, dir, store, log, signal, tag, isRepair: true });
}
