import { describe, expect, it } from 'vitest';
import { derivedId, newId, newToken } from '../../../../src/domain/values/ids.ts';

describe('ids', () => {
  it('are prefixed, distinct, in the order of creation, and without a dot', () => {
    const ids = Array.from({ length: 2_000 }, () => newId('evt'));
    expect(new Set(ids).size).toBe(2_000);
    expect([...ids].sort()).toEqual(ids);
    expect(ids.every((id) => /^evt_[0-9a-f-]{36}$/.test(id))).toBe(true);
  });

  it('derivedId returns the same UUIDv8 for the same identity only', () => {
    const ids = Array.from({ length: 500 }, (_, index) => derivedId('evt', `alert:${index}`));
    expect(new Set(ids).size).toBe(500);
    for (const id of ids)
      expect(id).toMatch(/^evt_[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(derivedId('evt', 'alert:0')).toBe(ids[0]);
    expect(derivedId('dlv', 'alert:0')).not.toContain(ids[0]?.slice(4));
    // Receivers store ids, so a later release must derive the same ones.
    expect(derivedId('evt', 'alert:1')).toBe('evt_4869564f-303a-8e49-9396-e567267b3757');
  });

  it('have tokens of 128 random bits', () => {
    expect(newToken()).toMatch(/^[0-9a-f]{32}$/);
    expect(newToken()).not.toBe(newToken());
  });
});
