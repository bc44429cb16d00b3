import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { deriveKey, parseSecretsKeys, type SecretKey, SecretsKeysError } from '../../../src/domain/secret-keys.ts';
import { createSecretBox, SecretCorruptError, SecretKeyMissingError } from '../../../src/webhooks/secret-box.ts';

const k1: SecretKey = { kid: 'k1', key: randomBytes(32) };
const k2: SecretKey = { kid: 'k2', key: randomBytes(32) };

describe('secret box', () => {
  it('law: opens what it sealed, for any text and owner', () => {
    const box = createSecretBox([k1]);
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (plain, aad) => {
        expect(box.open(box.seal(plain, aad), aad)).toBe(plain);
      }),
    );
  });

  it('writes the documented form, a new one each time, without the plain text', () => {
    const box = createSecretBox([k2, k1]);
    const sealed = box.seal('whsec_plain', 'wh_1');
    expect(sealed).toMatch(/^v1\.k2\.[\w-]{16}\.[\w-]{22}\.[\w-]+$/);
    expect(box.seal('whsec_plain', 'wh_1')).not.toBe(sealed);
    expect(Buffer.from(sealed.split('.')[4] ?? '', 'base64url').toString('latin1')).not.toContain('plain');
  });

  it('refuses a value that was moved to another row', () => {
    const box = createSecretBox([k1]);
    expect(() => box.open(box.seal('secret', 'wh_1'), 'wh_2')).toThrow(SecretCorruptError);
  });

  it('refuses a value sealed with other bytes under the same key id', () => {
    const sealed = createSecretBox([k1]).seal('secret', 'wh_1');
    expect(() => createSecretBox([{ kid: 'k1', key: k2.key }]).open(sealed, 'wh_1')).toThrow(SecretCorruptError);
  });

  it('rotates: the new first key seals, the old one still opens', () => {
    const old = createSecretBox([k1]).seal('secret', 'wh_1');
    const rotated = createSecretBox([k2, k1]);
    expect(rotated.open(old, 'wh_1')).toBe('secret');
    expect(rotated.seal('secret', 'wh_1').split('.')[1]).toBe('k2');
  });

  it('calls a missing key retryable and a corrupt value not, neither showing anything secret', () => {
    const sealed = createSecretBox([k1]).seal('secret', 'wh_1');
    const missing = thrownBy(() => createSecretBox([k2]).open(sealed, 'wh_1'));
    expect(missing).toBeInstanceOf(SecretKeyMissingError);
    expect(missing).toMatchObject({ code: 'secret_key_missing', retryable: true, kid: 'k1' });
    const corrupt = thrownBy(() => createSecretBox([k1]).open(sealed, 'wh_2'));
    expect(corrupt).toMatchObject({ code: 'secret_corrupt', retryable: false });
    expect(String(corrupt)).not.toContain(sealed.split('.')[4]);
  });

  it('law: any changed character is noticed', () => {
    const box = createSecretBox([k1]);
    const sealed = box.seal('a secret of some length', 'wh_1');
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.constantFrom(...'Az0_-.'), (index, character) => {
        const altered = sealed.slice(0, index) + character + sealed.slice(index + 1);
        // Base64url's last character may carry unused bits: then the bytes are the same and so is the value.
        const sameBytes = altered.split('.').every((part, at) => {
          const original = sealed.split('.')[at] ?? '';
          return (
            part === original || (at > 1 && Buffer.from(part, 'base64url').equals(Buffer.from(original, 'base64url')))
          );
        });
        if (sameBytes) expect(box.open(altered, 'wh_1')).toBe('a secret of some length');
        else expect(() => box.open(altered, 'wh_1')).toThrow(/sealed secret|no key/);
      }),
      { numRuns: 500 },
    );
  });

  it.each([
    '',
    'v1',
    'plain text',
    'v2.k1.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA.AAAA',
    'v1.k1.AAAA.AAAA.AAAA',
    'v1.k1.....',
  ])('refuses %j', (sealed) => expect(() => createSecretBox([k1]).open(sealed, 'wh_1')).toThrow(SecretCorruptError));

  it('refuses a cut authentication tag', () => {
    const box = createSecretBox([k1]);
    const parts = box.seal('secret', 'wh_1').split('.');
    parts[3] = Buffer.from(parts[3] ?? '', 'base64url')
      .subarray(0, 12)
      .toString('base64url');
    expect(() => box.open(parts.join('.'), 'wh_1')).toThrow(SecretCorruptError);
  });

  it('needs a key of 32 bytes', () => {
    expect(() => createSecretBox([])).toThrow(TypeError);
    expect(() => createSecretBox([k1, { kid: 'k3', key: randomBytes(16) }])).toThrow(TypeError);
  });
});

describe('parseSecretsKeys', () => {
  const text = (kid: string, bytes = 32) => `${kid}:${Buffer.alloc(bytes, 200).toString('base64')}`;

  it('keeps the order and forgives spaces', () => {
    const keys = parseSecretsKeys(` ${text('k2')} , ${text('k-1_a')}`);
    expect(keys.map(({ kid, key }) => [kid, key.length])).toEqual([
      ['k2', 32],
      ['k-1_a', 32],
    ]);
  });

  it('lists every problem at once and never shows a key', () => {
    const bare = Buffer.alloc(32, 201).toString('base64');
    const error = thrownBy(() =>
      parseSecretsKeys([bare, text('k1', 31), text('a.b'), text('k1'), 'k5:*** junk ***', ''].join(',')),
    );
    expect(error).toBeInstanceOf(SecretsKeysError);
    expect((error as SecretsKeysError).problems).toEqual([
      'entry 1 is not kid:base64',
      'entry 2 has 31 bytes, not 32',
      'entry 3 has a key id that is not 1 to 32 letters, digits, "_" or "-"',
      'entry 4 repeats the key id of entry 2',
      'entry 5 is not canonical base64',
      'entry 6 is not kid:base64',
    ]);
    for (const part of [bare, bare.slice(0, 12), Buffer.alloc(31, 200).toString('base64'), 'junk']) {
      expect(String(error)).not.toContain(part);
    }
  });

  it.each(['', '   '])('refuses %j', (empty) => expect(() => parseSecretsKeys(empty)).toThrow(SecretsKeysError));
});

describe('deriveKey', () => {
  it('is stable, differs by purpose and by key, and is never the key itself', () => {
    const cursor = deriveKey([k1, k2], 'cursor');
    expect(cursor).toHaveLength(32);
    expect(deriveKey([k1], 'cursor')).toEqual(cursor);
    expect(deriveKey([k1], 'session')).not.toEqual(cursor);
    expect(deriveKey([k2, k1], 'cursor')).not.toEqual(cursor);
    expect(cursor.equals(k1.key)).toBe(false);
    expect(() => deriveKey([], 'cursor')).toThrow(SecretsKeysError);
  });
});

function thrownBy(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    return error;
  }
  throw new Error('nothing was thrown');
}
