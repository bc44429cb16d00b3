import { createHash, randomBytes } from 'node:crypto';
import { access, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Content, ObjectStore } from '../../../src/archive/store/s3.ts';
import { forTests } from '../../support/for-tests.ts';
import { startFaultProxy } from '../../support/s3/fault-proxy.ts';
import { hasS3, startS3 } from '../../support/s3/server.ts';

const { signal } = new AbortController();
const contentOf = (bytes: Buffer): Content => ({
  bytes: bytes.length,
  sha256: createHash('sha256').update(bytes).digest('hex'),
});
const DATA = randomBytes(300_000);
const CONTENT = contentOf(DATA);

describe.skipIf(!hasS3())('ObjectStore', () => {
  const server = forTests(startS3, (started) => started.close());
  const proxy = forTests(
    () => startFaultProxy(server.url),
    (started) => started.close(),
  );
  let folder = '';
  let path = '';
  let tests = 0;
  let prefix = '';
  const storeOf = (options: Partial<ConstructorParameters<typeof ObjectStore>[0]> = {}) =>
    new ObjectStore({
      bucket: server.bucket,
      prefix,
      endpoint: proxy.url,
      region: 'us-east-1',
      ...server.key,
      ...options,
    });
  const put = (store = storeOf(), key = 'a=1/file') => store.putFile(key, path, CONTENT, signal);
  const objectAt = (key: string) => readFile(join(server.folder, prefix, key));
  const sent = (method: string) => proxy.requests.filter((each) => each.startsWith(`${method} `)).length;

  beforeEach(async () => {
    tests += 1;
    prefix = `test-${tests}/`;
    folder = await mkdtemp(join(tmpdir(), 'object-store-'));
    path = join(folder, 'file');
    await writeFile(path, DATA);
    proxy.requests.length = 0;
  });
  afterEach(async () => {
    proxy.heal();
    await rm(folder, { recursive: true });
  });

  it('stores a file, finds, lists, copies, fetches and removes it', async () => {
    const store = storeOf();
    expect(await store.holds('a=1/file', CONTENT, signal)).toBe(false);
    await put();
    expect((await objectAt('a=1/file')).equals(DATA)).toBe(true);
    expect(await store.holds('a=1/file', CONTENT, signal)).toBe(true);
    expect(await store.holds('a=1/file', contentOf(randomBytes(300_000)), signal)).toBe(false);
    await store.copy('a=1/file', '.former/file', signal);
    await store.putText('.owner', 'text & more\n', signal);
    expect(await store.readText('.owner', signal)).toBe('text & more\n');
    expect(await store.readText('absent', signal)).toBeNull();
    expect(await store.list('', signal)).toEqual([
      { key: '.former/file', bytes: CONTENT.bytes },
      { key: '.owner', bytes: 12 },
      { key: 'a=1/file', bytes: CONTENT.bytes },
    ]);
    const to = join(folder, 'fetched');
    expect(await store.fetchFile('.former/file', to, CONTENT, signal)).toBe(true);
    expect((await readFile(to)).equals(DATA)).toBe(true);
    expect(await store.fetchFile('absent', to, CONTENT, signal)).toBe(false);
    for (let times = 0; times < 2; times += 1) await store.remove('.former/file', signal);
    expect((await store.list('.former/', signal)).length).toBe(0);
  });

  it('lists more keys than one answer has', async () => {
    const many = join(server.folder, prefix, 'many');
    await mkdir(many, { recursive: true });
    const names = Array.from({ length: 1_001 }, (_, n) => `object ${String(n).padStart(4, '0')} & more`);
    for (const name of names) await writeFile(join(many, name), 'x');
    expect(await storeOf().list('many/', signal)).toEqual(names.map((name) => ({ key: `many/${name}`, bytes: 1 })));
  });

  it('sends a file once when the answer to its upload is lost', async () => {
    proxy.fail('lost', /^PUT/, 1);
    await put();
    expect([sent('PUT'), (await objectAt('a=1/file')).equals(DATA)]).toEqual([1, true]);
    await put();
    expect(sent('PUT')).toBe(1);
  });

  it('repeats an upload when the server answers 500 once, and reports the code when it always does', async () => {
    proxy.fail('error', /^PUT/, 1);
    await put();
    expect((await objectAt('a=1/file')).equals(DATA)).toBe(true);
    proxy.fail('error', /^PUT/);
    await expect(put(storeOf(), 'b')).rejects.toMatchObject({
      code: 'store_unavailable',
      message: 'the object store answered 500 InternalError to PUT b',
    });
  });

  it('refuses to store a file that is not the one of its digest', async () => {
    const other = contentOf(randomBytes(300_000));
    await expect(storeOf().putFile('c', path, other, signal)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringMatching(/answered 400 \w*Mismatch to PUT c/),
    });
    expect(sent('PUT')).toBe(1);
    await expect(objectAt('c')).rejects.toThrow('ENOENT');
  });

  it.each([-1, 1])('refuses to store a file whose size differs from the stated one by %i bytes', async (by) => {
    const stated = { ...CONTENT, bytes: CONTENT.bytes - by };
    await expect(storeOf().putFile('c', path, stated, signal)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: `the object store gets no c, because its file has no ${stated.bytes} bytes`,
    });
    expect(sent('PUT')).toBeLessThanOrEqual(1);
    await expect(objectAt('c')).rejects.toThrow('ENOENT');
  });

  it('replaces an object that has another content', async () => {
    const store = storeOf();
    await store.putText('a=1/file', 'other', signal);
    await put(store);
    expect((await objectAt('a=1/file')).equals(DATA)).toBe(true);
  });

  it.each(['half', 'changed'] as const)(
    'repeats a download when its body is %s, and never returns such a body',
    async (fault) => {
      const store = storeOf();
      await put(store);
      const to = join(folder, 'fetched');
      proxy.fail(fault, /^GET/, 1);
      expect(await store.fetchFile('a=1/file', to, CONTENT, signal)).toBe(true);
      expect((await readFile(to)).equals(DATA)).toBe(true);
      proxy.fail(fault, /^GET/);
      await expect(store.fetchFile('a=1/file', to, CONTENT, signal)).rejects.toMatchObject({
        code: 'store_unavailable',
      });
      proxy.heal();
      await store.putText('text', 'a longer text', signal);
      proxy.fail('half', /^GET/);
      await expect(store.readText('text', signal)).rejects.toMatchObject({ code: 'store_unavailable' });
    },
  );

  it('gives up when the server does not answer', async () => {
    proxy.fail('silence', /./);
    const store = storeOf({ silenceMs: 50 });
    await expect(put(store)).rejects.toMatchObject({
      code: 'store_unavailable',
      message: 'the object store sent no whole answer to HEAD in time',
    });
    await expect(store.list('', AbortSignal.timeout(20))).rejects.toMatchObject({ code: 'store_unavailable' });
  });

  it('names a missing bucket, a wrong key and a server that is gone, and no secret', async () => {
    const messages: string[] = [];
    const failing = async (options: Parameters<typeof storeOf>[0]) => {
      const error = await put(storeOf(options)).catch((thrown: Error) => thrown);
      messages.push(String((error as Error).message));
      expect(JSON.stringify([error, String((error as Error).stack)])).not.toContain(server.key.secretAccessKey);
    };
    await failing({ bucket: 'no-bucket' });
    await failing({ secretAccessKey: 'another secret' });
    await failing({ endpoint: 'http://127.0.0.1:1' });
    expect(messages).toEqual([
      'the object store has no bucket no-bucket, which a=1/file needs',
      'the object store answered 403 to HEAD a=1/file',
      'the object store refuses connections',
    ]);
  });

  it('reports an unknown key as a fault of the store, and no object as missing', async () => {
    await put();
    const store = storeOf({ accessKeyId: 'UNKNOWNKEY' });
    const target = join(folder, 'fetched');
    const code = { code: 'store_unavailable' };
    await expect(store.holds('a=1/file', CONTENT, signal)).rejects.toMatchObject(code);
    await expect(store.fetchFile('a=1/file', target, CONTENT, signal)).rejects.toMatchObject(code);
    await expect(store.readText('a=1/file', signal)).rejects.toMatchObject(code);
    await expect(store.list('', signal)).rejects.toMatchObject(code);
    await expect(store.remove('a=1/file', signal)).rejects.toMatchObject(code);
    expect((await objectAt('a=1/file')).equals(DATA)).toBe(true);
  });

  it('ends with the reason of a stop', async () => {
    const stop = new AbortController();
    proxy.fail('silence', /./);
    const waiting = storeOf().putFile('d', path, CONTENT, stop.signal);
    stop.abort(new Error('the process stops'));
    await expect(waiting).rejects.toThrow('the process stops');
    await expect(access(join(server.folder, prefix))).rejects.toThrow('ENOENT');
  });
});
