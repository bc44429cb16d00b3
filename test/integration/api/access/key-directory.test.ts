import { afterAll, describe, expect, it } from 'vitest';
import { createKeyDirectory, type KeyDirectory } from '../../../../api/access/key-directory.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { createApiKey, revokeApiKey } from '../../../../src/store/accounts/accounts.ts';
import type { Statement } from '../../../../src/store/db/tx.ts';
import { gate } from '../../../support/gate.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const log = createLogger({ process: 'test', level: 'silent' });
const NOW_MS = Date.now();

const test = useTestDatabase();
/** Each directory represents one API process. */
let directories: KeyDirectory[] = [];
let elapsedMs = 1_000;
afterAll(async () => {
  for (const directory of directories) await directory.close();
});

function openDirectory(): KeyDirectory {
  const directory = createKeyDirectory(test.db, log, () => elapsedMs);
  directories = [...directories, directory];
  return directory;
}

const makeKey = (account = 'acme', expiresAt?: Date) =>
  createApiKey(test.db, { accountName: account, name: 'k', scopes: ['alerts'], ...(expiresAt && { expiresAt }) });

describe('revocation', () => {
  it('takes effect in all processes within a second, for this key only', async () => {
    const [one, two] = [await makeKey(), await makeKey()];
    const processes = [openDirectory(), openDirectory()];
    const idsOf = async (key: string) =>
      Promise.all(processes.map(async (directory) => (await directory.find(key, NOW_MS))?.id));
    expect(await idsOf(one.key)).toEqual([one.id, one.id]);
    await revokeApiKey(test.db, one.id);
    elapsedMs += 990;
    expect(await idsOf(one.key)).toEqual([one.id, one.id]);
    elapsedMs += 10;
    expect(await idsOf(one.key)).toEqual([undefined, undefined]);
    expect(await idsOf(two.key)).toEqual([two.id, two.id]);
  });

  it('counts the second from the start of the look-up', async () => {
    const { key, id } = await makeKey();
    const directory = openDirectory();
    const query = test.db.query.bind(test.db);
    const answered = gate();
    test.db.query = async <Row>(statement: Statement, values?: readonly unknown[]) => {
      const rows = await query<Row>(statement, values);
      await answered.opened;
      return rows;
    };
    const slow = directory.find(key, NOW_MS);
    test.db.query = query;
    elapsedMs += 900;
    answered.open();
    expect((await slow)?.id).toBe(id);
    await revokeApiKey(test.db, id);
    elapsedMs += 100;
    expect(await directory.find(key, NOW_MS)).toBeNull();
  });
});

describe('invalid keys', () => {
  it('take the same code path for every fault', async () => {
    const [good, revoked] = [await makeKey(), await makeKey()];
    const expired = await makeKey('acme', new Date(NOW_MS));
    await revokeApiKey(test.db, revoked.id);
    const offered = {
      unknown: `ow_live_nobodyhasit1_${'0'.repeat(36)}`,
      'wrong secret': `ow_live_${good.id}_${'0'.repeat(36)}`,
      revoked: revoked.key,
      expired: expired.key,
      chosen: 'some-other-string-as-a-key',
    };
    const directory = openDirectory();
    const query = test.db.query.bind(test.db);
    for (const [what, key] of Object.entries(offered)) {
      const statements: string[] = [];
      test.db.query = <Row>(statement: Statement, values?: readonly unknown[]) => {
        statements.push(statement.name);
        return query<Row>(statement, values);
      };
      const found = [await directory.find(key, NOW_MS), await directory.find(key, NOW_MS)];
      test.db.query = query;
      expect([what, found, statements]).toEqual([what, [null, null], ['find_api_key']]);
      expect(directory.findCached(key, NOW_MS)).toBeNull();
    }
  });

  it('share one statement with all look-ups that arrive during a look-up', async () => {
    const good = await makeKey();
    const directory = openDirectory();
    const query = test.db.query.bind(test.db);
    const answered = gate();
    let statements = 0;
    let inFlight = 0;
    let most = 0;
    test.db.query = async <Row>(statement: Statement, values?: readonly unknown[]) => {
      statements += 1;
      inFlight += 1;
      most = Math.max(most, inFlight);
      await answered.opened;
      const rows = await query<Row>(statement, values);
      inFlight -= 1;
      return rows;
    };
    const wrong = Array.from({ length: 300 }, (_, i) => directory.find(`ow_live_guess${i}_${'0'.repeat(36)}`, NOW_MS));
    const right = directory.find(good.key, NOW_MS);
    answered.open();
    const found = await Promise.all(wrong);
    expect((await right)?.id).toBe(good.id);
    test.db.query = query;
    expect(found.filter((key) => key !== null)).toEqual([]);
    expect({ statements, most }).toEqual({ statements: 2, most: 1 });
  });

  it('are not remembered when the look-up fails', async () => {
    const { key, id } = await makeKey();
    const directory = openDirectory();
    const query = test.db.query;
    test.db.query = () => Promise.reject(new Error('away'));
    await expect(directory.find(key, NOW_MS)).rejects.toThrow('away');
    test.db.query = query;
    expect(await directory.find(key, NOW_MS)).toMatchObject({ id });
  });
});
