import { describe, expect, it } from 'vitest';
import {
  apiKeyId,
  generateApiKey,
  hashApiKey,
  isPresentableKey,
  isSameHash,
} from '../../../../src/domain/values/api-key.ts';

describe('API keys', () => {
  it('look like ow_live_<id>_<secret> and are never repeated', () => {
    const keys = Array.from({ length: 50 }, generateApiKey);
    for (const { id, key, hash } of keys) {
      expect(key).toMatch(/^ow_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{36}$/);
      expect(apiKeyId(key)).toBe(id);
      expect(isSameHash(hash, hashApiKey(key))).toBe(true);
      expect(isPresentableKey(key)).toBe(true);
    }
    expect(new Set(keys.map(({ key }) => key)).size).toBe(50);
  });

  it('may be chosen, and then have an id that reveals nothing', () => {
    const key = 'correct-horse-battery-staple';
    expect(apiKeyId(key)).toMatch(/^chosen-[0-9a-f]{16}$/);
    expect(apiKeyId(key)).toBe(apiKeyId(key));
    expect(apiKeyId(`${key}!`)).not.toBe(apiKeyId(key));
    expect(apiKeyId('ow_live_ab_short')).toMatch(/^chosen-/);
    const secret = 's'.repeat(16);
    expect(apiKeyId(`ow_live_${'i'.repeat(32)}_${secret}`)).toBe('i'.repeat(32));
    for (const odd of [`x_ow_live_ab_${secret}`, `ow_live_ab_${secret}!`, `ow_live_${'i'.repeat(33)}_${secret}`]) {
      expect(apiKeyId(odd)).toMatch(/^chosen-/);
    }
  });

  it('differ by their hash, at any length', () => {
    expect(isSameHash(hashApiKey('a'), hashApiKey('b'))).toBe(false);
    expect(isSameHash(hashApiKey('a'), hashApiKey('a').subarray(1))).toBe(false);
  });

  it('are kept as their sha256', () => {
    expect(hashApiKey('abc').toString('hex')).toBe('ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
    expect(generateApiKey().hash).toHaveLength(32);
  });

  it('may have 256 characters, from ! to ~', () => {
    expect(isPresentableKey('x'.repeat(256))).toBe(true);
    expect(isPresentableKey('!~')).toBe(true);
  });

  it.each(['', 'has space', 'tab\t', 'é', 'x'.repeat(257), 'nul\0', ' first', 'last\n'])('do not include %j', (key) => {
    expect(isPresentableKey(key)).toBe(false);
  });
});
