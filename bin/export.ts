import { resolve } from 'node:path';
import { choiceOf, parse, present, UsageError } from '../cli/arguments.ts';
import { print } from '../cli/output.ts';
import { countText, Progress } from '../cli/progress.ts';
import { pastOf } from '../cli/spans.ts';
import { utc } from '../cli/table.ts';
import { fetchedFilesOf } from '../src/archive/store/fetched-files.ts';
import {
  EXPORT_FORMATS,
  EXPORT_KINDS,
  type ExportFormat,
  type ExportKind,
  headerOf,
  type LineFormat,
} from '../src/domain/archive/exported.ts';
import { INTERVALS, type Interval } from '../src/domain/markets/candle.ts';
import { VENUE_NAMES, type VenueName } from '../src/domain/markets/venue.ts';
import { OddswireError } from '../src/domain/values/errors.ts';
import type { TimeRange } from '../src/domain/values/time-range.ts';
import { findMarket } from '../src/store/catalog/market-reads.ts';
import {
  countExportedOutcomes,
  type ExportRequest,
  type ExportSelection,
  exportOrigin,
  exportPages,
  storedSince,
} from '../src/store/series/export.ts';
import { ArchivedRows, requireDuckdb } from './export/archived-rows.ts';
import { makeParquet } from './export/parquet-file.ts';
import { type ExportProgress, PartFile, withFileName } from './export/part-file.ts';
import { WorkFolder } from './export/work-folder.ts';
import { awaitInterruption, EXIT_INTERRUPTED } from './interruption.ts';
import { archiveDirOf, type CommandContext, operatorCommand } from './operator-command.ts';

interface ExportOptions {
  venue: VenueName;
  marketId?: string;
  kind: ExportKind;
  interval?: Interval;
  range: TimeRange;
  /** The times as they were given: a run that continues another one must have the same. */
  given: { from: string | null; to: string | null };
  format: ExportFormat;
  /** Absent: standard output. */
  file?: string;
}

const OPTIONS = {
  venue: { value: 'VENUE', choices: VENUE_NAMES },
  market: { value: 'ID' },
  kind: { value: 'KIND', choices: EXPORT_KINDS },
  interval: { value: 'INTERVAL', choices: INTERVALS },
  from: { value: 'TIME' },
  to: { value: 'TIME' },
  format: { value: 'FORMAT', choices: EXPORT_FORMATS },
  out: { value: 'FILE' },
};

const STDOUT = '-';

/** `oddswire export`: the stored history as a file. */
export const command = operatorCommand<ExportOptions>({
  name: 'export',
  usage: `usage: oddswire export --venue VENUE --kind KIND --out FILE|- [--market ID] [--from TIME] [--to TIME] [--format FORMAT]
                       [--interval INTERVAL]

  Writes the stored rows of a venue, or of one market, with a time in [from, to): first by outcome id, then by time, then by id.
  KIND is one of ${EXPORT_KINDS.join(', ')}. FORMAT is one of ${EXPORT_FORMATS.join(', ')} (default csv).
  TIME is an age (90m, 24h, 7d), epoch seconds or ISO 8601 (2026-11-01, 2026-11-01T12:00Z); by default everything until now.
  --interval selects candles of one interval; by default all (${INTERVALS.join(' ')}), the shortest first.
  --out FILE writes FILE.part and renames it at the end. After an interruption the same command continues it. --out - is standard output.
  Parquet has the columns and the order of the files of the archive, needs FILE, and starts again after an interruption.
  The rows are those of Postgres and of the files of ARCHIVE_DIR. With ARCHIVE_URL it needs the key of the object store.`,
  options: OPTIONS,
  usesArchive: true,
  parse: (argv) => parseExportArguments(argv, Date.now()),
  async run(options, context) {
    const { venue, marketId } = options;
    if (marketId !== undefined && (await findMarket(context.db, [venue], marketId)) === null) {
      throw new OddswireError('market_not_found', `${venue} has no market ${marketId}`);
    }
    const { format, file } = options;
    const interruption = awaitInterruption();
    try {
      if (file !== undefined) return await toFile(options, file, { ...context, signal: interruption.signal });
      // The arguments exclude the other format.
      return await toStdout({ ...options, format: format as LineFormat }, { ...context, signal: interruption.signal });
    } finally {
      interruption.close();
    }
  },
});

/** Parses the arguments of `oddswire export`. @throws UsageError that names every problem */
export function parseExportArguments(argv: readonly string[], nowMs: number): ExportOptions {
  return parse(argv, { options: OPTIONS }, (given) => {
    const { texts, problems } = given;
    const [venue, kind] = [choiceOf(given, 'venue', VENUE_NAMES), choiceOf(given, 'kind', EXPORT_KINDS)];
    const [market, out] = [texts.get('market'), texts.get('out')];
    if (!texts.has('venue')) problems.push(`--venue must be one of ${VENUE_NAMES.join(', ')}`);
    if (!texts.has('kind')) problems.push(`--kind must be one of ${EXPORT_KINDS.join(', ')}`);
    if (out === undefined) problems.push('--out must be a file, or - for standard output');
    if (out === STDOUT && texts.get('format') === 'parquet') {
      problems.push('--format parquet needs a file, because Parquet cannot be written to a stream');
    }
    if (out === '' || out?.endsWith('/')) problems.push('--out must name a file');
    if (market === '') problems.push('--market must not be empty');
    if (texts.has('interval') && kind !== undefined && kind !== 'candles')
      problems.push('--interval is of --kind candles');
    const end = pastOf(given, 'to', nowMs) ?? Math.floor(nowMs / 1_000) + 1;
    const start = pastOf(given, 'from', nowMs) ?? 0;
    if (start >= end) problems.push('--from must be before --to');
    if (venue === undefined || kind === undefined || out === undefined) throw new UsageError(problems);
    return {
      venue,
      kind,
      range: { start, end },
      given: { from: texts.get('from') ?? null, to: texts.get('to') ?? null },
      format: choiceOf(given, 'format', EXPORT_FORMATS) ?? 'csv',
      ...present({
        marketId: market,
        interval: choiceOf(given, 'interval', INTERVALS),
        file: out === STDOUT ? undefined : resolve(out),
      }),
    };
  });
}

function selectionOf({ kind, venue, marketId, interval }: ExportOptions, range: TimeRange): ExportSelection {
  const intervals = interval ? [interval] : INTERVALS;
  return { kind, venue, range, intervals, ...(marketId !== undefined && { marketId }) };
}

/** Prints a note when the range begins before the oldest rows. */
async function noteStart(selection: ExportSelection, { db }: CommandContext): Promise<void> {
  const { kind, range } = selection;
  const since = await storedSince(db, selection);
  if (since !== undefined && since > range.start && range.start > 0) {
    process.stderr.write(`no ${kind} before ${utc(new Date(since * 1_000))} are stored\n`);
  }
}

interface ExportContext extends CommandContext {
  /** Fires when a person stops the export. */
  signal: AbortSignal;
}

async function toStdout(options: ExportOptions & { format: LineFormat }, context: ExportContext): Promise<number> {
  const work = await WorkFolder.temporary();
  try {
    const request = { ...selectionOf(options, options.range), format: options.format };
    const begin = { place: null, rows: 0, outcomes: 0, isBegun: false };
    const rows = await exportTo(request, { context, work }, begin, print);
    if (!context.signal.aborted) return 0;
    note(`stopped behind ${countText(rows)} rows of standard output; only an export to a file can continue`);
    return EXIT_INTERRUPTED;
  } finally {
    await work.remove();
  }
}

async function toFile(options: ExportOptions, file: string, context: ExportContext): Promise<number> {
  const { given, range, file: _, ...chosen } = options;
  const { format } = options;
  if (format === 'parquet') requireDuckdb('--format parquet');
  const { decimalFormat } = context.config;
  const origin = await exportOrigin(context.db);
  const part = await PartFile.open(file, { ...chosen, ...given, decimalFormat, database: origin }, range);
  const work = await WorkFolder.beside(file);
  const selection = selectionOf(options, part.range);
  try {
    if (format === 'parquet') {
      // A file of Parquet has no end to continue at.
      context.signal.addEventListener('abort', () => {
        note(`stopped the export to ${file}; Parquet starts again at the next run`);
        process.exit(EXIT_INTERRUPTED);
      });
      await noteStart(selection, context);
      const { db, config } = context;
      const archived = new ArchivedRows({
        db,
        folder: archiveDirOf(context),
        fetched: fetchedFilesOf(config, new AbortController().signal),
        work,
      });
      const { path, rows } = await makeParquet(db, selection, { archived, work }).catch((error: unknown) => {
        throw withFileName(file, error);
      });
      await part.replaceBy(path);
      process.stderr.write(`${countText(rows)} ${selection.kind}\n`);
      return 0;
    }
    if (part.bytes > 0) process.stderr.write(`continues ${file}.part behind ${countText(part.progress.rows)} rows\n`);
    const write = (text: string, progress: ExportProgress) => part.append(text, progress);
    const begin = { ...part.progress, isBegun: part.bytes > 0 };
    const rows = await exportTo({ ...selection, format }, { context, work }, begin, write);
    if (context.signal.aborted) {
      await part.keep();
      note(`stopped behind ${countText(rows)} rows of ${file}.part; the same command continues there`);
      return EXIT_INTERRUPTED;
    }
    await part.finish();
    return 0;
  } catch (error) {
    await part.keep();
    throw error;
  } finally {
    await work.remove();
  }
}

function note(text: string): void {
  process.stderr.write(`oddswire export: ${text}\n`);
}

/** Writes the pages behind `progress`, and returns the number of written rows. Each write ends before the next page is read. */
async function exportTo(
  selected: Omit<ExportRequest, 'decimalFormat'>,
  { context, work }: { context: ExportContext; work: WorkFolder },
  { isBegun, ...progress }: ExportProgress & { isBegun: boolean },
  write: (text: string, progress: ExportProgress) => Promise<void>,
): Promise<number> {
  const { db, config, signal } = context;
  const request: ExportRequest = { ...selected, decimalFormat: config.decimalFormat };
  await noteStart(request, context);
  const total = await countExportedOutcomes(db, request);
  const archived = new ArchivedRows({
    db,
    folder: archiveDirOf(context),
    fetched: fetchedFilesOf(config, new AbortController().signal),
    work,
  });
  const shown = new Progress();
  const beganMs = performance.now();
  const before = progress.rows;
  let { rows, outcomes } = progress;
  // It follows the first page, because a file that cannot be read ends the export before its output begins.
  let header = isBegun ? '' : headerOf(request.kind, request.format);
  for await (const page of exportPages(db, request, progress.place, (place) => archived.open(request, place))) {
    rows += page.rows;
    outcomes += page.outcomes;
    await write(header + page.text, { place: page.place, rows, outcomes });
    header = '';
    const speed = Math.round((rows - before) / ((performance.now() - beganMs) / 1_000));
    const text = `${countText(rows)} ${request.kind}, ${outcomes} of ${total} outcomes, ${countText(speed)}/s`;
    shown.report({ done: outcomes, total, text });
    if (signal.aborted) {
      shown.end(text);
      return rows;
    }
  }
  if (header !== '') await write(header, progress);
  shown.end(`${countText(rows)} ${request.kind} of ${countText(outcomes)} outcomes`);
  return rows;
}
