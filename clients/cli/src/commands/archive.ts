import { setTimeout as delay } from 'node:timers/promises';
import { type Options, present, UsageError } from '../../../../cli/arguments.ts';
import { isDay } from '../../../../cli/spans.ts';
import { SCHEMA_VERSION } from '../../../../src/domain/archive/kinds.ts';
import { printable } from '../../../../src/domain/values/text.ts';
import type { ArchiveFile } from '../../../typescript/src/index.ts';
import { type Copied, copyDay } from '../archive/copy.ts';
import { type DayFilter, type Finding, verifyFolder } from '../archive/folder.ts';
import type { Call, CliCommand } from '../command.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import { CURSOR, FORMATS } from '../read-arguments.ts';
import { type Column, DEFAULT_LIMIT, printList, printRows } from '../rows.ts';

const COLUMNS: readonly Column<ArchiveFile>[] = [
  { name: 'kind', of: ({ kind }) => kind },
  { name: 'venue', of: ({ venue }) => venue },
  { name: 'date', of: ({ date }) => date },
  { name: 'rows', of: ({ rows }) => rows, isNumber: true },
  { name: 'bytes', of: ({ bytes }) => bytes, isNumber: true },
  { name: 'revision', of: ({ revision }) => revision, isNumber: true },
  { name: 'sha256', of: ({ sha256 }) => sha256, cutAt: 13 },
  { name: 'file', of: ({ file }) => file, show: ({ file }) => file ?? '(empty day)' },
];

const FINDING_COLUMNS: readonly Column<Finding>[] = [
  { name: 'problem', of: ({ problem }) => problem },
  { name: 'path', of: ({ path }) => path },
  { name: 'detail', of: ({ detail }) => detail },
];

const DAYS: Options = {
  kind: { value: 'KINDS', help: 'only these kinds: a comma list such as trades,candles' },
  venue: { value: 'VENUES', help: 'only these venues: a comma list' },
  from: { value: 'DATE', help: 'from this UTC day, such as 2026-01-31' },
  to: { value: 'DATE', help: 'until this UTC day, included' },
};

export const archive: CliCommand = {
  summary: 'Lists, copies and verifies the files of the archive.',
  forms: [
    'archive ls [--kind KINDS] [--venue VENUES] [--from DATE] [--to DATE]',
    'archive get --out DIR [--kind KINDS] [--venue VENUES] [--from DATE] [--to DATE]',
    'archive verify DIR [--offline] [--kind KINDS] [--venue VENUES] [--from DATE] [--to DATE]',
  ],
  verbs: ['ls', 'get', 'verify'],
  options: {
    ...DAYS,
    out: { value: 'DIR', help: 'the folder of the copy, for get' },
    offline: { help: 'verify without the server: manifests and files alone' },
    limit: { value: 'N', help: `the number of listed files, by default ${DEFAULT_LIMIT}` },
    cursor: CURSOR,
    ...FORMATS,
  },
  words: [1, 2],
  notes: `get copies a range into DIR/<kind>/venue=<venue>/date=<date>, with a manifest.json per day. It compares the sha256 of each file before
the file gets its name, removes former revisions, and continues an interrupted copy. verify names wrong, missing, unknown,
superseded and unfinished files, and days without a manifest; it exits with 1 when it finds one.`,
  run(call) {
    const [verb, dir, ...rest] = call.words;
    if (verb === 'ls' && dir === undefined) return list(call);
    if (verb === 'get' && dir === undefined) return get(call);
    if (verb === 'verify' && dir !== undefined && rest.length === 0) return verify(call, dir);
    throw new UsageError([verb === 'verify' ? 'archive verify takes a DIR' : `unknown argument ${dir}`]);
  },
};

/** @throws UsageError */
function filterOf({ texts }: Call): DayFilter {
  const days = (['from', 'to'] as const).filter((name) => !isDay(texts.get(name) ?? '2026-01-01'));
  if (days.length > 0) throw new UsageError(days.map((name) => `--${name} must be a day such as 2026-01-31`));
  return {
    kinds: texts.get('kind')?.split(','),
    venues: texts.get('venue')?.split(','),
    from: texts.get('from'),
    to: texts.get('to'),
  };
}

/** The server names the kinds and venues that it knows. */
function queryOf({ kinds, venues, from, to }: DayFilter) {
  type Query = NonNullable<Parameters<ReturnType<Call['client']>['archive']['list']>[0]>;
  return present({ kind: kinds, venue: venues, from, to }) as Omit<Query, 'limit' | 'cursor'>;
}

function list(call: Call): Promise<number> {
  const query = queryOf(filterOf(call));
  const { archive: api } = call.client();
  return printList(call, { columns: COLUMNS, none: 'no archived day' }, (place) =>
    api.list({ ...query, ...place }, { signal: call.io.signal }),
  );
}

const PAGE = { pageSize: 1_000 };

async function get(call: Call): Promise<number> {
  const dir = call.texts.get('out');
  if (dir === undefined || dir === '') throw new UsageError(['archive get needs --out DIR']);
  const query = queryOf(filterOf(call));
  const { signal } = call.io;
  const client = call.client();
  const progress = new Progress(call);
  try {
    for await (const row of client.archive.iterate(query, { signal, ...PAGE })) {
      if (row.schema_version > SCHEMA_VERSION) {
        await progress.note(`${row.date}: schema ${row.schema_version} is newer than this program`);
      }
      progress.begin(row);
      const pause = (ms: number) => delay(ms, undefined, { signal });
      const copied = await copyDay(row, { client, dir, signal, pause, onBytes: (bytes) => progress.at(bytes) });
      await progress.end(row, copied);
    }
  } catch (error) {
    await progress.stop();
    // Success would hide that files are missing.
    if (signal.aborted) throw new CommandError('stopped: the same command continues the copy', EXIT.failed);
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code !== undefined && syscall !== undefined)
      throw new CommandError(`cannot write to ${dir}: ${code}`, EXIT.failed);
    throw error;
  }
  await progress.stop();
  await call.note(progress.summary());
  return EXIT.done;
}

const MEGABYTE = 1_000_000;
const megabytes = (bytes: number) => `${(bytes / MEGABYTE).toFixed(1)} MB`;
const SHOW_EVERY_MS = 200;

/** The progress of a copy on standard error: a line that changes on a terminal, else a line per copied file. */
class Progress {
  readonly #call: Call;
  readonly #counts = { copied: 0, present: 0, empty: 0 };
  #bytes = 0;
  #row: ArchiveFile | undefined;
  #shownAtMs = 0;
  #width = 0;

  constructor(call: Call) {
    this.#call = call;
  }

  begin(row: ArchiveFile): void {
    this.#row = row;
  }

  at(bytes: number): void {
    const { stderr, now } = this.#call.io;
    if (!stderr.isTerminal || !this.#row || now() - this.#shownAtMs < SHOW_EVERY_MS) return;
    this.#shownAtMs = now();
    const { kind, venue, date, bytes: all } = this.#row;
    void this.#show(`${kind} ${venue} ${date}  ${megabytes(bytes)} of ${megabytes(all)}  (${this.#done()} days)`);
  }

  async end(row: ArchiveFile, copied: Copied): Promise<void> {
    this.#counts[copied] += 1;
    if (copied !== 'copied') return;
    this.#bytes += row.bytes;
    if (!this.#call.io.stderr.isTerminal) await this.#call.note(`${row.file} ${row.bytes} bytes`);
  }

  async note(text: string): Promise<void> {
    await this.stop();
    await this.#call.note(printable(text));
  }

  /** Clears the line. */
  async stop(): Promise<void> {
    if (this.#width > 0) await this.#show('');
    this.#width = 0;
  }

  summary(): string {
    const { copied, present: there, empty } = this.#counts;
    return `${copied} files copied (${megabytes(this.#bytes)}), ${there} were there, ${empty} days are empty`;
  }

  #done(): number {
    const { copied, present: there, empty } = this.#counts;
    return copied + there + empty;
  }

  #show(text: string): Promise<void> {
    const shown = printable(text).slice(0, this.#call.io.stderr.columns - 1);
    const padding = ' '.repeat(Math.max(0, this.#width - shown.length));
    this.#width = shown.length;
    return this.#call.io.stderr.write(`\r${shown}${padding}${shown === '' ? '\r' : ''}`);
  }
}

async function verify(call: Call, dir: string): Promise<number> {
  const filter = filterOf(call);
  const { signal } = call.io;
  let listed: ArchiveFile[] | undefined;
  if (!call.flags.has('offline')) {
    listed = [];
    for await (const row of call.client().archive.iterate(queryOf(filter), { signal, ...PAGE })) listed.push(row);
  }
  const { findings, days, files } = await verifyFolder(dir, filter, listed, signal).catch((error: unknown) => {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (code === undefined || syscall === undefined) throw error;
    throw new CommandError(`cannot read ${dir}: ${code}`, EXIT.failed);
  });
  const answer = { days, files, findings };
  const none = `${files} files of ${days} days are right`;
  await printRows(call, { rows: findings, columns: FINDING_COLUMNS, answer, none });
  if (findings.length === 0) return EXIT.done;
  await call.note(`${findings.length} problems in ${files} files of ${days} days`);
  return EXIT.failed;
}
