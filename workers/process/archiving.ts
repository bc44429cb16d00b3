import { hasDuckdb } from '../../src/archive/duckdb.ts';
import { removeFile, removeLeftBehind } from '../../src/archive/folder.ts';
import { describeDay } from '../../src/archive/making.ts';
import { claimFolder, OTHER_OWNER } from '../../src/archive/owner.ts';
import { removeStored } from '../../src/archive/store/day.ts';
import { storeOf } from '../../src/archive/store/s3.ts';
import type { ArchiveDay } from '../../src/domain/archive/file.ts';
import type { ArchiveKind } from '../../src/domain/archive/kinds.ts';
import { asError, OddswireError } from '../../src/domain/values/errors.ts';
import { StartupError } from '../../src/runtime/lifecycle.ts';
import {
  noteRemoved,
  readDueDays,
  readSuperseded,
  readUndescribedDays,
  switchArchiveOn,
} from '../../src/store/archive/catalog.ts';
import { archivedPairs, clearFailure, noteFailure } from '../../src/store/archive/state.ts';
import type { JobContext } from './define.ts';
import type { WorkerDeps } from './deps.ts';

/** Readers that found a file before its day was archived again may read it for so long. */
const SUPERSEDED_KEPT_HOURS = 24;
/** Files of one run; the others follow in the next run. */
const MAX_FILES = 1_000;
/** Uploads of an archive that had no store can take hours: each run of `maintain-storage` does a part of them. */
const DESCRIBE_MS = 120_000;

/** The kinds that this process archives: none without a folder, or without the optional packages. */
export function archivedKinds({ archive }: WorkerDeps['config']): readonly ArchiveKind[] {
  return archive.dir !== undefined && hasDuckdb() ? archive.kinds : [];
}

/**
 * Keeps a failure of the archive for the operators, and removes it after a success. A stop of the process is no failure.
 * @throws the error of the work
 */
export async function notingFailure<T>(
  { db, log, stopping }: Pick<WorkerDeps, 'db' | 'log' | 'stopping'>,
  day: ArchiveDay | null,
  work: Promise<T>,
): Promise<T> {
  try {
    const done = await work;
    await clearFailure(db, day);
    return done;
  } catch (thrown) {
    const note = stopping.aborted ? Promise.resolve() : noteFailure(db, day, asError(thrown));
    await note.catch((error: unknown) => log.warn({ err: error }, 'failure of the archive not stored'));
    throw thrown;
  }
}

/**
 * Ends the start of a process whose folder belongs to another database. Other faults of the folder can end by themselves.
 * @throws StartupError
 */
export async function assertOwnFolder({ db, config, log }: Pick<WorkerDeps, 'db' | 'config' | 'log'>): Promise<void> {
  const { dir } = config.archive;
  if (dir === undefined || !hasDuckdb()) return;
  try {
    await claimFolder(dir, db, { store: storeOf(config) });
  } catch (error) {
    if (error instanceof OddswireError && error.code === OTHER_OWNER) throw new StartupError(error.message, error);
    log.error({ err: error }, 'no archive until its folder or object store is repaired');
  }
}

interface Planned {
  woken: number;
  removed: number;
}

/**
 * Wakes the first two due days of each kind and venue, finishes manifests and uploads that a death or a process of the former release left
 * open, and removes files that no longer count. Days of venues that are disabled by now are archived too.
 */
export async function planArchive(context: JobContext): Promise<Planned> {
  const { dir } = context.config.archive;
  if (dir === undefined || !hasDuckdb()) return { woken: 0, removed: 0 };
  return notingFailure(context, null, plan(dir, context));
}

async function plan(dir: string, context: JobContext): Promise<Planned> {
  const { db, config, producer, now, signal } = context;
  const { kinds, afterHours } = config.archive;
  const store = storeOf(config);
  await claimFolder(dir, db, { store });
  let removed = await removeLeftBehind(dir, now());
  for (const { kind, venue, date, file, revision } of await readSuperseded(db, SUPERSEDED_KEPT_HOURS, MAX_FILES)) {
    const day = { kind, venue, date };
    if (file !== null) {
      await removeFile(dir, day, file);
      if (store !== undefined) await removeStored(store, { ...day, file }, signal);
    }
    await noteRemoved(db, { ...day, revision });
    removed += 1;
  }
  const ready = await switchArchiveOn(db, kinds);
  let woken = 0;
  for (const pair of archivedPairs(ready)) {
    // A second day, so that one that fails again and again does not stop the later ones.
    for (const due of await readDueDays(db, { pairs: [pair], afterHours, limit: 2 })) {
      producer.wake('archive-day', due);
      woken += 1;
    }
  }
  await describeDays(dir, context);
  return { woken, removed };
}

/** One damaged file does not keep the other days from their description and upload. @throws the last error */
async function describeDays(dir: string, { db, config, log, signal }: JobContext): Promise<void> {
  const store = storeOf(config);
  const endsAtMs = performance.now() + DESCRIBE_MS;
  let failed: Error | undefined;
  for (const day of await readUndescribedDays(db, MAX_FILES, store?.url)) {
    signal.throwIfAborted();
    if (performance.now() > endsAtMs) break;
    try {
      await describeDay(day, { db, dir, store, signal });
    } catch (error) {
      failed = asError(error);
      log.error({ ...day, err: error }, 'day of the archive not described');
    }
  }
  if (failed !== undefined) throw failed;
}
