import { describe, expect, it } from 'vitest';
import { within } from '../../../../src/domain/values/signals.ts';

const never = new Promise<never>(() => undefined);

describe('within', () => {
  it('returns the result of work that ends in time', async () => {
    expect(await within(60_000, Promise.resolve('done'), () => 'late')).toBe('done');
  });

  it('rejects when work rejects in time', async () => {
    await expect(within(60_000, Promise.reject(new Error('broken')), () => 'late')).rejects.toThrow('broken');
  });

  it('returns the result of onLate when work takes too long', async () => {
    expect(await within(1, never, () => 'late')).toBe('late');
  });

  it('rejects when onLate throws', async () => {
    const onLate = () => {
      throw new Error('no answer');
    };
    await expect(within(1, never, onLate)).rejects.toThrow('no answer');
  });
});
