import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isStorableText } from '../../../../src/domain/values/text.ts';
import {
  headersOfStored,
  type ReceivedHeaders,
  responseHeaders,
  secretsOf,
  secretsOfHeader,
  storedHeaders,
} from '../../../../src/domain/webhooks/response-headers.ts';
import { anyCharacters } from '../../../factories/texts.ts';

const kept = (received: ReceivedHeaders, secrets: readonly string[] = []) => responseHeaders(received, secrets).headers;

const MAX_HEADERS_BYTES = 4_096;

describe('responseHeaders', () => {
  it('keeps names in lower case, and one entry per value of a repeated header', () => {
    expect(responseHeaders({ 'Content-Type': 'text/plain', via: ['1.1 a', '1.1 b'] }, [])).toEqual({
      headers: [
        ['content-type', 'text/plain'],
        ['via', '1.1 a'],
        ['via', '1.1 b'],
      ],
      removed: 0,
      omitted: 0,
    });
  });

  it.each([
    'set-cookie',
    'Set-Cookie2',
    'cookie',
    'authorization',
    'Proxy-Authorization',
    'www-authenticate',
    'proxy-authenticate',
    'authentication-info',
    'x-auth',
    'x-api-key',
    'apikey',
    'x-amz-security-token',
    'x-session-id',
    'x-csrf',
    'webhook-signature',
    'x-webhook-signature',
    'x-password-hint',
  ])('removes %s', (name) => {
    expect(responseHeaders({ [name]: ['a', 'b'], date: 'now' }, [])).toEqual({
      headers: [['date', 'now']],
      removed: 2,
      omitted: 0,
    });
  });

  it.each(['access-control-allow-credentials', 'x-author', 'x-request-id', 'retry-after', 'server'])(
    'keeps %s',
    (name) => {
      expect(kept({ [name]: 'true' })).toEqual([[name, 'true']]);
    },
  );

  it.each([
    ['a known secret', { 'x-echo': 'got the-known-secret.' }],
    ['a known secret in its name', { 'x-The-Known-Secret': '1' }],
    ['credentials', { 'x-echo': 'Bearer abcdefgh' }],
    ['credentials of basic authentication', { 'x-upstream': 'basic dXNlcjpwYXNz' }],
  ])('removes a header with %s', (_, received) => {
    expect(responseHeaders(received, ['the-known-secret'])).toEqual({ headers: [], removed: 1, omitted: 0 });
  });

  it('ignores known texts below eight characters, which occur by chance', () => {
    expect(kept({ 'content-length': '12' }, ['', '1', '12'])).toEqual([['content-length', '12']]);
  });

  it.each([
    ['location', 'https://user:pw@a.test/login?token=secret#x', 'https://a.test/login?…'],
    ['location', '/login?next=%2F', '/login?…'],
    ['content-location', '/0123456789abcdef0/x', '/0123…/x'],
    ['link', '<https://a.test/x?key=1>; rel="next"', '<https://a.test/x?…>; rel="next"'],
    ['report-to', '{"url":"https://a.test/r?s=abc"}', '{"url":"https://a.test/r?…"}'],
    ['location', 'myapp://cb?token=secret', 'myapp://cb?…'],
    ['refresh', '0;url=/cb?token=secret', '0;url=/cb?…'],
    ['link', '</a?k=secret>; rel=next', '</a?…>; rel=next'],
    ['server', 'x/1 (y?)', 'x/1 (y?)'],
  ])('stores %s: %s without its query', (name, value, shown) => {
    expect(kept({ [name]: value })).toEqual([[name, shown]]);
  });

  it('reads bytes as UTF-8 where they are, else as Latin-1', () => {
    const bytes = (text: string) => Buffer.from(text, 'utf8').toString('latin1');
    expect(kept({ a: bytes('Grüße 🎲'), b: 'caf\u00e9', c: '\u0000x\u0007\ty\u007f' })).toEqual([
      ['a', 'Grüße 🎲'],
      ['b', 'café'],
      ['c', '\ufffdx\ufffd\ty\ufffd'],
    ]);
  });

  it('omits whole headers behind 4 KiB, and keeps smaller ones after them', () => {
    const received = { a: 'x'.repeat(3_000), b: 'y'.repeat(3_000), c: 'z', d: ['w'.repeat(5_000)] };
    const result = responseHeaders(received, []);
    expect(result.headers.map(([name]) => name)).toEqual(['a', 'c']);
    expect(result.omitted).toBe(2);
  });

  it('gives a text of at most 4 KiB that Postgres can store, and counts each header once, for all names and values', () => {
    const anyText = fc.oneof(
      anyCharacters(60),
      fc.string({ maxLength: 3_000 }),
      fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 }).map((codes) => String.fromCharCode(...codes)),
      fc.constantFrom('__proto__', 'constructor', 'set-cookie', 'the-known-secret', 'http://[', 'https://a?b'),
    );
    const anyValue = fc.oneof(anyText, fc.array(anyText, { maxLength: 40 }));
    const anyHeaders = fc
      .array(fc.tuple(anyText, anyValue), { maxLength: 60 })
      .map((pairs) => Object.fromEntries(pairs));
    fc.assert(
      fc.property(anyHeaders, (received) => {
        const result = responseHeaders(received, ['the-known-secret']);
        const text = storedHeaders(result);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(MAX_HEADERS_BYTES);
        expect(isStorableText(text)).toBe(true);
        expect(headersOfStored(text)).toEqual(result);
        expect(text).not.toContain('the-known-secret');
        const count = Object.values(received).reduce(
          (sum, value) => sum + (typeof value === 'string' ? 1 : value.length),
          0,
        );
        expect(result.headers.length + result.removed + result.omitted).toBe(count);
      }),
    );
  });
});

it('removes a header that repeats a known text as UTF-8', () => {
  const value = Buffer.from('geheim: Grüße-von-mir', 'utf8').toString('latin1');
  expect(responseHeaders({ 'x-echo': value }, ['Grüße-von-mir']).removed).toBe(1);
});

describe('secretsOfHeader', () => {
  it('lists the value, its words, and the pair and the password of Basic', () => {
    expect(secretsOfHeader('Bearer s3cr3ttoken')).toContain('s3cr3ttoken');
    const pair = Buffer.from('me:pass:word').toString('base64');
    expect(secretsOfHeader(`Basic ${pair}`)).toEqual(expect.arrayContaining([pair, 'me:pass:word', 'pass:word']));
  });
});

describe('secretsOf', () => {
  it('lists the user, the query and the long segments of an address', () => {
    const url = new URL('https://me:pw@a.test/hooks/T0123456789abcdef0?key=value-1');
    expect(secretsOf(url)).toEqual(['me', 'pw', '?key=value-1', 'value-1', 'T0123456789abcdef0']);
  });
});
