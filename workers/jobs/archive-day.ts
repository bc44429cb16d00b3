import { hasDuckdb } from '../../src/archive/duckdb.ts';
import { makeDay, UNFOLDED } from '../../src/archive/make-day.ts';
import { storeOf } from '../../src/archive/store/s3.ts';
import type { ArchiveDay } from '../../src/domain/archive/file.ts';
import { readDueDays } from '../../src/store/archive/catalog.ts';
import { newLeaseToken } from '../../src/store/db/leases.ts';
import { notingFailure } from '../process/archiving.ts';
import { defineJob, type JobContext } from '../process/define.ts';

/** Makes the file of a day, and wakes the next due day of its kind and venue. */
export const archiveDay = defineJob('archive-day', async (data, context) => {
  const day: ArchiveDay = data;
  const { config, db, log, presence, signal } = context;
  const { dir } = config.archive;
  if (dir === undefined || !hasDuckdb()) return { skipped: 'off' };
  const made = makeDay(day, { db, dir, store: storeOf(config), log, signal, tag: newLeaseToken(presence.key) });
  const report = await notingFailure(context, day, made);
  if (report['skipped'] !== UNFOLDED) await wakeNext(day, context);
  return report;
});

/** The next day of the same kind and venue follows at once; the days of others are woken by `maintain-storage`. */
async function wakeNext({ kind, venue, date }: ArchiveDay, { db, config, producer }: JobContext): Promise<void> {
  const { afterHours } = config.archive;
  const due = await readDueDays(db, { pairs: [{ kind, venue }], afterHours, limit: 2 });
  // An earlier day that is due still has failed, and waits for the next `maintain-storage`.
  const next = due.find((each) => each.date > date) ?? due.find((each) => each.date !== date);
  if (next !== undefined) producer.wake('archive-day', next);
}
