import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { deriveKey, parseSecretsKeys, type SecretKey } from '../../../../src/domain/values/secret-keys.ts';

function problemsOf(ring: string): string[] {
  try {
    parseSecretsKeys(ring);
  } catch (error) {
    expect(error).toMatchObject({ code: 'invalid_secrets_keys', message: expect.stringMatching(/^SECRETS_KEYS: /) });
    return (error as Error).message.slice('SECRETS_KEYS: '.length).split('; ');
  }
  throw new Error('nothing was thrown');
}

const k1: SecretKey = { kid: 'k1', key: Buffer.alloc(32, 1) };
const k2: SecretKey = { kid: 'k2', key: Buffer.alloc(32, 2) };

describe('parseSecretsKeys', () => {
  const text = (kid: string, bytes = 32) => `${kid}:${Buffer.alloc(bytes, 200).toString('base64')}`;

  it('keeps the order and ignores spaces', () => {
    const keys = parseSecretsKeys(` ${text('k2')} , ${text('k-1_a')}`);
    expect(keys.map(({ kid, key }) => [kid, key.length])).toEqual([
      ['k2', 32],
      ['k-1_a', 32],
    ]);
  });

  it('lists every problem at once and never shows a key', () => {
    const bare = Buffer.alloc(32, 201).toString('base64');
    const problems = problemsOf([bare, text('k1', 31), text('a.b'), text('k1'), 'k5:*** junk ***', ''].join(','));
    expect(problems).toEqual([
      'entry 1 is not kid:base64',
      'entry 2 has 31 bytes, not 32',
      'entry 3 has a key id that is not 1 to 32 letters, digits, "_" or "-"',
      'entry 4 repeats the key id of entry 2',
      'entry 5 is not canonical base64',
      'entry 6 is not kid:base64',
    ]);
    for (const part of [bare, bare.slice(0, 12), Buffer.alloc(31, 200).toString('base64'), 'junk']) {
      expect(problems.join()).not.toContain(part);
    }
  });

  it('accepts key ids of 1 to 32 characters', () => {
    const longest = 'k'.repeat(32);
    expect(parseSecretsKeys(`k : ${text('').slice(1)},${text(longest)}`).map(({ kid }) => kid)).toEqual(['k', longest]);
    for (const kid of ['', `${longest}k`, 'a b', 'é']) {
      expect(problemsOf(text(kid))).toEqual([expect.stringContaining('entry 1 has a key id')]);
    }
  });

  it.each(['', '   '])('rejects %j as a ring without a key', (empty) => {
    expect(problemsOf(empty)[0]).toContain('no key');
  });
});

describe('deriveKey', () => {
  it('is stable, differs by purpose and by key, and is never the key itself', () => {
    const cursor = deriveKey([k1, k2], 'cursor');
    expect(cursor).toHaveLength(32);
    expect(deriveKey([k1], 'cursor')).toEqual(cursor);
    expect(deriveKey([k1], 'session')).not.toEqual(cursor);
    expect(deriveKey([k2, k1], 'cursor')).not.toEqual(cursor);
    expect(cursor.equals(k1.key)).toBe(false);
    expect(() => deriveKey([], 'cursor')).toThrow(/no key/);
  });

  it('is always HKDF-SHA256: another derivation would end every session and invalidate every cursor', () => {
    const prk = createHmac('sha256', 'oddswire').update(k1.key).digest();
    expect(deriveKey([k1], 'cursor')).toEqual(createHmac('sha256', prk).update('cursor\u0001').digest());
  });
});
