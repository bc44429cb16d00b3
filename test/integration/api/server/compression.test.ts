import { request } from 'node:http';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { aStoredMarket } from '../../../factories/stored-market.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

let path: string;
beforeAll(async () => {
  const { marketId } = await aStoredMarket(api.db, { description: 'A long description. '.repeat(200) });
  path = `/v1/all/markets/${marketId}`;
});

interface Raw {
  status: number | undefined;
  headers: Record<string, string | string[] | undefined>;
  bytes: Buffer;
}

/** The raw bytes of an answer, because fetch would decompress them. */
function raw(
  target: string,
  encoding: string | undefined,
  options: { method?: string; etag?: string } = {},
): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const headers = {
      Authorization: `Bearer ${client.key}`,
      ...(encoding !== undefined && { 'Accept-Encoding': encoding }),
      ...(options.etag !== undefined && { 'If-None-Match': options.etag }),
    };
    request(`${api.url}${target}`, { method: options.method ?? 'GET', headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode, headers: response.headers, bytes: Buffer.concat(chunks) }),
      );
    })
      .on('error', reject)
      .end();
  });
}

const dataOf = (bytes: Buffer) => (JSON.parse(bytes.toString('utf8')) as { data: unknown }).data;

describe('compression', () => {
  it('sends the encoding that the client prefers, with one ETag and Vary', async () => {
    const plain = await raw(path, undefined);
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.headers['vary']).toBe('Accept-Encoding, Authorization');
    const etag = plain.headers['etag'];
    expect(etag).toMatch(/^W\//);
    const cases = [
      ['br', 'br', brotliDecompressSync],
      ['gzip, deflate, br', 'br', brotliDecompressSync],
      ['gzip', 'gzip', gunzipSync],
      ['br;q=0.1, gzip;q=0.9', 'gzip', gunzipSync],
      ['*', 'gzip', gunzipSync],
      ['deflate', undefined, (bytes: Buffer) => bytes],
      ['identity', undefined, (bytes: Buffer) => bytes],
      // Without an acceptable encoding the answer is plain text and not a failure.
      ['identity;q=0', undefined, (bytes: Buffer) => bytes],
      ['br;q=0, gzip;q=0, *;q=0', undefined, (bytes: Buffer) => bytes],
      ['nonsense;;q=x', undefined, (bytes: Buffer) => bytes],
    ] as const;
    for (const [accepted, encoding, decode] of cases) {
      const answer = await raw(path, accepted);
      expect([accepted, answer.status, answer.headers['content-encoding']]).toEqual([accepted, 200, encoding]);
      expect(answer.headers['etag']).toBe(etag);
      expect(answer.headers['vary']).toBe('Accept-Encoding, Authorization');
      expect(dataOf(decode(answer.bytes))).toEqual(dataOf(plain.bytes));
      if (encoding) expect(answer.bytes.length).toBeLessThan(plain.bytes.length / 4);
    }
  });

  it('skips small answers and answers without a body', async () => {
    const small = await raw('/v1/all/markets?q=nothing-is-like-this', 'br');
    expect([small.status, small.headers['content-encoding']]).toEqual([200, undefined]);
    const { headers } = await raw(path, 'br');
    const unchanged = await raw(path, 'br', { etag: String(headers['etag']) });
    expect([unchanged.status, unchanged.bytes.length, unchanged.headers['content-encoding']]).toEqual([
      304,
      0,
      undefined,
    ]);
    expect(unchanged.headers['etag']).toBe(headers['etag']);
    const head = await raw(path, 'br', { method: 'HEAD' });
    expect([head.status, head.bytes.length]).toEqual([200, 0]);
    expect(head.headers['etag']).toBe(headers['etag']);
  });

  it('keeps failures readable', async () => {
    const answer = await raw('/v1/all/markets/nope', 'br, gzip');
    expect([answer.status, answer.headers['vary']]).toEqual([404, 'Accept-Encoding']);
    expect(JSON.parse(answer.bytes.toString('utf8'))).toMatchObject({ success: false });
  });
});
