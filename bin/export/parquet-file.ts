import { createWriteStream } from 'node:fs';
import { countText } from '../../cli/progress.ts';
import { countPastSql, mergeSql, type ParquetExport, writeExportSql } from '../../src/archive/export.ts';
import { OddswireError } from '../../src/domain/values/errors.ts';
import { copyExportHistory } from '../../src/store/archive/export-history.ts';
import type { Database } from '../../src/store/db/tx.ts';
import type { ExportSelection } from '../../src/store/series/export.ts';
import type { ArchivedRows } from './archived-rows.ts';
import type { WorkFolder } from './work-folder.ts';

/** Makes the Parquet file of a selection from one snapshot, in the work folder. Returns its path and the number of its rows. */
export async function makeParquet(
  db: Database,
  selection: ExportSelection,
  { archived, work }: { archived: ArchivedRows; work: WorkFolder },
): Promise<{ path: string; rows: number }> {
  const [present, outcomes, path] = ['present.csv', 'outcomes.csv', 'export.parquet'].map((name) =>
    work.pathOf(name),
  ) as [string, string, string];
  const history = await copyExportHistory(db, selection, {
    merged: () => createWriteStream(archived.mergedPath),
    present: () => createWriteStream(present),
    outcomes: () => createWriteStream(outcomes),
  });
  step(`${countText(history.present)} ${selection.kind} are copied from Postgres`);
  const past = history.seam === null ? null : await archived.queryOf(selection, history);
  if (past !== null) step(`${countText(past.files.length)} files of the archive have the sha256 of the catalog`);
  const { kind, venue, range } = selection;
  const made: ParquetExport = { kind, venue, range, past, present, outcomes };
  const duckdb = await archived.duckdb();
  try {
    let expected = history.present;
    if (past !== null) {
      for (const statement of mergeSql(past)) await duckdb.run(statement);
      const [counted] = await duckdb.run(countPastSql({ ...made, past }));
      expected += Number(counted?.['rows']);
    }
    const [written] = await duckdb.run(writeExportSql(made, path));
    const rows = Number(written?.['Count']);
    if (rows !== expected) {
      throw new OddswireError('export_mismatch', `the file has ${rows} rows, its sources have ${expected}`);
    }
    return { path, rows };
  } finally {
    await duckdb.close();
  }
}

function step(text: string): void {
  process.stderr.write(`${text}\n`);
}
