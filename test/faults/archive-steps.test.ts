import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { folderOf } from '../../src/domain/archive/file.ts';
import { BACKENDS, isAvailable } from '../support/redis/queue-backends.ts';
import { hasS3 } from '../support/s3/server.ts';
import { rowOf } from './campaign/archive-days.ts';
import { type Step, type Steps, startSteps } from './campaign/archive-lives.ts';
import { DAYS_OF_TRADES, lateIn, stepsOfDrops, stepsOfKinds, stepsOfMaking } from './campaign/archive-steps.ts';

/** The steps with an object store. */
function stepsOfStore(lives: Steps): Step[] {
  const { holder, s3, storeLate, parquets, untilWhole } = lives;
  const [first, second, third] = DAYS_OF_TRADES;
  const kinds = 'trades';
  const revised = 'NEW.revision = 2';
  const late = lateIn(lives);
  const folder = (day = first) => join(String(s3?.folder), 'campaign', folderOf(day));
  const objects = async (day = first) => (await readdir(folder(day))).filter((name) => name.endsWith('.parquet'));
  let [uploaded, uploadedMs] = ['', 0];
  return [
    {
      name: 'between the upload and the catalog',
      kinds,
      hold: () => holder.atRow({ table: 'archive_file', at: 'BEFORE INSERT', when: rowOf(first) }),
      left: { day: first, files: 0, work: ['csv', 'parquet'] },
      dead: async () => {
        uploaded = String((await objects())[0]);
        uploadedMs = (await stat(join(folder(), uploaded))).mtimeMs;
      },
      repaired: async () => {
        await untilWhole(first);
        expect([await parquets(first), await objects()]).toEqual([[uploaded], [uploaded]]);
        expect((await stat(join(folder(), uploaded))).mtimeMs).toBe(uploadedMs);
      },
    },
    {
      name: 'between the upload and the catalog, before other rows come',
      kinds,
      hold: () => holder.atRow({ table: 'archive_file', at: 'BEFORE INSERT', when: `${rowOf(second)} AND ${revised}` }),
      provoke: late(2),
      left: { day: second, revision: 1, files: 1, work: ['csv', 'parquet'] },
      dead: async () => {
        const [present] = await parquets(second);
        [uploaded = ''] = (await objects(second)).filter((name) => name !== present);
        await storeLate(2);
      },
      repaired: async () => {
        await untilWhole(second, 2);
        expect(await objects(second)).toEqual(await parquets(second));
        expect(await objects(second)).not.toEqual([uploaded]);
        // Nothing removes an object without a row.
        expect(await readdir(join(String(s3?.folder), 'campaign', '.former'))).toContain(uploaded);
      },
    },
    {
      name: 'between the rename and the commit, with an object store',
      kinds,
      hold: () => holder.atRow({ table: 'archive_file', at: 'COMMIT', when: `${rowOf(third)} AND ${revised}` }),
      provoke: late(3),
      left: { day: third, revision: 1, files: 2, work: ['csv'] },
      repaired: async () => {
        await untilWhole(third, 2);
        expect(await objects(third)).toEqual(await parquets(third));
      },
    },
  ];
}

describe.concurrent('an aggregator that is killed at each step of the archive', () => {
  it.skipIf(!hasS3())('leaves an object store that the next life completes', async () => {
    const lives = await startSteps('postgres', true);
    try {
      await lives.dieAt(stepsOfStore(lives), { kinds: 'trades' });
      expect(await lives.check(false)).toEqual([]);
    } finally {
      await lives.close();
    }
  });

  it.each(BACKENDS.filter(isAvailable))('loses no row and writes none twice, queues on %s', async (kind) => {
    const lives = await startSteps(kind, false);
    try {
      const steps = [...stepsOfKinds(lives), ...stepsOfMaking(lives), ...stepsOfDrops(lives)];
      await lives.dieAt(steps, { kinds: 'trades,candles', drops: true });
      const found = await lives.check(true);
      expect(found).toEqual([expect.stringMatching(/^\.former\/trades-.* no row of the catalog names it: repaired$/)]);
      expect(await lives.check(false)).toEqual([]);
    } finally {
      await lives.close();
    }
  });
});
