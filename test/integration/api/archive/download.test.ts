import { createHash, randomBytes } from 'node:crypto';
import { appendFile, readdir, readlink, rm, truncate, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { beforeEach, describe, expect, it } from 'vitest';
import { ArchiveFolder } from '../../../../api/reads/archive-folder.ts';
import type { Scope } from '../../../../src/domain/values/api-key.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { readArchiveUse } from '../../../../src/store/accounts/archive-use.ts';
import { setAccountQuotas } from '../../../../src/store/accounts/quotas.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { anArchivedDay, anArchiveFolder, type TestFile } from '../../../factories/archive.ts';
import { eventually } from '../../../support/eventually.ts';
import { forTests } from '../../../support/for-tests.ts';
import { type Client, startTestApi, type TestApi } from '../api-harness.ts';

const lines: string[] = [];
const log = createLogger({ process: 'test', level: 'info', destination: { write: (line) => lines.push(line) } });
const MEGABYTE = 1_000_000;
const FORGET = sql('test_forget_file', 'UPDATE archive_file SET file = NULL WHERE file = $1');
const NAME_OF = sql('test_account_name', 'SELECT name FROM account WHERE id = $1');

const folder = forTests(anArchiveFolder, ({ remove }) => remove());
const api = forTests<TestApi>(
  () => startTestApi({ archive: new ArchiveFolder(folder.dir, log) }),
  (started) => started.close(),
);
const other = forTests<TestApi>(
  () => startTestApi({ archive: new ArchiveFolder('/nowhere', log) }, { beside: api }),
  (started) => started.close(),
);
const reader = forTests(() => api.client(['archive']));

let days = 0;
/** Each test has a day of its own. */
const nextDay = () => new Date(Date.UTC(2025, 0, 1) + days++ * 86_400_000).toISOString().slice(0, 10);
let day: TestFile;
beforeEach(async () => {
  day = await anArchivedDay(api.db, folder.dir, { date: nextDay() });
  lines.length = 0;
});

async function get(
  file: string,
  headers: Record<string, string> = {},
  { method = 'GET', by = reader, at = api }: { method?: string; by?: Client; at?: TestApi } = {},
) {
  const answer = await fetch(`${at.url}/v1/archive/${file}`, {
    method,
    headers: { Authorization: `Bearer ${by.key}`, ...headers },
  });
  const bytes = Buffer.from(await answer.arrayBuffer());
  at.checkAnswers();
  const error = () => (JSON.parse(bytes.toString()) as { error: { code: string; message: string } }).error;
  return { status: answer.status, headers: answer.headers, bytes, error };
}
const usedBy = async ({ accountId }: Client) => (await readArchiveUse(api.db, accountId, 1_000)).used;
const digestOf = (sha256: string) => `sha-256=:${Buffer.from(sha256, 'hex').toString('base64')}:`;

describe('GET /v1/archive/{file}', () => {
  it('sends the bytes with their digest when nothing else is asked', async () => {
    const { status, headers, bytes } = await get(day.file, { 'Accept-Encoding': 'gzip, br' });
    expect([status, bytes.equals(day.content)]).toEqual([200, true]);
    expect(Object.fromEntries(headers)).toMatchObject({
      'content-type': 'application/vnd.apache.parquet',
      'content-length': '1000',
      'accept-ranges': 'bytes',
      etag: `"${day.sha256}"`,
      'content-digest': digestOf(day.sha256),
      'repr-digest': digestOf(day.sha256),
    });
    expect(headers.get('content-encoding')).toBeNull();
  });

  it('sends the headers alone and counts no bytes when the method is HEAD', async () => {
    const client = await api.client(['archive']);
    const { status, headers, bytes } = await get(day.file, { Range: 'bytes=0-1' }, { method: 'HEAD', by: client });
    expect([status, headers.get('content-length'), bytes.length]).toEqual([200, '1000', 0]);
    expect(headers.get('etag')).toBe(`"${day.sha256}"`);
    expect(await usedBy(client)).toBe(0);
  });

  it.each([
    ['bytes=0-0', 0, 1],
    ['bytes=10-19', 10, 20],
    ['bytes=990-', 990, 1_000],
    ['bytes=990-5000', 990, 1_000],
    ['bytes=-10', 990, 1_000],
    ['bytes=-5000', 0, 1_000],
  ])('sends one part when Range is %s', async (range, start, end) => {
    const { status, headers, bytes } = await get(day.file, { Range: range, 'Accept-Encoding': 'gzip' });
    expect([status, bytes.equals(day.content.subarray(start, end))]).toEqual([206, true]);
    expect(headers.get('content-range')).toBe(`bytes ${start}-${end - 1}/1000`);
    expect(headers.get('content-length')).toBe(String(end - start));
    expect(headers.get('repr-digest')).toBe(digestOf(day.sha256));
    expect(headers.get('content-digest')).toBeNull();
  });

  it.each(['bytes=1000-', 'bytes=1000-1001', 'bytes=-0'])(
    'answers 416 with the size when Range is %s',
    async (range) => {
      const { status, headers, error } = await get(day.file, { Range: range });
      expect([status, error().code, headers.get('content-range')]).toEqual([
        416,
        'range_not_satisfiable',
        'bytes */1000',
      ]);
    },
  );

  it.each(['bytes=0-1,5-6', 'lines=0-1', 'bytes=5-1', 'bytes=-', 'bytes=a-b'])(
    'sends the whole file when Range is %s',
    async (range) => {
      const { status, bytes } = await get(day.file, { Range: range });
      expect([status, bytes.length]).toEqual([200, 1_000]);
    },
  );

  it('sends the part only when If-Range is the ETag', async () => {
    const status = async (ifRange: string) => (await get(day.file, { Range: 'bytes=1-', 'If-Range': ifRange })).status;
    expect(await status(`"${day.sha256}"`)).toBe(206);
    expect(await status(`W/"${day.sha256}"`)).toBe(200);
    expect(await status('"other"')).toBe(200);
    expect(await status('Sat, 01 Jan 2050 00:00:00 GMT')).toBe(200);
  });

  it('answers 304 and counts no bytes when the client has the file', async () => {
    const client = await api.client(['archive']);
    for (const tag of [`"${day.sha256}"`, `W/"${day.sha256}"`, `"x", "${day.sha256}"`, '*']) {
      const { status, headers, bytes } = await get(day.file, { 'If-None-Match': tag }, { by: client });
      expect([status, bytes.length, headers.get('etag')]).toEqual([304, 0, `"${day.sha256}"`]);
    }
    expect((await get(day.file, { 'If-None-Match': '"other"' }, { by: client })).status).toBe(200);
    expect(await usedBy(client)).toBe(1_000);
  });

  it.each<[Scope, number]>([
    ['archive', 200],
    ['markets:read', 403],
  ])('answers a key with the scope %s with %d', async (scope, status) => {
    expect((await get(day.file, {}, { by: await api.client([scope]) })).status).toBe(status);
  });

  it.each(['..%2f..%2fetc%2fpasswd', '%2e%2e', 'manifest.json', 'trades-kalshi-2026-01-01-r1-0123456789ab.parquet'])(
    'answers 404 when the name is %s',
    async (name) => {
      const { status, error } = await get(name);
      expect([status, ['archive_file_not_found', 'not_found'].includes(error().code)]).toEqual([404, true]);
    },
  );

  it('keeps a superseded file readable until it is removed', async () => {
    await anArchivedDay(api.db, folder.dir, { date: day.date, revision: 2 });
    expect((await get(day.file)).status).toBe(200);
    await rm(day.path);
    expect((await get(day.file)).error().code).toBe('archive_file_not_found');
    await api.db.query(FORGET, [day.file]);
    expect((await get(day.file)).error().code).toBe('archive_file_not_found');
    expect(lines).toEqual([]);
  });
});

describe('a file that differs from the catalog', () => {
  const faults: [string, () => Promise<unknown>, string][] = [
    ['missing', () => rm(day.path), 'no_file'],
    ['truncated', () => truncate(day.path, 10), 'other_size'],
    ['longer', () => appendFile(day.path, 'x'), 'other_size'],
    ['changed', () => writeFile(day.path, randomBytes(1_000)), 'other_content'],
  ];

  it.each(faults)('is answered with archive_unavailable when it is %s', async (_, harm, cause) => {
    const client = await api.client(['archive']);
    expect((await get(day.file, { Range: 'bytes=0-1' }, { by: client })).status).toBe(206);
    await harm();
    for (const headers of [{}, { Range: 'bytes=0-1' }]) {
      const { status, headers: answered, error } = await get(day.file, headers, { by: client });
      expect([status, error()]).toMatchObject([503, { code: 'archive_unavailable', details: [{ message: cause }] }]);
      expect(answered.get('retry-after')).toBe('30');
      expect(error().message).not.toContain(folder.dir);
    }
    expect(await usedBy(client)).toBe(2);
  });

  it('is served again when its content is right again', async () => {
    await writeFile(day.path, randomBytes(1_000));
    expect((await get(day.file)).status).toBe(503);
    await writeFile(day.path, day.content);
    expect((await get(day.file)).bytes.equals(day.content)).toBe(true);
  });

  it('names the missing folder when the process is on another machine', async () => {
    const { status, error } = await get(day.file, {}, { at: other });
    expect([status, error()]).toMatchObject([503, { details: [{ message: 'no_folder' }] }]);
    expect(JSON.parse(lines[0] ?? '{}')).toMatchObject({ file: day.file, cause: 'no_folder', code: 'ENOENT' });
  });
});

describe('a file of 20 MB', () => {
  const content = randomBytes(20 * MEGABYTE);
  const large = forTests(() => anArchivedDay(api.db, folder.dir, { kind: 'books', content }));
  /** The descriptors of this process that lead to the file. */
  const openHandles = async () => {
    const links = await Promise.all(
      (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
    );
    return links.filter((link) => link.endsWith(large.file)).length;
  };

  it('is the same when a client reads it in parts at once', async () => {
    const size = 3 * MEGABYTE;
    const parts = await Promise.all(
      Array.from({ length: 7 }, (_, i) => get(large.file, { Range: `bytes=${i * size}-${(i + 1) * size - 1}` })),
    );
    const bytes = Buffer.concat(parts.map((part) => part.bytes));
    expect(createHash('sha256').update(bytes).digest('hex')).toBe(large.sha256);
    expect(await openHandles()).toBe(0);
  });

  it('is closed and its unsent bytes are given back when the client aborts', async () => {
    const client = await api.client(['archive']);
    await new Promise<void>((resolve, reject) => {
      const sent = request(
        `${api.url}/v1/archive/${large.file}`,
        { headers: { Authorization: `Bearer ${client.key}` } },
        (answer) =>
          answer.once('data', () => {
            answer.destroy();
            resolve();
          }),
      );
      sent.once('error', reject);
      sent.end();
    });
    const used = await eventually(
      () => usedBy(client),
      (bytes) => bytes < 20 * MEGABYTE,
    );
    expect(used).toBeGreaterThan(0);
    await eventually(openHandles, (count) => count === 0);
  });

  it('is closed when the client never reads', async () => {
    const sent = request(`${api.url}/v1/archive/${large.file}`, { headers: { Authorization: `Bearer ${reader.key}` } });
    const answered = new Promise((resolve) => sent.once('response', resolve));
    sent.end();
    await answered;
    expect(await openHandles()).toBe(1);
    sent.destroy();
    await eventually(openHandles, (count) => count === 0);
  });
});

describe('the quota of bytes', () => {
  const content = randomBytes(600_000);
  const part = { Range: 'bytes=0-399999' };
  const limited = async (archiveMbPerDay: number) => {
    const client = await api.client(['archive']);
    const [account] = await api.db.query<{ name: string }>(NAME_OF, [client.accountId]);
    await setAccountQuotas(api.db, account?.name ?? '', { archiveMbPerDay });
    return client;
  };
  beforeEach(async () => {
    day = await anArchivedDay(api.db, folder.dir, { kind: 'prices', date: nextDay(), content });
  });

  it('answers 429 with the time until the next UTC day when the account has used it up', async () => {
    const by = await limited(1);
    expect((await get(day.file, {}, { by })).status).toBe(200);
    expect((await get(day.file, part, { by })).status).toBe(206);
    const { status, headers, error } = await get(day.file, { Range: 'bytes=0-0' }, { by });
    expect([status, error().code]).toEqual([429, 'archive_quota_exceeded']);
    const left = 86_400 - ((Date.now() / 1_000) % 86_400);
    expect(Math.abs(Number(headers.get('retry-after')) - left)).toBeLessThan(300);
    expect((await get(day.file, {}, { by, method: 'HEAD' })).status).toBe(200);
  });

  it('admits no more than its bytes when requests arrive at once', async () => {
    const by = await limited(1);
    const answers = await Promise.all(Array.from({ length: 8 }, () => get(day.file, part, { by })));
    expect(answers.filter(({ status }) => status === 206)).toHaveLength(2);
    expect(await usedBy(by)).toBe(800_000);
  });

  it('admits nothing when it is 0', async () => {
    expect((await get(day.file, {}, { by: await limited(0) })).status).toBe(429);
  });

  it('begins anew when a UTC day begins', async () => {
    const by = await limited(1);
    await get(day.file, {}, { by });
    await api.db.query(sql('test_age_archive_use', 'UPDATE archive_use SET date = date - 1 WHERE account_id = $1'), [
      by.accountId,
    ]);
    expect(await usedBy(by)).toBe(0);
    expect((await get(day.file, {}, { by })).status).toBe(200);
    expect(await usedBy(by)).toBe(600_000);
  });
});
