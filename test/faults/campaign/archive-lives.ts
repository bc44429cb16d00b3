import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { checkArchive } from '../../../src/archive/check/check-archive.ts';
import { type ArchiveDay, folderOf } from '../../../src/domain/archive/file.ts';
import { sql } from '../../../src/store/db/tx.ts';
import { eventually } from '../../support/eventually.ts';
import { OddswireProcess } from '../../support/processes/system.ts';
import type { BackendKind } from '../../support/redis/queue-backends.ts';
import { DAY_MS, DAYS, dayOf, FIRST_MS, KEEP_DAYS, OUTCOMES, RANGE, storeDays } from './archive-days.ts';
import { type Hold, Holder } from './archive-holds.ts';
import {
  foldLedger,
  inOrder,
  type LedgerTrade,
  readCandles,
  readLedger,
  readTape,
  storeLateTrade,
} from './archive-reads.ts';
import { expectWhole } from './archive-rows.ts';
import { startArchiveSystem } from './archive-system.ts';

const AGE_FILES = sql('test_age_files', `UPDATE archive_file SET made_at = made_at - interval '2 hours'`);
const STATE = sql(
  'test_step_state',
  `SELECT revision, described_at IS NOT NULL AS is_described, dropped_at IS NOT NULL AS is_dropped FROM archive_file
   WHERE kind = $1 AND venue = $2 AND date = $3::date AND superseded_at IS NULL`,
);
const COUNTS = sql(
  'test_step_counts',
  `SELECT (SELECT count(*)::int FROM archive_correction) AS corrections,
     (SELECT count(*)::int FROM candle WHERE interval_seconds < 900 AND bucket < $1 + 86400) AS candles`,
);

/** The state of a day after a death. */
interface Left {
  readonly day: ArchiveDay;
  /** That counts; absent without a row of the catalog. */
  readonly revision?: number;
  readonly isDescribed?: boolean;
  /** Of the folder of the day. */
  readonly files: number;
  /** The unfinished files of this death. */
  readonly work: readonly string[];
  /** Among them, when DuckDB removes its file at its own end or not. */
  readonly unsure?: string;
}

/** A death at one step of the archive. */
export interface Step {
  readonly name: string;
  readonly kinds: string;
  /** Whether Postgres drops archived rows. */
  readonly drops?: boolean;
  /** Precedes the hold in the life of the process; without it the hold is there before the process. */
  ready?(): Promise<void>;
  hold(): Promise<Hold>;
  /** Makes the process reach the place, once the repair of the deaths before it is seen. */
  provoke?(): Promise<void>;
  readonly left?: Left;
  /** Compares more after the death, and prepares the next life. */
  dead?(): Promise<void>;
  /** Waits until the next life has repaired the day. */
  repaired?(): Promise<void>;
}

/** A database with some days, and lives of its aggregator; with an object store the tape is read on another machine. */
export async function startSteps(kind: BackendKind, isStored: boolean) {
  const system = await startArchiveSystem(kind, {
    isStored,
    environment: { ARCHIVE_AFTER_HOURS: '720', RETENTION_BOOK_HISTORY_DAYS: '400' },
  });
  const { db, dir, s3, store, history, log, signal } = system;
  const holder = await Holder.open(system.url);
  let life: OddswireProcess | undefined;

  const tokens = await storeDays(db);
  const yes = await readLedger(db, OUTCOMES.slice(0, 1));
  const filled = foldLedger(yes, 60);
  const ids = (await readLedger(db, OUTCOMES)).map(({ tradeId }) => tradeId);

  /** Stores a trade of a past day. */
  async function storeLate(number: number): Promise<void> {
    const tsMs = FIRST_MS + (number - 1) * DAY_MS + 30_000 + ids.length;
    const late: LedgerTrade = {
      tradeId: `late ${ids.length}`,
      price: '0.5',
      size: '1',
      minute: Math.floor(tsMs / 60_000) * 60,
    };
    await storeLateTrade(db, { tsMs, tradeId: late.tradeId });
    yes.push(late);
    ids.push(late.tradeId);
  }

  const parquets = async (day: ArchiveDay) =>
    (await readdir(join(dir, folderOf(day))).catch(() => [])).filter((name) => name.endsWith('.parquet'));
  const workOf = async ({ kind: ofKind, venue, date }: ArchiveDay) =>
    (await readdir(join(dir, '.work'))).filter((name) => name.startsWith(`${ofKind}-${venue}-${date}-`));
  const stateOf = async ({ kind: ofKind, venue, date }: ArchiveDay) =>
    (await db.query<{ revision: number; isDescribed: boolean; isDropped: boolean }>(STATE, [ofKind, venue, date]))[0];

  /** No row is lost, and a reader finds none twice. Late trades reach their candles with the next fold. */
  async function expectReads(): Promise<void> {
    expect((await readTape(db, history)).sort()).toEqual([...ids].sort());
    const candles = await readCandles(db, history, { seconds: 60, range: RANGE });
    expect([...filled].filter(([minute, { trades }]) => (candles.get(minute)?.trades ?? 0) < trades)).toEqual([]);
  }

  function aLife({ kinds, drops = false }: Pick<Step, 'kinds' | 'drops'>): OddswireProcess {
    const environment = { ...system.environment, ARCHIVE_KINDS: kinds };
    return new OddswireProcess('aggregator', {
      ...environment,
      ...(drops && { ARCHIVE_KEEP_DAYS: String(KEEP_DAYS) }),
    });
  }

  async function die(step: Step, former: Step | undefined): Promise<void> {
    const before = step.left === undefined ? [] : await workOf(step.left.day).catch(() => []);
    const early = step.ready === undefined ? await step.hold() : undefined;
    const process = aLife(step);
    life = process;
    await process.start();
    await former?.repaired?.();
    await step.ready?.();
    const hold = early ?? (await step.hold());
    await step.provoke?.();
    await hold.reached(process);
    const children = await childrenOf(process);
    await process.end('SIGKILL');
    await hold.release();
    // Its DuckDB ends with it.
    await eventually(
      async () => children.filter((pid) => existsSync(`/proc/${pid}`)),
      ({ length }) => length === 0,
    );
    if (step.left !== undefined) {
      const { day, work, unsure, ...expected } = step.left;
      const state = await stateOf(day);
      const files = (await parquets(day)).length;
      expect({ revision: state?.revision, isDescribed: state?.isDescribed, files }).toEqual({
        revision: undefined,
        isDescribed: expected.revision === undefined ? undefined : true,
        ...expected,
      });
      const left = (await workOf(day)).filter((name) => !before.includes(name));
      const endings = left.map((name) => name.split('.').at(-1)).filter((ending) => ending !== unsure);
      expect(endings.sort()).toEqual(work);
    }
    await step.dead?.();
    await expectReads();
  }

  return {
    db,
    dir,
    /** The key of the outcome that is last in files. */
    lastToken: tokens[0],
    holder,
    store,
    s3,
    storeLate,
    parquets,
    stateOf,
    counts: async () => (await db.query<{ corrections: number; candles: number }>(COUNTS, [FIRST_MS / 1000]))[0],
    /** Each file is old enough for a later revision then. */
    async ageFiles(): Promise<void> {
      await db.query(AGE_FILES);
    },
    /** Waits for a revision and its description, and compares its folder and its rows. */
    async untilWhole(day: ArchiveDay, revision = 1, options: { isDropped?: boolean } = {}): Promise<void> {
      await eventually(
        () => stateOf(day),
        (state) => state?.revision === revision && state.isDescribed,
      );
      expect(await expectWhole(db, dir, day, options)).toBeGreaterThan(0);
    },
    /** Dies at each step, and lives once more. */
    async dieAt(steps: readonly Step[], last: Pick<Step, 'kinds' | 'drops'>): Promise<void> {
      let former: Step | undefined;
      for (const step of steps) {
        await die(step, former).catch((error: unknown) => {
          throw new Error(`${step.name}: ${String(error)}\n${life?.lines.slice(-20).join('\n')}`, { cause: error });
        });
        former = step;
      }
      life = aLife(last);
      await life.start();
      await former?.repaired?.();
      expect(await life.end('SIGTERM')).toBe(0);
      await expectReads();
      for (const seconds of [60, 300]) {
        const candles = await readCandles(db, history, { seconds, range: RANGE });
        expect(inOrder(candles)).toEqual(inOrder(foldLedger(yes, seconds)));
      }
    },
    /** The problems of the days with rows: later days are not archived yet. */
    async check(isRepair: boolean): Promise<string[]> {
      const options = {
        db,
        dir,
        store,
        filter: { to: dayOf('trades', DAYS).date },
        isRepair,
        log,
        signal,
        tag: 'steps',
        onDay: () => undefined,
      };
      const { findings } = await checkArchive(options);
      return findings.map(({ place, problem, isRepaired }) => `${place} ${problem}${isRepaired ? ': repaired' : ''}`);
    },
    async close() {
      await life?.end('SIGKILL');
      await holder.close();
      await system.close();
    },
  };
}

export type Steps = Awaited<ReturnType<typeof startSteps>>;

async function childrenOf({ pid }: OddswireProcess): Promise<string[]> {
  return (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter((text) => text !== '');
}
