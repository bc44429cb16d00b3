import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { OddswireError } from '../../../../src/domain/values/errors.ts';
import { startTestApi } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const { api, client } = withApi();

const json = () => ({ 'X-API-Key': client.key, 'Content-Type': 'application/json' });
const post = (body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = json(), path = '/v1/alerts') =>
  api.call(path, { method: 'POST', headers, body });

/** Sends raw bytes, which no HTTP client would send, and returns the whole answer. */
function raw(request: string | Buffer): Promise<string> {
  const { port, hostname } = new URL(api.url);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(request));
    const chunks: Buffer[] = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('error', reject);
    socket.on('close', () => resolve(Buffer.concat(chunks).toString('utf8')));
  });
}

describe('every error', () => {
  it('has the envelope, with the request id in header and meta', async () => {
    const answer = await api.call('/nowhere');
    expect(answer.status).toBe(404);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(answer.body).toEqual({
      success: false,
      error: { code: 'not_found', message: expect.any(String) },
      meta: { request_id: answer.headers.get('x-request-id'), timestamp: Math.floor(api.clock.nowMs / 1000) },
    });
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
  });

  it('lists all faults of the input', async () => {
    const path = '/v1/all/markets?limit=0&status=weird&category=&limit=7';
    const answer = await client.market(path);
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request']);
    expect(answer.body.error.details?.map((detail) => detail.path).sort()).toEqual([
      'category',
      'limit',
      'limit',
      'status',
    ]);
    for (const { message } of answer.body.error.details ?? []) expect(message).not.toBe('');
  });
});

describe('the messages of faults', () => {
  it('hint at seconds when a time looks like milliseconds', async () => {
    const path = '/v1/all/markets/x/candles';
    for (const [query, name] of [
      ['start=1764000000000', 'start'],
      ['end=1764000000000', 'end'],
    ]) {
      const { body } = await client.market(`${path}?${query}`);
      expect(body.error.details).toEqual([
        {
          path: name,
          message: 'must be a whole number from 0 to 253402300799; this looks like milliseconds: divide it by 1000',
        },
      ]);
    }
    for (const text of ['9999999999999999', 'x', '-5']) {
      const { body } = await client.market(`${path}?start=${text}`);
      expect(body.error.details?.[0]?.message).toBe('must be a whole number from 0 to 253402300799');
    }
  });

  it.each([
    ['/v1/alerts', '[]', 'body', 'must be an object'],
    ['/v1/alerts', '"text"', 'body', 'must be an object'],
    ['/v1/alerts', 'null', 'body', 'must be an object'],
    ['/v1/webhooks', '7', 'body', 'must be an object'],
    ['/v1/webhooks', '{"url":"https://a.example.com/","events":{}}', 'events', 'must be an array'],
    ['/v1/wallets', 'true', 'body', 'must be an object'],
    ['/v1/webhooks/wh_1/recover', '[1]', 'body', 'must be an object'],
  ])('are plain sentences for POST %s with %s', async (path, body, at, message) => {
    const answer = await post(body, json(), path);
    expect([answer.status, answer.body.error.details]).toEqual([400, [{ path: at, message }]]);
  });
});

describe('a parameter of another route', () => {
  it.each([
    ['/v1/all/markets/x/volume?interval=1d', 'interval', 'start, end, outcome_id, window'],
    ['/v1/all/markets/x/candles?window=1d&start=0', 'window', 'start, end, outcome_id, interval, fill'],
    ['/v1/venues?limit=1', 'limit', 'none'],
  ])('is 400 on %s', async (path, name, own) => {
    const answer = await client.market(path);
    expect([answer.status, answer.body.error.details]).toEqual([
      400,
      [{ path: name, message: `is not a parameter of this route, which takes ${own}` }],
    ]);
  });

  it('is 400 on account routes', async () => {
    for (const [method, path] of [
      ['GET', '/v1/webhooks?status=active'],
      ['GET', '/v1/alerts/alert_1?status=active'],
      ['DELETE', '/v1/wallets/wal_1?venue=solana'],
      ['POST', '/v1/webhooks/wh_1/recover?since=2026-01-01'],
    ] as const) {
      const answer = await client.account(method, path, method === 'POST' ? {} : undefined);
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 400, 'invalid_request']);
    }
  });
});

describe('X-Request-Id', () => {
  it('is echoed when it is valid', async () => {
    const headers = { 'X-Request-Id': 'my-id.42_A' };
    const answer = await client.market('/v1/venues', { headers });
    expect(answer.headers.get('x-request-id')).toBe('my-id.42_A');
    expect(answer.body.meta.request_id).toBe('my-id.42_A');
  });

  it.each(['has space', 'x'.repeat(129), 'quote"', 'é'])('is replaced when it is %j', async (id) => {
    const answer = await client.market('/v1/venues', { headers: { 'X-Request-Id': id } });
    expect(answer.headers.get('x-request-id')).toMatch(/^req_/);
  });
});

describe('methods and paths', () => {
  it.each([
    ['DELETE', '/v1/webhooks', 'GET, HEAD, POST'],
    ['PATCH', '/v1/webhooks/wh_1', 'DELETE, GET, HEAD, PUT'],
    ['PUT', '/v1/alerts/alert_1', 'DELETE, GET, HEAD, PATCH'],
    ['GET', '/v1/webhooks/wh_1/test', 'POST'],
    ['POST', '/v1/all/markets', 'GET, HEAD'],
    ['OPTIONS', '/v1/venues', 'GET, HEAD'],
    ['POST', '/health/live', 'GET, HEAD'],
  ])('%s %s is 405 with Allow: %s', async (method, path, allow) => {
    const answer = await api.call(path, { method });
    expect([answer.status, answer.body.error.code, answer.headers.get('allow')]).toEqual([
      405,
      'method_not_allowed',
      allow,
    ]);
  });

  it.each(['/', '/v1', '/v1/', '/v2/venues', '/V1/venues', '/v1/venues/x', '/metrics', '/ops/queues', '/ops'])(
    '%s is 404',
    async (path) => {
      const answer = await api.call(path);
      expect([answer.status, answer.body.error.code]).toEqual([404, 'not_found']);
    },
  );
});

describe('a body', () => {
  const valid = '{"tokenMint":"t","condition":"above","price":1}';

  it.each(['', '{', '[1,]', '{"a":1}}', 'nope', '\u{feff}{', "{'a':1}"])('of %j is invalid_json', async (body) => {
    const answer = await post(body);
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_json']);
  });

  it('must be UTF-8', async () => {
    const answer = await post(new Uint8Array([0x22, 0xff, 0xfe, 0x22]));
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_json']);
  });

  it.each([
    'text/plain',
    'application/xml',
    'application/json; charset=latin1',
    'multipart/form-data',
    'application/jsonp',
  ])('of type %s is 415', async (type) => {
    const answer = await post(valid, { ...json(), 'Content-Type': type });
    expect([answer.status, answer.body.error.code]).toEqual([415, 'unsupported_media_type']);
  });

  it('of type application/json is accepted in all spellings, but not compressed', async () => {
    for (const type of ['application/json', 'Application/JSON; charset=UTF-8', 'application/json;charset="utf-8"']) {
      expect((await post(valid, { ...json(), 'Content-Type': type })).status).toBe(201);
    }
    expect((await post(valid, { ...json(), 'Content-Encoding': 'gzip' })).status).toBe(415);
  });

  it('may have at most 64 KiB, with or without Content-Length', async () => {
    const fits = valid.padEnd(64 * 1024, ' ');
    expect((await post(fits)).status).toBe(201);
    const announced = await post(`${fits} `);
    expect([announced.status, announced.body.error.code]).toEqual([413, 'payload_too_large']);
    const chunk = 'x'.repeat(40_000);
    const chunked = await raw(
      `POST /v1/alerts HTTP/1.1\r\nHost: x\r\nX-API-Key: ${client.key}\r\nContent-Type: application/json\r\n` +
        `Transfer-Encoding: chunked\r\n\r\n9c40\r\n${chunk}\r\n9c40\r\n${chunk}\r\n`,
    );
    expect(chunked).toMatch(/^HTTP\/1\.1 413 /);
  });

  it.each([
    ['a U+0000 value', '{"tokenMint":"a\\u0000b","condition":"above","price":1}', 'tokenMint'],
    ['a lone surrogate value', '{"tokenMint":"a\\ud800b","condition":"above","price":1}', 'tokenMint'],
    ['a U+0000 field name', '{"a\\u0000":1}', 'body'],
    ['a nested lone surrogate', '{"x":[{"y":"\\udfff"}]}', 'x.0.y'],
  ])('with %s is rejected', async (_name, body, path) => {
    const answer = await post(body);
    expect([answer.status, answer.body.error.code, answer.body.error.details?.[0]?.path]).toEqual([
      400,
      'invalid_request',
      path,
    ]);
  });

  it.each([
    ['deep brackets', `${'['.repeat(30_000)}${']'.repeat(30_000)}`],
    ['deep objects', `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`],
    ['__proto__', '{"__proto__":{"admin":true},"tokenMint":"t","condition":"above","price":1}'],
    ['constructor', '{"constructor":{"prototype":1},"tokenMint":"t","condition":"above","price":1}'],
    ['toString', '{"toString":1,"tokenMint":"t","condition":"above","price":1}'],
    ['many unknown fields', JSON.stringify(Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`f${i}`, i])))],
    ['a huge number', `{"tokenMint":"t","condition":"above","price":${'9'.repeat(5_000)}}`],
    ['an array for a string', '{"tokenMint":["t"],"condition":{"above":1},"price":[1]}'],
  ])('with %s is 400', async (_name, body) => {
    const answer = await post(body);
    expect([answer.status, answer.body.error.code]).toEqual([400, 'invalid_request']);
    expect(answer.text).not.toMatch(/node_modules|at .*\.ts/);
  });
});

describe('a hostile request', () => {
  const paths = [
    '/v1/all/markets/%00',
    '/v1/all/markets/a%00b/prices',
    '/v1/all/markets/%ED%A0%80',
    '/v1/all/markets/%',
    '/v1/all/markets/%zz',
    '/v1/all/markets/%C0%AF',
    '/v1/%00/markets',
    '/v1/all/markets?q=%00',
    '/v1/all/markets?q=%ED%A0%80',
    '/v1/all/markets?q=%',
    '/v1/all/markets?category=%FF',
    '/v1/all/markets?limit=1e2',
    '/v1/all/markets?limit=-1',
    '/v1/all/markets?limit=1.5',
    '/v1/all/markets?limit=99999999999999999999',
    '/v1/all/markets?limit=%20 5',
    '/v1/all/markets?limit=',
    '/v1/all/markets?status=',
    '/v1/all/markets?status=__proto__',
    '/v1/all/markets?status=constructor',
    `/v1/all/markets?q=${'a'.repeat(201)}`,
    `/v1/all/markets?cursor=${'A'.repeat(2_000)}`,
    '/v1/all/markets?cursor=..%2F..',
    '/v1/all/markets/x/candles?interval=2h',
    '/v1/all/markets/x/candles?interval=constructor',
    '/v1/all/markets/x/candles?start=5&end=5',
    '/v1/all/markets/x/candles?start=6&end=5',
    '/v1/all/markets/x/candles?start=-1',
    '/v1/all/markets/x/candles?end=253402300800',
    '/v1/all/markets/x/candles?end=0',
    '/v1/all/markets/x/candles?start=99999999999',
    '/v1/all/markets/x/candles?interval=1m&start=0',
    '/v1/all/markets/x/candles?fill=zero',
    '/v1/all/markets/x/snapshots?interval=1w',
    '/v1/all/markets/x/volume?window=7d',
    '/v1/all/markets/x/orderbook?depth=0',
    '/v1/all/markets/x/orderbook?depth=201',
    '/v1/all/markets/x/trades?direction=up',
    '/v1/all/markets/x/trades?start=2024-01-01',
    '/v1/all/markets/x/trades?start=7&end=7',
  ];

  it.each(paths)('GET %s is 400', async (path) => {
    const answer = await client.market(path);
    expect([path, answer.status]).toEqual([path, 400]);
    expect(['invalid_request', 'invalid_cursor']).toContain(answer.body.error.code);
  });

  it.each([
    "/v1/all/markets/' OR 1=1 --",
    '/v1/all/markets/..%2f..%2fetc',
    '/v1/all/markets/%F0%9F%92%A9',
    `/v1/all/markets/${'x'.repeat(8_000)}`,
    '/v1/__proto__/markets',
    '/v1/constructor/markets/x',
  ])('GET %s is 404', async (path) => {
    expect((await client.market(encodeURI(path).replaceAll('%25', '%'))).status).toBe(404);
  });

  it.each([
    ['a NUL in the path', 'GET /v1/\0 HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['a NUL in a header', 'GET /v1/venues HTTP/1.1\r\nHost: x\r\nX-Request-Id: a\0b\r\n\r\n', 400],
    ['text that is not HTTP', 'hello\r\n\r\n', 400],
    ['endless headers', `GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(20_000)}\r\n\r\n`, 431],
    ['a broken URL as the target', 'GET http://[::1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400],
    ['a URL without a host', 'GET http:// HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400],
    ['a whole URL', 'GET http://x/v1/venues HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400],
    ['an asterisk', 'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 400],
    ['two lengths', 'POST /v1/alerts HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n', 400],
  ])('with %s is answered in the envelope', async (_name, request, status) => {
    const answer = await raw(request);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject({ success: false });
  });

  it.each([
    [
      'path',
      (bytes: Buffer) => [
        Buffer.from('GET /v1/'),
        bytes,
        Buffer.from(' HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
      ],
    ],
    [
      'query',
      (bytes: Buffer) => [
        Buffer.from('GET /v1/venues?q='),
        bytes,
        Buffer.from(' HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'),
      ],
    ],
    [
      'header',
      (bytes: Buffer) => [
        Buffer.from('GET /v1/venues HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Any: '),
        bytes,
        Buffer.from('\r\n\r\n'),
      ],
    ],
  ])('with a raw lone surrogate in the %s is 400', async (_where, request) => {
    expect(await raw(Buffer.concat(request(Buffer.from([0xed, 0xa0, 0x80]))))).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe('the API without a dependency', () => {
  it('is alive but not ready, and names the missing dependency', async () => {
    const lame = await startTestApi({
      dependencies: [
        { name: 'database', check: async () => undefined },
        { name: 'queue store', check: () => Promise.reject(new OddswireError('unavailable', 'unavailable')) },
      ],
    });
    try {
      expect((await lame.call('/health/live')).body).toEqual({ success: true, data: { status: 'live' } });
      const answer = await lame.call('/health/ready');
      expect([answer.status, answer.body.error.code, answer.headers.get('retry-after')]).toEqual([
        503,
        'not_ready',
        '2',
      ]);
      expect(answer.body.error.details).toEqual([{ path: 'queue store', message: 'not available' }]);
    } finally {
      await lame.close();
    }
  });

  it('answers 503 with Retry-After while the database is unavailable, and recovers afterwards', async () => {
    const lost = await startTestApi({}, { behindProxy: true });
    try {
      const owner = await lost.client();
      expect((await owner.market('/v1/venues')).status).toBe(200);
      await lost.proxy?.cut();
      for (const answer of [
        await owner.market('/v1/venues'),
        await owner.account('POST', '/v1/alerts', { tokenMint: 't', condition: 'above', price: 1 }),
        await lost.call('/v1/venues', { headers: { Authorization: 'Bearer a-key-without-a-look-up' } }),
      ]) {
        expect([answer.status, answer.body.error.code]).toEqual([503, 'not_ready']);
        expect(answer.headers.get('retry-after')).toBe('2');
      }
      await lost.proxy?.reopen();
      expect((await owner.market('/v1/venues')).status).toBe(200);
    } finally {
      await lost.close();
    }
  });

  it('is ready when nothing is missing', async () => {
    expect((await api.call('/health/ready')).body).toEqual({ success: true, data: { status: 'ready' } });
  });
});
