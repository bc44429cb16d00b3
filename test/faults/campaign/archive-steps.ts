import { expect } from 'vitest';
import { listPartitions, readSeam } from '../../../src/store/db/partitions.ts';
import { eventually } from '../../support/eventually.ts';
import { CANDLES, dayOf, FIRST_MS, PARTITION, rowOf, SEAM_MS } from './archive-days.ts';
import type { Step, Steps } from './archive-lives.ts';

const tradesOf = (number: number) => dayOf('trades', number);
export const DAYS_OF_TRADES = [tradesOf(1), tradesOf(2), tradesOf(3), tradesOf(4), tradesOf(5)] as const;
/** Candles that one transaction drops. */
const DROPPED_AT_ONCE = 5_000;
const OTHER_KINDS = ['prices', 'books', 'markets', 'resolutions', 'coverage'] as const;

/** Makes a later revision of a day due. */
export const lateIn =
  ({ untilWhole, storeLate, ageFiles }: Steps) =>
  (number: number) =>
  async () => {
    await untilWhole(tradesOf(number));
    await storeLate(number);
    await ageFiles();
  };

/** One death between the rename and the commit for each of the kinds without late rows; the life after all of them repairs them. */
export function stepsOfKinds({ holder, untilWhole }: Steps): Step[] {
  return OTHER_KINDS.map((kind) => {
    const day = dayOf(kind, 2);
    return {
      name: `${kind}, between the rename and the commit`,
      kinds: kind,
      hold: () => holder.atRow({ table: 'archive_file', at: 'COMMIT', when: rowOf(day) }),
      left: { day, files: 1, work: ['csv'] },
      repaired: async () => {
        if (kind !== OTHER_KINDS.at(-1)) return;
        for (const each of OTHER_KINDS) await untilWhole(dayOf(each, 2));
      },
    };
  });
}

/** The making of a revision with a late trade, while Postgres has the day. */
export function stepsOfMaking(lives: Steps): Step[] {
  const { holder, dir, storeLate, ageFiles, untilWhole, parquets } = lives;
  const [first, second, third, fourth, fifth] = DAYS_OF_TRADES;
  const kinds = 'trades';
  const late = lateIn(lives);
  const revised = 'NEW.revision = 2';
  return [
    {
      name: 'in the copy',
      kinds: ['trades', ...OTHER_KINDS].join(','),
      ready: async () => {
        await untilWhole(first);
        await storeLate(1);
      },
      hold: () => holder.atCopy(first),
      provoke: ageFiles,
      left: { day: first, revision: 1, files: 1, work: ['csv'] },
    },
    {
      name: 'while DuckDB writes the file',
      kinds,
      hold: () => holder.atWriting(first, dir, { isWritten: false }),
      left: { day: first, revision: 1, files: 1, work: ['csv'], unsure: 'parquet' },
    },
    {
      name: 'before the file is compared',
      kinds,
      hold: () => holder.atWriting(first, dir, { isWritten: true }),
      left: { day: first, revision: 1, files: 1, work: ['csv', 'parquet'] },
      repaired: () => untilWhole(first, 2),
    },
    {
      name: 'before the row of the catalog',
      kinds,
      hold: () => holder.atRow({ table: 'archive_file', at: 'BEFORE INSERT', when: `${rowOf(second)} AND ${revised}` }),
      provoke: late(2),
      left: { day: second, revision: 1, files: 1, work: ['csv', 'parquet'] },
      repaired: () => untilWhole(second, 2),
    },
    {
      name: 'between the rename and the commit',
      kinds,
      hold: () => holder.atRow({ table: 'archive_file', at: 'COMMIT', when: `${rowOf(third)} AND ${revised}` }),
      provoke: late(3),
      left: { day: third, revision: 1, files: 2, work: ['csv'] },
      // The next file has other bytes.
      dead: () => storeLate(3),
      repaired: () => untilWhole(third, 2),
    },
    {
      name: 'at the commit, which happens',
      kinds,
      hold: () =>
        holder.atRow(
          { table: 'archive_file', at: 'COMMIT', when: `${rowOf(fourth)} AND ${revised} AND NEW.described_at IS NULL` },
          { goesOn: true },
        ),
      provoke: late(4),
      left: { day: fourth, revision: 2, isDescribed: false, files: 2, work: ['csv'] },
      repaired: () => untilWhole(fourth, 2),
    },
    {
      name: 'between the folder and its note',
      kinds,
      hold: () =>
        holder.atRow({
          table: 'archive_file',
          at: 'BEFORE UPDATE OF described_at',
          when: `${rowOf(fifth)} AND ${revised}`,
        }),
      provoke: late(5),
      left: { day: fifth, revision: 2, isDescribed: false, files: 1, work: ['csv'] },
      dead: async () => expect(await parquets(fifth)).toEqual([expect.stringContaining('-r2-')]),
      repaired: () => untilWhole(fifth, 2),
    },
  ];
}

/** The drops of what files have, and a revision after them. */
export function stepsOfDrops({
  db,
  holder,
  storeLate,
  ageFiles,
  untilWhole,
  stateOf,
  counts,
  lastToken,
}: Steps): Step[] {
  const [trades, candles] = [dayOf('trades', 1), dayOf('candles', 1)];
  const seam = `NEW.kind = 'trades'`;
  const isThere = async () => (await listPartitions(db, 'trade')).some(({ name }) => name === PARTITION);
  const stays = async () => expect([await isThere(), await readSeam(db, 'trades')]).toEqual([true, undefined]);
  const both = { kinds: 'trades,candles', drops: true };
  const count = (expected: object) => async () => expect(await counts()).toMatchObject(expected);
  const ofFirstDay = `OLD.interval_seconds < 900 AND OLD.bucket < ${FIRST_MS / 1000 + 86_400}`;
  const lastCandle = `OLD.interval_seconds = 300 AND OLD.bucket = ${FIRST_MS / 1000 + 86_100} AND OLD.token_id = ${lastToken}`;
  return [
    {
      name: 'before the seam moves',
      kinds: 'trades',
      drops: true,
      hold: async () => {
        // Its note keeps the partition until the day is made again.
        await storeLate(2);
        return holder.atRow({ table: 'archive_seam', at: 'BEFORE INSERT', when: seam });
      },
      provoke: ageFiles,
      dead: stays,
    },
    {
      name: 'at the commit of the drop of a partition',
      kinds: 'trades',
      drops: true,
      hold: () => holder.atRow({ table: 'archive_seam', at: 'COMMIT', when: seam }),
      dead: stays,
      repaired: async () => {
        await eventually(isThere, (isStill) => !isStill);
        expect(await readSeam(db, 'trades')).toBe(SEAM_MS);
      },
    },
    {
      name: 'before the drop of candles',
      ...both,
      hold: () => holder.atRow({ table: 'candle', at: 'BEFORE DELETE', when: ofFirstDay }),
      left: { day: candles, revision: 1, files: 1, work: ['csv'] },
      dead: count({ candles: CANDLES }),
    },
    {
      name: 'in the second part of the drop of candles',
      ...both,
      hold: () =>
        holder.atRow({
          table: 'candle',
          at: 'BEFORE DELETE',
          when: lastCandle,
        }),
      left: { day: candles, revision: 1, files: 1, work: ['csv'] },
      dead: count({ candles: CANDLES - DROPPED_AT_ONCE }),
    },
    {
      name: 'between the drop of candles and its note',
      ...both,
      hold: () => holder.atRow({ table: 'archive_file', at: 'BEFORE UPDATE OF dropped_at', when: rowOf(candles) }),
      left: { day: candles, revision: 1, files: 1, work: ['csv'] },
      dead: count({ candles: 0 }),
      repaired: async () => {
        await eventually(
          () => stateOf(candles),
          (state) => state?.isDropped === true,
        );
        await untilWhole(candles, 1, { isDropped: true });
      },
    },
    {
      name: 'in the revision with a late trade',
      ...both,
      hold: () => holder.atRow({ table: 'archive_correction', at: 'BEFORE DELETE', when: 'true' }),
      provoke: async () => {
        await storeLate(1);
        await ageFiles();
      },
      left: { day: trades, revision: 2, files: 1, work: ['csv', 'parquet'] },
      dead: count({ corrections: 1, candles: 0 }),
    },
    {
      name: 'at the commit of the revision with a late trade',
      ...both,
      hold: () => holder.atRow({ table: 'archive_file', at: 'COMMIT', when: `${rowOf(trades)} AND NEW.revision = 3` }),
      left: { day: trades, revision: 2, files: 2, work: ['csv'] },
      dead: count({ corrections: 1, candles: 0 }),
      repaired: async () => {
        await untilWhole(trades, 3, { isDropped: true });
        await ageFiles();
        await eventually(
          () => stateOf(candles),
          (state) => state?.revision === 2 && state.isDescribed && state.isDropped,
        );
        await untilWhole(candles, 2, { isDropped: true });
        await count({ corrections: 0, candles: 0 })();
      },
    },
  ];
}
