import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { isStorableText } from '../../../src/domain/values/text.ts';
import { readModel, rejectRecord } from '../../../src/venues/rejection.ts';
import { anyCharacters } from '../../factories/texts.ts';

describe('readModel', () => {
  const model = z.object({ id: z.string(), inner: z.array(z.object({ size: z.number() })) });

  it.each([
    [null, 'not_an_object'],
    [[], 'not_an_object'],
    ['text', 'not_an_object'],
    [{ inner: [] }, 'missing_field'],
    [{ id: 7, inner: [] }, 'invalid_field'],
    [{ id: 'a', inner: [{ size: 1 }, {}] }, 'missing_field'],
    [{ id: 'a', inner: [{ size: '1' }] }, 'invalid_field'],
  ])('rejects %j as %s', (raw, reason) => {
    expect(readModel(model, raw)).toMatchObject({ ok: false, rejection: { reason } });
  });

  it('ignores unknown fields', () => {
    expect(readModel(model, { id: 'a', inner: [], other: 1 })).toEqual({ ok: true, value: { id: 'a', inner: [] } });
  });
});

describe('rejectRecord', () => {
  it('is bounded and storable for any rejected value', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true }), anyCharacters(900), (raw, text) => {
        const rejected = rejectRecord('trades', raw, { reason: 'any', detail: `${text}\u0000\ud800` }, `${text}\ud800`);
        expect(rejected.detail.length).toBeLessThanOrEqual(500);
        expect(Buffer.byteLength(rejected.sample)).toBeLessThanOrEqual(4096);
        for (const each of [rejected.detail, rejected.sample, rejected.recordId ?? '']) {
          expect(isStorableText(each)).toBe(true);
        }
      }),
    );
  });

  it('cuts a long sample at a character', () => {
    const { sample } = rejectRecord('markets', '€'.repeat(5_000), { reason: 'any', detail: '' });
    expect(Buffer.byteLength(sample)).toBeGreaterThan(4_090);
    expect(sample.endsWith('€')).toBe(true);
  });

  it('has no record id when the id is unreadable', () => {
    expect(rejectRecord('books', {}, { reason: 'any', detail: '' }, 7)).not.toHaveProperty('recordId');
    expect(rejectRecord('books', {}, { reason: 'any', detail: '' }, '')).not.toHaveProperty('recordId');
  });
});
