import { describe, expect, it } from 'vitest';
import { createAnswerCache } from '../../../../api/reads/answer-cache.ts';
import { ArchiveFolder } from '../../../../api/reads/archive-folder.ts';
import type { Scope } from '../../../../src/domain/values/api-key.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { anArchivedDay, anArchiveFolder, anEmptyDay } from '../../../factories/archive.ts';
import { forTests } from '../../../support/for-tests.ts';
import { useTestApi } from '../api-harness.ts';

const log = createLogger({ process: 'test', level: 'silent' });
const folder = forTests(anArchiveFolder, ({ remove }) => remove());
const off = useTestApi();

interface Listed {
  file: string | null;
  kind: string;
  venue: string;
  date: string;
  revision: number;
}

describe('GET /v1/archive', () => {
  const api = useTestApi({
    archive: new ArchiveFolder('/nowhere', log),
    answers: createAnswerCache({ ttlMs: 60_000 }),
  });
  const reader = forTests(() => api.client(['archive']));
  forTests(async () => {
    await anArchivedDay(api.db, folder.dir);
    await anArchivedDay(api.db, folder.dir, { revision: 2 });
    await anEmptyDay(api.db);
    await anArchivedDay(api.db, folder.dir, { date: '2026-01-03' });
    await anArchivedDay(api.db, folder.dir, { venue: 'manifold' });
    await anArchivedDay(api.db, folder.dir, { kind: 'books' });
    return anEmptyDay(api.db, { kind: 'prices', venue: 'solana' });
  });
  const listed = async (query: string) => {
    const { status, body } = await reader.market(`/v1/archive${query}`);
    expect(status).toBe(200);
    return body.data as Listed[];
  };
  const days = (rows: Listed[]) => rows.map(({ kind, venue, date }) => `${kind} ${venue} ${date}`);

  it('lists the last revision of each day and names empty days', async () => {
    const rows = await listed('?kind=trades&venue=kalshi');
    expect(days(rows)).toEqual(['trades kalshi 2026-01-01', 'trades kalshi 2026-01-02', 'trades kalshi 2026-01-03']);
    expect(rows[0]).toMatchObject({ revision: 2, rows: 10, bytes: 1_000, start: 1_767_229_200, end: 1_767_232_800 });
    expect(rows[1]).toMatchObject({ file: null, sha256: null, rows: 0, bytes: 0, start: null, end: null });
  });

  it('filters by kinds, venues and days, both of them included', async () => {
    expect(days(await listed('?kind=books,prices'))).toEqual(['books kalshi 2026-01-01', 'prices solana 2026-01-02']);
    expect(days(await listed('?venue=manifold&venue=solana'))).toEqual([
      'prices solana 2026-01-02',
      'trades manifold 2026-01-01',
    ]);
    expect(days(await listed('?kind=trades&from=2026-01-02&to=2026-01-03'))).toEqual([
      'trades kalshi 2026-01-02',
      'trades kalshi 2026-01-03',
    ]);
  });

  it('returns each day once when a client pages through the list', async () => {
    const seen: string[] = [];
    for (let cursor: string | null | undefined = ''; cursor !== null; ) {
      const { body } = await reader.market(`/v1/archive?limit=2${cursor ? `&cursor=${cursor}` : ''}`);
      seen.push(...days(body.data as Listed[]));
      cursor = body.meta.next_cursor as string | null;
    }
    expect(seen).toEqual(days(await listed('')));
    expect(seen).toHaveLength(6);
  });

  it.each([
    ['?from=2026-13-01', 'from'],
    ['?to=2026-02-30', 'to'],
    ['?to=0000-01-01', 'to'],
    ['?from=2026-01-02&to=2026-01-01', 'from'],
    ['?kind=orders', 'kind'],
    ['?venue=nyse', 'venue'],
  ])('answers invalid_request with the field when the query is %s', async (query, path) => {
    const { status, body } = await reader.market(`/v1/archive${query}`);
    expect([status, body.error.details?.[0]?.path]).toEqual([400, path]);
  });

  it('refuses a cursor of other filters', async () => {
    const { body } = await reader.market('/v1/archive?limit=1');
    const { status } = await reader.market(`/v1/archive?limit=1&kind=trades&cursor=${body.meta.next_cursor}`);
    expect(status).toBe(400);
  });

  it.each<[Scope, number]>([
    ['archive', 200],
    ['markets:read', 403],
  ])('answers a key with the scope %s with %d, also after other keys read the same page', async (scope, status) => {
    const client = await api.client([scope]);
    await reader.market('/v1/archive?kind=books');
    for (let i = 0; i < 2; i += 1) expect((await client.market('/v1/archive?kind=books')).status).toBe(status);
  });
});

describe('an API without an archive', () => {
  it.each(['/v1/archive', '/v1/archive/trades-kalshi-2026-01-01-r1-0123456789ab.parquet'])(
    'answers archive_off when a client reads %s',
    async (path) => {
      const client = await off.client();
      const { status, body } = await client.market(path);
      expect([status, body.error.code]).toEqual([404, 'archive_off']);
    },
  );
});
