import { type ArchiveDay, folderOf } from '../../domain/archive/file.ts';
import type { StoredFile } from '../store/day.ts';

/** A repair that loses no row. */
export type Repair =
  /** The folder and the object store become as the catalog says. */
  | { readonly step: 'describe'; readonly day: ArchiveDay }
  /** The file comes back from the object store. */
  | { readonly step: 'restore'; readonly day: StoredFile }
  /** The day is archived, as the job does it. */
  | { readonly step: 'make'; readonly day: ArchiveDay }
  /** The file has no row that the file of its day lacks. */
  | { readonly step: 'remove'; readonly day: ArchiveDay; readonly path: string }
  /** The catalog forgets a file of a former revision. */
  | { readonly step: 'forget'; readonly day: ArchiveDay; readonly revision: number; readonly file: string };

/** A difference that `oddswire archive check` found. */
export interface Finding {
  /** Relative to the folder of the archive, with `/`. */
  readonly place: string;
  readonly problem: string;
  /** The next step of the operator. */
  readonly remedy: string;
  /** Absent: only a person can decide. */
  readonly repair?: Repair;
  /** A file that no row of the catalog names and that must be kept. */
  readonly isStranger?: true;
}

const BY_REPAIR = {
  describe: '--repair describes the day again: its folder and its objects',
  restore: '--repair fetches it from the object store',
  make: '--repair archives the day again',
  remove: '--repair removes it: the file of the day has each of its rows',
  forget: '--repair removes it: a later revision has the rows of the day',
} as const satisfies Record<Repair['step'], string>;

/** A finding with a repair. */
export function repairable(place: string, problem: string, repair: Repair): Finding {
  return { place, problem, remedy: BY_REPAIR[repair.step], repair };
}

/** The name of a day in maps. */
export function dayKey(day: ArchiveDay): string {
  return folderOf(day);
}
