import { describe, expect, it } from 'vitest';
import { newId, newToken } from '../../../../src/domain/values/ids.ts';

describe('ids', () => {
  it('are prefixed, distinct, in the order of creation, and without a dot', () => {
    const ids = Array.from({ length: 2_000 }, () => newId('evt'));
    expect(new Set(ids).size).toBe(2_000);
    expect([...ids].sort()).toEqual(ids);
    expect(ids.every((id) => /^evt_[0-9a-f-]{36}$/.test(id))).toBe(true);
  });

  it('have tokens of 128 random bits', () => {
    expect(newToken()).toMatch(/^[0-9a-f]{32}$/);
    expect(newToken()).not.toBe(newToken());
  });
});
