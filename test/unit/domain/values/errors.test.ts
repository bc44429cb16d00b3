import { describe, expect, it } from 'vitest';
import { asError, OddswireError } from '../../../../src/domain/values/errors.ts';

describe('asError', () => {
  it('returns an error unchanged', () => {
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
  it('names its class, its code, and whether a retry may help', () => {
    class ShortError extends OddswireError {}
    const cause = new Error('why');
    const error = new ShortError('short', 'too short', { retryable: true, cause });
    expect(error).toMatchObject({ name: 'ShortError', code: 'short', retryable: true, cause });
    expect(new OddswireError('x', 'y').retryable).toBe(false);
    expect(new OddswireError('x', 'y')).not.toHaveProperty('cause');
  });
});
