import { describe, expect, it } from 'vitest';
import { apiKeyId, generateApiKey, hashApiKey, isPresentableKey, isSameHash } from '../../../src/domain/api-key.ts';

describe('API keys', () => {
  it('look like ow_live_<id>_<secret>, never the same twice', () => {
    const keys = Array.from({ length: 50 }, generateApiKey);
    for (const { id, key, hash } of keys) {
      expect(key).toMatch(/^ow_live_[0-9A-Za-z]{12}_[0-9A-Za-z]{36}$/);
      expect(apiKeyId(key)).toBe(id);
      expect(isSameHash(hash, hashApiKey(key))).toBe(true);
      expect(isPresentableKey(key)).toBe(true);
    }
    expect(new Set(keys.map(({ key }) => key)).size).toBe(50);
  });

  it('may be chosen, and then have an id that gives nothing away', () => {
    const key = 'correct-horse-battery-staple';
    expect(apiKeyId(key)).toMatch(/^chosen-[0-9a-f]{16}$/);
    expect(apiKeyId(key)).toBe(apiKeyId(key));
    expect(apiKeyId(`${key}!`)).not.toBe(apiKeyId(key));
    expect(apiKeyId('ow_live_ab_short')).toMatch(/^chosen-/);
  });

  it('differ by their hash, whatever its length', () => {
    expect(isSameHash(hashApiKey('a'), hashApiKey('b'))).toBe(false);
    expect(isSameHash(hashApiKey('a'), hashApiKey('a').subarray(1))).toBe(false);
  });

  it.each(['', 'has space', 'tab\t', 'é', 'x'.repeat(257), 'nul\0'])('cannot be %j', (key) => {
    expect(isPresentableKey(key)).toBe(false);
  });
});
