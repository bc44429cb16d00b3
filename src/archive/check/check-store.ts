import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { folderOf, formerPlaceOf } from '../../domain/archive/file.ts';
import { findFile, type ListedFile } from '../../store/archive/file-list.ts';
import type { Queryable } from '../../store/db/tx.ts';
import { MANIFEST } from '../folder.ts';
import { OWNER_FILE } from '../owner.ts';
import { placeOf, storedFile } from '../store/day.ts';
import type { ObjectStore } from '../store/s3.ts';
import { type Finding, repairable } from './finding.ts';

interface StoreContext {
  readonly db: Queryable;
  readonly dir: string;
  readonly store?: ObjectStore | undefined;
  readonly signal: AbortSignal;
}

/** The objects of a day against the catalog and the folder. */
export async function checkStored(row: ListedFile, { db, dir, store, signal }: StoreContext): Promise<Finding[]> {
  if (store === undefined) return [];
  const describe = { step: 'describe', day: row } as const;
  const at = (name: string) => `${store.url}${folderOf(row)}/${name}`;
  const findings: Finding[] = [];
  const sizes = new Map(
    (await store.list(`${folderOf(row)}/`, signal)).map(({ key, bytes }) => [key.split('/').at(-1) ?? '', bytes]),
  );
  const file = storedFile(row);
  if (file !== undefined) {
    const problem = await problemOf(sizes.get(file.file), file.bytes, () => store.holds(placeOf(file), file, signal));
    if (problem !== undefined) findings.push(repairable(at(file.file), problem, describe));
    const manifest = await readFile(join(dir, folderOf(row), MANIFEST), 'utf8').catch(() => undefined);
    const isSame = (await store.readText(`${folderOf(row)}/${MANIFEST}`, signal)) === manifest;
    if (manifest !== undefined && !isSame) {
      findings.push(repairable(at(MANIFEST), 'is not that of the folder', describe));
    }
  }
  for (const name of sizes.keys()) {
    if (name === MANIFEST || name === row.file) continue;
    const isFormer = (await findFile(db, name)) !== null;
    if (isFormer) findings.push(repairable(at(name), 'is of a former revision: engines read its rows twice', describe));
    else findings.push(stranger(at(name)));
  }
  return findings;
}

async function problemOf(
  size: number | undefined,
  bytes: number,
  isRight: () => Promise<boolean>,
): Promise<string | undefined> {
  if (size === undefined) return 'is missing';
  if (size !== bytes) return `has ${size} bytes in place of ${bytes}`;
  return (await isRight()) ? undefined : 'has another sha256 than the catalog states';
}

/** Objects outside of the folders of days that no row of the catalog names. */
export async function storedStrangers(
  store: ObjectStore,
  { folders, names }: { folders: ReadonlySet<string>; names: ReadonlySet<string> },
  signal: AbortSignal,
): Promise<Finding[]> {
  const known = new Set([OWNER_FILE, ...[...names].map(formerPlaceOf)]);
  const objects = await store.list('', signal);
  return objects
    .filter(({ key }) => !known.has(key) && !folders.has(key.split('/').slice(0, -1).join('/')))
    .map(({ key }) => stranger(`${store.url}${key}`));
}

function stranger(place: string): Finding {
  const remedy = 'keep a copy outside of the prefix and remove it: it may have rows that nothing else has';
  return { place, problem: 'no row of the catalog names it', remedy };
}
