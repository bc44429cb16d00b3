import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SecretKey } from '../../../src/domain/values/secret-keys.ts';
import { createSecretBox, SecretCorruptError, SecretKeyMissingError } from '../../../src/webhooks/secret-box.ts';

const k1: SecretKey = { kid: 'k1', key: randomBytes(32) };
const k2: SecretKey = { kid: 'k2', key: randomBytes(32) };

describe('secret box', () => {
  it('law: opens every sealed text of any owner', () => {
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

  it('opens a value that an earlier release sealed', () => {
    const sealed = 'v1.k1.mlsKvNMeoX4QdDXY.cxMvy18bR1tl4Ca6Q7VfZg.QT-DasRd7TEUQJz3KKz-YA';
    expect(createSecretBox([{ kid: 'k1', key: Buffer.alloc(32, 1) }]).open(sealed, 'wh_1')).toBe('whsec_zażółć');
  });

  it('rejects a value that was moved to another row', () => {
    const box = createSecretBox([k1]);
    expect(() => box.open(box.seal('secret', 'wh_1'), 'wh_2')).toThrow(SecretCorruptError);
  });

  it('rejects a value sealed with other bytes under the same key id', () => {
    const sealed = createSecretBox([k1]).seal('secret', 'wh_1');
    expect(() => createSecretBox([{ kid: 'k1', key: k2.key }]).open(sealed, 'wh_1')).toThrow(SecretCorruptError);
  });

  it('rotates keys: the new first key seals, the old one still opens', () => {
    const old = createSecretBox([k1]).seal('secret', 'wh_1');
    const rotated = createSecretBox([k2, k1]);
    expect(rotated.open(old, 'wh_1')).toBe('secret');
    expect(rotated.seal('secret', 'wh_1').split('.')[1]).toBe('k2');
  });

  it('throws a retryable error for a missing key, and another for a corrupt value, without secrets', () => {
    const sealed = createSecretBox([k1]).seal('secret', 'wh_1');
    const missing = thrownBy(() => createSecretBox([k2]).open(sealed, 'wh_1'));
    expect(missing).toBeInstanceOf(SecretKeyMissingError);
    expect(missing).toMatchObject({ code: 'secret_key_missing', retryable: true, kid: 'k1' });
    expect(String(missing)).toContain('"k1"');
    const corrupt = thrownBy(() => createSecretBox([k1]).open(sealed, 'wh_2'));
    expect(corrupt).toMatchObject({ code: 'secret_corrupt', retryable: false, cause: expect.any(Error) });
    expect(String(corrupt)).not.toContain(sealed.split('.')[4]);
  });

  it('law: detects any changed character', () => {
    const box = createSecretBox([k1]);
    const sealed = box.seal('a secret of some length', 'wh_1');
    fc.assert(
      fc.property(fc.nat(sealed.length - 1), fc.constantFrom(...'Az0_-.'), (index, character) => {
        const altered = sealed.slice(0, index) + character + sealed.slice(index + 1);
        // Base64url's last character may carry unused bits: then the bytes, and so the value, are the same.
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
    'v1.k1.AAAAAAAAAAAAAAAA.AAAAAAAAAAAAAAAAAAAAAA',
  ])('rejects %j', (sealed) => expect(() => createSecretBox([k1]).open(sealed, 'wh_1')).toThrow(SecretCorruptError));

  it('rejects a value without exactly five parts, and a start vector of another size', () => {
    const box = createSecretBox([k1]);
    const sealed = box.seal('secret', 'wh_1');
    const [version, kid, iv = '', ...rest] = sealed.split('.');
    for (const altered of [`x${sealed}`, `${sealed}.`, `${sealed}.x`, [version, kid, `${iv}AA`, ...rest].join('.')]) {
      expect(() => box.open(altered, 'wh_1')).toThrow(expect.objectContaining({ code: 'secret_corrupt' }));
    }
  });

  it('rejects a truncated authentication tag', () => {
    const box = createSecretBox([k1]);
    const parts = box.seal('secret', 'wh_1').split('.');
    parts[3] = Buffer.from(parts[3] ?? '', 'base64url')
      .subarray(0, 12)
      .toString('base64url');
    expect(() => box.open(parts.join('.'), 'wh_1')).toThrow(SecretCorruptError);
  });

  it('seals and opens nothing without keys', () => {
    const none = createSecretBox([]);
    const sealed = createSecretBox([k1]).seal('secret', 'wh_1');
    expect(none.kids).toEqual([]);
    expect(() => none.seal('secret', 'wh_1')).toThrow(SecretKeyMissingError);
    expect(() => none.open(sealed, 'wh_1')).toThrow(SecretKeyMissingError);
  });

  it('requires a key of 32 bytes', () => {
    expect(() => createSecretBox([k1, { kid: 'k3', key: randomBytes(16) }])).toThrow(/32 bytes/);
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
