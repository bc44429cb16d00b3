import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Partitions } from '../../../src/store/db/partitions.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { aStoredMarket } from '../../factories/stored-market.ts';
import { csvRows } from '../../support/csv.ts';
import { eventually } from '../../support/eventually.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';
import { ODDSWIRE, oddswire } from './run-command.ts';

const ROWS = 150_000;
const MANY = sql(
  'test_export_command_trades',
  `INSERT INTO trade (token_id, ts, trade_id, price, size, side)
   SELECT $1, $2::timestamptz + n * interval '1 second', 'trade-' || n, 0.25, n, 1 FROM generate_series(1, $3::int) AS n`,
);
const START = Date.UTC(2026, 1, 10);
const ARGS = ['export', '--venue', 'kalshi', '--kind', 'trades'];

const test = useTestDatabase();
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'oddswire-export-'));
  const market = await aStoredMarket(test.db, { venue: 'kalshi', marketId: 'K-1' });
  await new Partitions(test.db).ensure('trade', [START, START + 3 * ROWS * 1_000]);
  for (const { tokenId } of market.outcomes) await test.db.query(MANY, [tokenId, new Date(START).toISOString(), ROWS]);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (argv: readonly string[], environment: Record<string, string> = {}) =>
  oddswire(argv, { DATABASE_URL: test.url, ...environment });

/** Kills the command as soon as it has saved its position again; false when it ended first. */
async function killedInTheMiddle(file: string): Promise<boolean> {
  const state = `${file}.part.json`;
  const before = existsSync(state) ? rowsOf(state) : 0;
  const child = spawn(process.execPath, [ODDSWIRE, ...ARGS, '--out', file], {
    env: { PATH: process.env['PATH'], DATABASE_URL: test.url },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  const isDue = async () => child.exitCode !== null || (existsSync(state) && rowsOf(state) > before);
  await eventually(isDue, Boolean, { everyMs: 2 });
  child.kill('SIGKILL');
  const [code, signal] = (await ended) as [number | null, string | null];
  return code === null && signal === 'SIGKILL';
}

function rowsOf(state: string): number {
  try {
    return (JSON.parse(readFileSync(state, 'utf8')) as { rows: number }).rows;
  } catch (error) {
    // The export has renamed its file between the two looks.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Number.POSITIVE_INFINITY;
    throw error;
  }
}

describe('oddswire export', () => {
  it('names every problem of its options', async () => {
    const wrong = await run([
      'export',
      '--venue',
      'nasdaq',
      '--format',
      'xml',
      '--from',
      'never',
      '--interval',
      '2m',
      '--nice',
    ]);
    expect([wrong.code, wrong.stdout]).toEqual([2, '']);
    for (const problem of [
      'unknown option --nice',
      '--venue must be one of polymarket',
      '--kind must be one of trades, candles, prices, books',
      '--format must be one of csv, jsonl, parquet',
      '--interval must be one of 1m',
      '--from must be an age',
      '--out must be a file, or - for standard output',
      'usage: oddswire export',
    ])
      expect(wrong.stderr).toContain(problem);
    const more = await run([...ARGS, '--out', '-', '--interval', '1m', '--from', '2026-03-01', '--to', '2026-02-01']);
    expect(more.stderr).toContain('--interval is of --kind candles');
    expect(more.stderr).toContain('--from must be before --to');
    const missing = await run([...ARGS, '--out', '-', '--market', 'K-2']);
    expect([missing.code, missing.stdout]).toEqual([1, '']);
    expect(missing.stderr).toContain('kalshi has no market K-2');
  });

  it('writes to standard output, within a small heap', async () => {
    const child = spawn(process.execPath, ['--max-old-space-size=80', ODDSWIRE, ...ARGS, '--out', '-'], {
      env: { PATH: process.env['PATH'], DATABASE_URL: test.url },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let lines = 0;
    child.stdout.on('data', (bytes: Buffer) => {
      for (const byte of bytes) if (byte === 10) lines += 1;
    });
    const ended = once(child, 'exit');
    const [code] = (await ended) as [number];
    expect([code, lines]).toEqual([0, 2 * ROWS + 1]);
  });

  it('ends quietly when the reader of its output ends', async () => {
    const child = spawn(process.execPath, [ODDSWIRE, ...ARGS, '--out', '-'], {
      env: { PATH: process.env['PATH'], DATABASE_URL: test.url },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let complaint = '';
    child.stderr.on('data', (text: Buffer) => {
      complaint += text.toString();
    });
    const ended = once(child, 'exit');
    await once(child.stdout, 'data');
    child.stdout.destroy();
    expect([(await ended)[0], complaint]).toEqual([141, '']);
  });

  it('writes the file of an undisturbed run when it is killed again and again', async () => {
    const [whole, file] = [join(folder, 'whole.csv'), join(folder, 'killed.csv')];
    expect((await run([...ARGS, '--out', whole])).code).toBe(0);
    for (const kill of [1, 2, 3, 4]) {
      expect([kill, await killedInTheMiddle(file)]).toEqual([kill, true]);
      expect([existsSync(file), existsSync(`${file}.part`)]).toEqual([false, true]);
    }
    // Bytes behind the saved position belong to no row.
    writeFileSync(`${file}.part`, 'half a li', { flag: 'a' });
    const last = await run([...ARGS, '--out', file]);
    expect([last.code, last.stdout]).toEqual([0, '']);
    expect(last.stderr).toMatch(
      /^continues .*killed\.csv\.part behind [\d,]+ rows\n(?:.*\n)*300,000 trades of 2 outcomes\n$/,
    );
    expect(readFileSync(file).equals(readFileSync(whole))).toBe(true);
    expect(readdirSync(folder).sort()).toEqual(['killed.csv', 'whole.csv']);
    expect(csvRows(readFileSync(file, 'utf8')).length).toBe(2 * ROWS);
  });

  it('continues an age of its first start, and starts again without the bytes that its state names', async () => {
    const file = join(folder, 'aged.jsonl');
    const args = ['export', '--venue', 'kalshi', '--kind', 'trades', '--format', 'jsonl', '--out', file];
    const state = `${file}.part.json`;
    const range = { start: START / 1_000 + 1, end: START / 1_000 + 3 };
    const saved = JSON.parse(await savedState(args, file)) as Record<string, unknown>;
    writeFileSync(state, JSON.stringify({ ...saved, range, pid: 2 ** 30 }));
    expect((await run([...args, '--from', '900d'])).code).toBe(0);
    expect(readFileSync(file, 'utf8').split('\n').length).toBe(2 * 2 + 1);
    writeFileSync(state, JSON.stringify({ ...saved, range, pid: 2 ** 30, bytes: 1_000, rows: 9 }));
    writeFileSync(`${file}.part`, 'short');
    const again = await run([...args, '--from', '900d']);
    expect([again.code, again.stderr.includes('continues')]).toEqual([0, false]);
    rmSync(file);
  });

  /** The state of an export that is stopped by its own end: its position is before all rows. */
  async function savedState(args: readonly string[], file: string): Promise<string> {
    const child = spawn(process.execPath, [ODDSWIRE, ...args, '--from', '900d'], {
      env: { PATH: process.env['PATH'], DATABASE_URL: test.url },
      stdio: 'ignore',
    });
    const ended = once(child, 'exit');
    await eventually(async () => existsSync(`${file}.part.json`) || child.exitCode !== null, Boolean, { everyMs: 2 });
    child.kill('SIGKILL');
    await ended;
    const state = JSON.parse(readFileSync(`${file}.part.json`, 'utf8')) as Record<string, unknown>;
    truncateSync(`${file}.part`, 0);
    return JSON.stringify({ ...state, place: null, rows: 0, outcomes: 0, bytes: 0 });
  }

  it('says at Ctrl-C behind which row it stopped, and continues there', async () => {
    const file = join(folder, 'stopped.csv');
    const child = spawn(process.execPath, [ODDSWIRE, ...ARGS, '--out', file], {
      env: { PATH: process.env['PATH'], DATABASE_URL: test.url },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let stderr = '';
    child.stderr.on('data', (text: Buffer) => {
      stderr += text.toString();
    });
    const ended = once(child, 'close');
    await eventually(async () => existsSync(`${file}.part.json`) && rowsOf(`${file}.part.json`) > 0, Boolean, {
      everyMs: 2,
    });
    child.kill('SIGINT');
    expect((await ended)[0]).toBe(130);
    const line =
      /^oddswire export: stopped behind ([\d,]+) rows of (.*)\.part; the same command continues there$/m.exec(stderr);
    expect(line?.[2]).toBe(file);
    const again = await run([...ARGS, '--out', file]);
    expect([again.code, again.stderr.includes(`continues ${file}.part behind ${line?.[1]} rows`)]).toEqual([0, true]);
    expect(readFileSync(file, 'utf8').split('\n').length).toBe(2 * ROWS + 2);
    rmSync(file);
  });

  it('refuses a file of other options, of a running process, and without a folder', async () => {
    const file = join(folder, 'other.csv');
    await killedInTheMiddle(file);
    const other = await run([...ARGS, '--format', 'jsonl', '--out', file]);
    expect(other.code).toBe(1);
    expect(other.stderr).toContain('is an unfinished export with other options: {"venue":"kalshi","kind":"trades"');
    const state = JSON.parse(readFileSync(`${file}.part.json`, 'utf8')) as object;
    writeFileSync(`${file}.part.json`, JSON.stringify({ ...state, pid: process.pid }));
    const running = await run([...ARGS, '--out', file]);
    expect([running.code, running.stderr.includes(`process ${process.pid} writes ${file}.part: wait for it`)]).toEqual([
      1,
      true,
    ]);
    writeFileSync(`${file}.part.json`, '{');
    const broken = await run([...ARGS, '--out', file]);
    expect([broken.code, broken.stderr.includes('is not readable: remove it to start again')]).toEqual([1, true]);
    writeFileSync(`${file}.part.json`, '{}');
    const foreign = await run([...ARGS, '--out', file]);
    expect([foreign.code, foreign.stderr.includes('is not readable: remove it to start again')]).toEqual([1, true]);
    const taken = await run([...ARGS, '--out', folder]);
    expect([taken.code, taken.stderr]).toEqual([
      1,
      expect.stringContaining(`${folder} is a folder: name a file in it`),
    ]);
    expect(existsSync(`${folder}.part`)).toBe(false);
    const nowhere = await run([...ARGS, '--out', join(folder, 'no/such/folder.csv')]);
    expect([nowhere.code, nowhere.stderr.includes('ENOENT')]).toEqual([1, true]);
    expect(nowhere.stderr.split('\n').length).toBe(2);
  });

  it('says since when rows are stored when the range begins earlier', async () => {
    const early = await run([...ARGS, '--from', '2025-01-01', '--to', '2025-02-01', '--out', '-']);
    expect([early.code, csvRows(early.stdout)]).toEqual([0, []]);
    expect(early.stderr).toContain('no trades before 2026-02-01 00:00:00 are stored');
  });
});
