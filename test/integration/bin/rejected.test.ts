import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { quarantine } from '../../../src/store/catalog/quarantine.ts';
import { createTestDatabase, type TestDatabase } from '../../support/postgres/database.ts';
import { oddswire } from './run-command.ts';

let test: TestDatabase;
beforeAll(async () => {
  test = await createTestDatabase();
});
afterAll(() => test.drop());

const rejected = (databaseUrl: string, ...argv: string[]) =>
  oddswire(['rejected', ...argv], { DATABASE_URL: databaseUrl, DATA_DIR: resolve('no-such-folder') });

it('oddswire rejected shows rejected records, filtered, as text and as JSON', async () => {
  await quarantine(test.db, 'kalshi', [
    { kind: 'trades', reason: 'price_out_of_range', recordId: 't-1', detail: 'price: 2', sample: '{"price":2}' },
    { kind: 'books', reason: 'crossed_book', recordId: 'b-1', detail: 'bid above ask', sample: '{"bids":[]}' },
  ]);
  await quarantine(test.db, 'manifold', [{ kind: 'trades', reason: 'missing_field', detail: 'id', sample: '{}' }]);
  const [text, json] = await Promise.all([
    rejected(test.url, '--venue', 'kalshi', '--sample'),
    rejected(test.url, '--json', '--kind', 'trades', '--limit', '1'),
  ]);
  expect(text).toMatchObject({ code: 0, stderr: '' });
  expect(text.stdout).toMatch(/^venue +kind +reason +records +times/);
  expect(text.stdout).toContain('{"price":2}');
  expect(text.stdout).not.toContain('manifold');
  const { summary, records } = JSON.parse(json.stdout) as { summary: object[]; records: object[] };
  expect(summary).toHaveLength(2);
  expect(records).toMatchObject([{ venue: 'manifold', reason: 'missing_field', record_id: null }]);
});

it('oddswire rejected reports wrong arguments and a missing database', async () => {
  const closed = 'postgres://nobody:hunter2@127.0.0.1:1/none';
  const [call, down, none] = await Promise.all([
    rejected(test.url, '--venue', 'nowhere', '--limit', 'x'),
    rejected(closed),
    rejected(''),
  ]);
  expect(call.code).toBe(2);
  expect(call.stderr).toMatch(/--venue must be one of[\s\S]*--limit must be[\s\S]*usage: oddswire rejected/);
  expect(down).toMatchObject({ code: 1, stdout: '' });
  expect(down.stderr).toMatch(/^oddswire rejected: the database of DATABASE_URL does not answer.*\n$/);
  expect(down.stderr).not.toContain('hunter2');
  expect(none).toMatchObject({ code: 1, stdout: '' });
  expect(none.stderr).toMatch(/^oddswire rejected: no database: DATABASE_URL is not set.*\n$/);
});
