import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { ARCHIVE_KIND_NAMES } from '../domain/archive/kinds.ts';
import { OddswireError } from '../domain/values/errors.ts';
import { newToken } from '../domain/values/ids.ts';
import { type ArchiveOwner, readOwner } from '../store/archive/state.ts';
import type { Queryable } from '../store/db/tx.ts';
import type { ObjectStore } from './store/s3.ts';

/** The identity of the database to which a folder belongs. Engines skip names that begin with a point. */
export const OWNER_FILE = '.owner';
/** Larger differences of two clocks make days end at a wrong time. */
const CLOCK_MS = 300_000;

/** The error of a folder that belongs to another database: no retry helps. */
export const OTHER_OWNER = 'archive_other_owner';

interface ClaimOptions {
  readonly store?: ObjectStore | undefined;
  readonly nowMs?: number | undefined;
}

/**
 * Ensures that this database may write into the folder and the object store now, and gives new ones to it.
 * @throws OddswireError `archive_other_owner`, `archive_folder_gone`, `archive_clock` or `store_unavailable`, or the error of the disk
 */
export async function claimFolder(
  dir: string,
  db: Queryable,
  { store, nowMs = Date.now() }: ClaimOptions = {},
): Promise<void> {
  const owner = await ownerOf(db, store);
  checkClock(owner, nowMs);
  if (store !== undefined) await claimStore(owner, store);
  const stated = await readMarker(dir);
  // A new machine of the aggregator has no files yet: the store has all of them.
  const isElsewhere = store !== undefined && !owner.hasUnstored;
  if (stated === undefined) await giveTo(owner, dir, isElsewhere);
  else if (stated !== owner.id) {
    throw new OddswireError(
      OTHER_OWNER,
      `ARCHIVE_DIR ${dir} belongs to the database ${stated}, and this one is ${owner.id}: set another folder, or give it this one ` +
        'with `oddswire archive adopt`',
    );
  }
}

/** @throws OddswireError `archive_other_owner` or `store_unavailable` */
async function claimStore({ id }: ArchiveOwner, store: ObjectStore): Promise<void> {
  const { signal } = new AbortController();
  let stated = await store.readText(OWNER_FILE, signal);
  if (stated === null) {
    await store.putText(OWNER_FILE, `${id}\n`, signal);
    // Two databases may find the same new prefix: the later marker stays.
    stated = await store.readText(OWNER_FILE, signal);
  }
  if (stated?.trim() === id) return;
  throw new OddswireError(
    OTHER_OWNER,
    `ARCHIVE_URL ${store.url} belongs to the database ${stated?.trim()}, and this one is ${id}: set another prefix, or give it this one ` +
      'with `oddswire archive adopt`',
  );
}

/**
 * Gives the folder and the object store to this database, which replaces its former one: it is restored from a dump of it.
 * @throws OddswireError `store_unavailable`, or the error of the disk
 */
export async function adoptFolder(dir: string, db: Queryable, store?: ObjectStore): Promise<void> {
  const owner = await ownerOf(db, store);
  await writeMarker(owner, dir);
  await store?.putText(OWNER_FILE, `${owner.id}\n`, new AbortController().signal);
}

async function ownerOf(db: Queryable, store: ObjectStore | undefined): Promise<ArchiveOwner> {
  const owner = await readOwner(db, store?.url ?? null);
  if (owner === undefined) throw new OddswireError('archive_failed', 'Postgres returned no identity of the database');
  return owner;
}

function checkClock({ clock }: ArchiveOwner, nowMs: number): void {
  const aheadMs = nowMs - clock.getTime();
  if (Math.abs(aheadMs) <= CLOCK_MS) return;
  const minutes = Math.round(Math.abs(aheadMs) / 60_000);
  throw new OddswireError(
    'archive_clock',
    `the clock of this machine is ${minutes} minutes ${aheadMs > 0 ? 'ahead of' : 'behind'} that of Postgres: no day is archived`,
  );
}

/** Undefined without a marker, also without the folder. */
async function readMarker(dir: string): Promise<string | undefined> {
  try {
    return (await readFile(join(dir, OWNER_FILE), 'utf8')).trim() || undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** A folder without a marker is new, or a former release made it. A folder that is not mounted is empty. */
async function giveTo(owner: ArchiveOwner, dir: string, isElsewhere: boolean): Promise<void> {
  const names = await readdir(dir).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const hasDays = ARCHIVE_KIND_NAMES.some((kind) => names.includes(kind));
  if (owner.hasFiles && !hasDays && !isElsewhere) {
    throw new OddswireError(
      'archive_folder_gone',
      `ARCHIVE_DIR ${dir} has none of the files of the catalog: mount the folder, or bring its files back`,
    );
  }
  if (!owner.hasFiles && hasDays) {
    throw new OddswireError(
      OTHER_OWNER,
      `ARCHIVE_DIR ${dir} has files of an archive, and the catalog of this database has none: set another folder`,
    );
  }
  await mkdir(dir, { recursive: true });
  await writeMarker(owner, dir);
  // Two databases may find the same new folder: the later marker stays.
  if ((await readMarker(dir)) !== owner.id) {
    throw new OddswireError(OTHER_OWNER, `ARCHIVE_DIR ${dir} belongs to another database`);
  }
}

async function writeMarker({ id }: ArchiveOwner, dir: string): Promise<void> {
  const made = join(dir, `${OWNER_FILE}.${newToken()}`);
  try {
    const handle = await open(made, 'w');
    try {
      await handle.writeFile(`${id}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(made, join(dir, OWNER_FILE));
  } catch (error) {
    await rm(made, { force: true });
    throw error;
  }
}
