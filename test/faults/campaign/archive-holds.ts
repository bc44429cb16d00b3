import { execFileSync } from 'node:child_process';
import { closeSync, constants, existsSync, openSync } from 'node:fs';
import { open, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { ArchiveDay } from '../../../src/domain/archive/file.ts';
import { eventually } from '../../support/eventually.ts';
import type { OddswireProcess } from '../../support/processes/system.ts';

/* Places at which a process waits until it is killed: Postgres or a pipe holds it, and it knows nothing of the test. */

/** "step" in ASCII. */
const KEY = 0x73_74_65_70;
const EVERY = { everyMs: 10 };
const WAITERS = `SELECT pid FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = ${KEY}
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** A place of a process. */
export interface Hold {
  /** Resolves when the process waits there. */
  reached(process: OddswireProcess): Promise<void>;
  /** After the death of the process: resolves when its transaction is over. */
  release(): Promise<void>;
}

/** The statement that waits, and its row. */
interface TriggerPlace {
  readonly table: string;
  /** `COMMIT` is that of the transaction which inserts or updates the row. */
  readonly at: 'BEFORE INSERT' | 'BEFORE DELETE' | `BEFORE UPDATE OF ${string}` | 'COMMIT';
  /** SQL of the row. */
  readonly when: string;
}

/** The locks of a test in its database. */
export class Holder {
  readonly #client: pg.Client;

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async open(databaseUrl: string): Promise<Holder> {
    const client = new pg.Client({ connectionString: databaseUrl });
    await client.connect();
    // Later sessions find a function of the test before one of Postgres with its name.
    await client.query(`ALTER DATABASE ${client.database} SET search_path = public, pg_catalog`);
    // Attempts with a limit of time wait here too.
    await client.query(`CREATE FUNCTION hold_step() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
      BEGIN
        PERFORM pg_advisory_xact_lock(${KEY});
        RETURN CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
      END $$`);
    return new Holder(client);
  }

  /**
   * Holds the statement that writes a row. The session of a dead process ends before the lock, as when its server notices the death first;
   * with `goesOn` it does what it was asked for.
   */
  async atRow({ table, at, when }: TriggerPlace, { goesOn = false } = {}): Promise<Hold> {
    await this.#client.query(`SELECT pg_advisory_lock(${KEY})`);
    await this.#client.query(
      at === 'COMMIT'
        ? `CREATE CONSTRAINT TRIGGER hold_step AFTER INSERT OR UPDATE ON ${table} DEFERRABLE INITIALLY DEFERRED
           FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION hold_step()`
        : `CREATE TRIGGER hold_step ${at} ON ${table} FOR EACH ROW WHEN (${when}) EXECUTE FUNCTION hold_step()`,
    );
    return {
      reached: () => this.#untilWaiting(),
      release: async () => {
        if (!goesOn) await this.#endAll();
        await this.#unlock();
        // Waits for the end of the transaction.
        await this.#client.query(`DROP TRIGGER hold_step ON ${table}`);
      },
    };
  }

  /** Holds the copy of a day at its first value that is too long for a decimal of a file. */
  async atCopy({ venue, date }: ArchiveDay): Promise<Hold> {
    await this.#client.query(`SELECT pg_advisory_lock(${KEY})`);
    await this.#client.query(`CREATE FUNCTION public.trim_scale(value numeric) RETURNS numeric LANGUAGE plpgsql AS $$
      BEGIN
        IF current_query() LIKE 'COPY %${venue}%${date}%' THEN PERFORM pg_advisory_xact_lock(${KEY}); END IF;
        RETURN pg_catalog.trim_scale(value);
      END $$`);
    return {
      reached: () => this.#untilWaiting(),
      release: async () => {
        await this.#endAll();
        await this.#unlock();
        await this.#client.query('DROP FUNCTION public.trim_scale');
      },
    };
  }

  /**
   * Holds DuckDB while it reads the rows of a day: a pipe is in the place of their file. With `isWritten` DuckDB reads all of them and writes
   * its file, and the process is stopped before it learns of that.
   */
  async atWriting(day: ArchiveDay, dir: string, { isWritten }: { isWritten: boolean }): Promise<Hold> {
    const work = join(dir, '.work');
    const before = new Set(await readdir(work).catch(() => []));
    const copy = await this.atCopy(day);
    let [csv, pipe] = ['', -1];
    return {
      reached: async (process) => {
        await copy.reached(process);
        const isOfDay = (name: string) => name.startsWith(`${day.kind}-${day.venue}-${day.date}-`) && !before.has(name);
        const [name] = (await readdir(work)).filter(isOfDay);
        csv = join(work, String(name));
        await rename(csv, `${csv}.whole`);
        execFileSync('mkfifo', [csv]);
        await this.#unlock();
        pipe = await eventually(
          async () => openWhenRead(csv),
          (opened) => opened >= 0,
          EVERY,
        );
        const made = csv.replace(/csv$/, 'parquet');
        await eventually(async () => existsSync(made), Boolean, EVERY);
        if (!isWritten) return;
        await stop(process);
        // The other descriptor does not wait for the reader.
        await writeFile(csv, await readFile(`${csv}.whole`));
        closeSync(pipe);
        await eventually(() => hasEnd(made), Boolean, EVERY);
      },
      release: async () => {
        if (!isWritten) closeSync(pipe);
        await rm(csv);
        await rename(`${csv}.whole`, csv);
        await copy.release();
      },
    };
  }

  close(): Promise<void> {
    return this.#client.end();
  }

  /** Also when it is unlocked. */
  async #unlock(): Promise<void> {
    await this.#client.query('SELECT pg_advisory_unlock_all()');
  }

  async #waiting(): Promise<number[]> {
    const { rows } = await this.#client.query<{ pid: number }>(WAITERS);
    return rows.map(({ pid }) => pid);
  }

  async #untilWaiting(): Promise<void> {
    await eventually(
      () => this.#waiting(),
      ({ length }) => length > 0,
      EVERY,
    );
  }

  async #endAll(): Promise<void> {
    await this.#client.query(`SELECT pg_terminate_backend(pid) FROM (${WAITERS}) w`);
    await eventually(
      () => this.#waiting(),
      ({ length }) => length === 0,
      EVERY,
    );
  }
}

/** A descriptor of a pipe for writing; -1 while nobody opened it for reading. */
function openWhenRead(path: string): number {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') return -1;
    throw error;
  }
}

async function stop(process: OddswireProcess): Promise<void> {
  process.signal('SIGSTOP');
  const stat = () => readFile(`/proc/${process.pid}/stat`, 'utf8');
  await eventually(stat, (text) => /\) [Tt] /.test(text), EVERY);
}

/** Whether a file of Parquet is whole. */
async function hasEnd(path: string): Promise<boolean> {
  const file = await open(path).catch(() => undefined);
  if (file === undefined) return false;
  try {
    const { size } = await file.stat();
    const end = Buffer.alloc(4);
    if (size >= 8) await file.read(end, 0, 4, size - 4);
    return end.toString() === 'PAR1';
  } finally {
    await file.close();
  }
}
