import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeBase58, isPublicKey } from '../../../../src/domain/values/base58.ts';

describe('base58', () => {
  it('reads encoded bytes as a key when they are 32, leading zero bytes included', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 24, maxLength: 40 }), fc.nat({ max: 3 }), (bytes, zeros) => {
        const padded = Uint8Array.from([...new Uint8Array(zeros), ...bytes]);
        expect(isPublicKey(encodeBase58(padded))).toBe(padded.length === 32);
      }),
    );
  });

  it('encodes the test vectors of its specification', () => {
    expect(encodeBase58(Buffer.from('Hello World!'))).toBe('2NEpo7TZRRrLZSi2U');
    expect(encodeBase58(Buffer.from('0000287fb4cd', 'hex'))).toBe('11233QC4');
  });

  it('encodes 64 bytes in 88 digits', () => {
    expect(encodeBase58(new Uint8Array(64).fill(255))).toHaveLength(88);
  });

  it.each([
    ['11111111111111111111111111111111', true],
    ['So11111111111111111111111111111111111111112', true],
    ['EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', true],
    ['TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb', true],
    ['1111111111111111111111111111111', false],
    ['111111111111111111111111111111111', false],
    ['zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz', false],
    ['So1111111111111111111111111111111111111111O', false],
    ['EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v ', false],
    ['0x4bfb41d5b3570defd03c39a9a4d8de6bd8b8982e', false],
    ['', false],
  ])('says whether %j is a public key: %s', (text, isKey) => {
    expect(isPublicKey(text)).toBe(isKey);
  });
});
