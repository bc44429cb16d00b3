import { afterEach, describe, expect, it } from 'vitest';
import { createAuthority } from '../../../sim/receiver-tls.ts';
import { createGuardedAgent } from '../../../src/webhooks/guarded-agent.ts';
import { allowing } from '../../support/address-rules.ts';
import { startTlsServer, testAuthority } from '../../support/tls.ts';
import { fixedResolver } from './deliveries.ts';

const MAX_ANSWER_BYTES = 256 * 1024;

/** An address without a listener on the server's port. */
const NOBODY = Array.from({ length: 8 }, (_, index) => `127.0.1.${index + 1}`);

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n';
const PROVISIONAL = 'HTTP/1.1 102 Processing\r\n\r\n';
/** Just below the limit of an answer. */
const MUCH = PROVISIONAL.repeat(Math.floor((MAX_ANSWER_BYTES - OK.length) / PROVISIONAL.length));

/** The agent alone, because the sender's check of the URL text would hide its errors. */
const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function setUp(allow?: string, caPem?: string, answer = OK) {
  const server = await startTlsServer({
    hosts: ['127.0.0.1', 'hooks.test', 'eighth.test', 'ninth.test'],
    onRequest: (socket) => socket.write(answer),
  });
  closers.push(server.close);
  const agent = createGuardedAgent({
    resolver: fixedResolver({
      'hooks.test': ['127.0.0.1'],
      'empty.test': [],
      'eighth.test': [...NOBODY.slice(0, 7), '127.0.0.1'],
      'ninth.test': [...NOBODY, '127.0.0.1'],
    }),
    extraCaPem: caPem ?? (await testAuthority()).caPem,
    connectTimeoutMs: 5000,
    connectionsPerOrigin: 16,
    ...(allow === undefined ? {} : { rules: allowing(allow) }),
  });
  closers.push(() => agent.destroy());
  const request = (host: string, protocol = 'https') =>
    agent.request({ origin: `${protocol}://${host}:${server.port}`, path: '/', method: 'GET' });
  return { server, request };
}

describe('guarded agent', () => {
  it.each(['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]', '[::7f00:1]', '0x7f.1'])(
    'opens no connection to %s, encrypted or not',
    async (host) => {
      const { server, request } = await setUp();
      await expect(request(host)).rejects.toMatchObject({ code: 'blocked_address', retryable: false });
      await expect(request(host, 'http')).rejects.toMatchObject({ code: 'blocked_address' });
      expect(server.connections()).toBe(0);
    },
  );

  it('gives a forbidden address of a name the code of a missing name, and opens no connection', async () => {
    const { server, request } = await setUp();
    const cause = expect.objectContaining({ code: 'blocked_address' });
    await expect(request('hooks.test')).rejects.toMatchObject({ code: 'dns_error', retryable: true, cause });
    await expect(request('hooks.test', 'http')).rejects.toMatchObject({ code: 'dns_error', cause });
    expect(server.connections()).toBe(0);
  });

  it('does not reveal the address of a name', async () => {
    const { request } = await setUp();
    const error: unknown = await request('hooks.test').catch((reason: unknown) => reason);
    expect(String(error)).not.toMatch(/127|hooks/);
  });

  it('reports a name that could not be resolved, with the cause', async () => {
    const { request } = await setUp('127.0.0.0/8');
    const cause = expect.objectContaining({ message: 'queryA ENOTFOUND' });
    await expect(request('nowhere.test')).rejects.toMatchObject({ code: 'dns_error', retryable: true, cause });
  });

  it('ends an endless answer, and counts each answer separately', async () => {
    const endless = await setUp('127.0.0.0/8', undefined, MUCH + MUCH);
    await expect(endless.request('127.0.0.1')).rejects.toMatchObject({ code: 'answer_too_long', retryable: true });
    const long = await setUp('127.0.0.0/8', undefined, MUCH + OK);
    for (let turn = 0; turn < 3; turn += 1) {
      const response = await long.request('127.0.0.1');
      await response.body.dump();
      expect(response.statusCode).toBe(200);
    }
  });

  it.each([
    ['words only', /contains no PEM certificate/],
    ['-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----', /unreadable certificate/],
  ])('rejects the extra text %j', async (caPem, message) => {
    await expect(setUp('127.0.0.0/8', caPem)).rejects.toThrow(message);
  });

  it('treats a name without an address as forbidden', async () => {
    const { request } = await setUp('127.0.0.0/8');
    await expect(request('empty.test')).rejects.toMatchObject({ code: 'dns_error' });
  });

  it('tries the first eight addresses of a name', async () => {
    const { server, request } = await setUp('127.0.0.0/8');
    const response = await request('eighth.test');
    await response.body.dump();
    expect(response.statusCode).toBe(200);
    await expect(request('ninth.test')).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(server.connections()).toBe(1);
  });

  it('trusts every certificate of the extra text, beside the default roots', async () => {
    const stranger = await createAuthority();
    const { request } = await setUp('127.0.0.0/8', `${stranger.caPem}\nsome words\n${(await testAuthority()).caPem}`);
    expect((await request('127.0.0.1')).statusCode).toBe(200);
    const { request: untrusting } = await setUp('127.0.0.0/8', stranger.caPem);
    await expect(untrusting('127.0.0.1')).rejects.toThrow(/certificate|issuer/);
  });

  it('connects to ranges that the operator allows', async () => {
    const { server, request } = await setUp('127.0.0.0/8');
    for (const host of ['127.0.0.1', 'hooks.test']) {
      const response = await request(host);
      await response.body.dump();
      expect(response.statusCode).toBe(200);
    }
    expect(server.requests()).toBe(2);
  });
});
