import { hasDuckdb } from '../../src/archive/duckdb.ts';
import { removeFile, removeLeftBehind } from '../../src/archive/folder.ts';
import { describeDay } from '../../src/archive/make-day.ts';
import { ARCHIVE_KIND_NAMES, type ArchiveKind } from '../../src/domain/archive/kinds.ts';
import { VENUE_NAMES, VENUES, type VenueName } from '../../src/domain/markets/venue.ts';
import {
  noteRemoved,
  readDueDays,
  readSuperseded,
  readUndescribedDays,
  switchArchiveOn,
} from '../../src/store/archive/catalog.ts';
import type { WorkerDeps } from './deps.ts';

/** Readers that found a file before its day was archived again may read it for so long. */
const SUPERSEDED_KEPT_HOURS = 24;
/** Files of one run; the others follow in the next run. */
const MAX_FILES = 1_000;

/** The kinds that a venue has. */
function kindsOf(venue: VenueName): ArchiveKind[] {
  const { markets, trades, prices, books, tokens } = VENUES[venue].capabilities;
  const has = { trades, candles: trades, prices: prices || tokens, books, markets, resolutions: markets };
  return ARCHIVE_KIND_NAMES.filter((kind) => has[kind]);
}

/** The kinds that this process archives: none without a folder, or without the optional packages. */
export function archivedKinds({ archive }: WorkerDeps['config']): readonly ArchiveKind[] {
  return archive.dir !== undefined && hasDuckdb() ? archive.kinds : [];
}

interface Planned {
  woken: number;
  removed: number;
}

/**
 * Wakes the first due day of each kind and venue, finishes manifests that a death left open, and removes files that no longer count. Days of
 * venues that are disabled by now are archived too.
 */
export async function planArchive({ db, config, producer, now }: WorkerDeps): Promise<Planned> {
  const { dir, kinds, afterHours } = config.archive;
  if (dir === undefined || !hasDuckdb()) return { woken: 0, removed: 0 };
  let removed = await removeLeftBehind(dir, now());
  for (const day of await readUndescribedDays(db, MAX_FILES)) await describeDay(dir, day, db);
  for (const file of await readSuperseded(db, SUPERSEDED_KEPT_HOURS, MAX_FILES)) {
    if (file.file !== null) await removeFile(dir, file, file.file);
    await noteRemoved(db, file);
    removed += 1;
  }
  const ready = await switchArchiveOn(db, kinds);
  const pairs = VENUE_NAMES.flatMap((venue) =>
    kindsOf(venue)
      .filter((kind) => ready.includes(kind))
      .map((kind) => ({ kind, venue })),
  );
  let woken = 0;
  for (const pair of pairs) {
    const [next] = await readDueDays(db, { pairs: [pair], afterHours, limit: 1 });
    if (next === undefined) continue;
    producer.wake('archive-day', next);
    woken += 1;
  }
  return { woken, removed };
}
