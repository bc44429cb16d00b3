import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { pageText } from '../../support/markdown.ts';
import { useTestDatabase } from '../../support/postgres/database.ts';

const test = useTestDatabase();

/** Tables of the schema, without partitions. */
const TABLES = `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`;

describe('docs/tables.md', () => {
  it('lists every table of the schema once', async () => {
    const client = new pg.Client({ connectionString: test.url });
    await client.connect();
    const { rows } = await client.query<{ name: string }>(TABLES).finally(() => client.end());
    const listed = [...pageText('docs/tables.md').matchAll(/^\| `([a-z_]+)` \|/gm)].map(([, name]) => name);
    expect(listed.sort()).toEqual(rows.map(({ name }) => name).sort());
  });
});
