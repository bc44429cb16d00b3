import { describe, expect, it } from 'vitest';
import { asError, OddswireError } from '../../../src/domain/errors.ts';
import { newId, newToken } from '../../../src/domain/ids.ts';
import { SHARDS, shardOf } from '../../../src/domain/shard.ts';

describe('asError', () => {
  it('gives an error back as it is', () => {
    const error = new OddswireError('x', 'y');
    expect(asError(error)).toBe(error);
  });

  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  it.each([
    ['a text', 'a text'],
    [{ code: 7 }, '{"code":7}'],
    [null, 'null'],
    [undefined, 'undefined'],
    [10n, '10'],
    [Symbol('s'), 'Symbol(s)'],
    [circular, '[object Object]'],
    [Object.create(null), '{}'],
  ])('makes an error of %s', (thrown, message) => {
    expect(asError(thrown)).toMatchObject({ name: 'Error', message });
  });
});

describe('OddswireError', () => {
  it('names its class, its code, and whether trying again may help', () => {
    class ShortError extends OddswireError {}
    const cause = new Error('why');
    const error = new ShortError('short', 'too short', { retryable: true, cause });
    expect(error).toMatchObject({ name: 'ShortError', code: 'short', retryable: true, cause });
    expect(new OddswireError('x', 'y').retryable).toBe(false);
    expect(new OddswireError('x', 'y')).not.toHaveProperty('cause');
  });
});

describe('ids', () => {
  it('are prefixed, unlike each other, in the order they were made, and without a dot', () => {
    const ids = Array.from({ length: 2_000 }, () => newId('evt'));
    expect(new Set(ids).size).toBe(2_000);
    expect([...ids].sort()).toEqual(ids);
    expect(ids.every((id) => /^evt_[0-9a-f-]{36}$/.test(id))).toBe(true);
  });

  it('tokens are 128 random bits', () => {
    expect(newToken()).toMatch(/^[0-9a-f]{32}$/);
    expect(newToken()).not.toBe(newToken());
  });
});

describe('shardOf', () => {
  it('is the remainder, however large the key', () => {
    expect(shardOf(0n)).toBe(0);
    expect(shardOf(BigInt(SHARDS) + 3n)).toBe(3);
    expect(shardOf(9_223_372_036_854_775_807n)).toBe(15);
  });
});
