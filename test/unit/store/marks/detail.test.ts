import fc from 'fast-check';
import { expect, it } from 'vitest';
import { decodeCause, decodeMark, encodeCause } from '../../../../src/store/marks/detail.ts';

const positive = fc.bigInt({ min: 1n, max: 2n ** 63n - 1n });
const aCause = fc.oneof<fc.Arbitrary<Parameters<typeof encodeCause>[0]>[]>(
  fc.bigInt({ min: 1n, max: 4_000_000_000_000_000n - 1n }).map((atMs) => ({ kind: 'observed', atMs })),
  fc.bigInt({ min: 0n, max: 4_000_000_000_000_000n }).map((atMs) => ({ kind: 'marketChanged', atMs })),
  fc.bigInt({ min: 0n, max: 4_000_000_000_000_000n }).map((atMs) => ({ kind: 'gapBegan', atMs })),
  fc.bigInt({ min: 0n, max: 4_000_000_000_000_000n }).map((atMs) => ({ kind: 'gapEnded', atMs })),
  positive.map((alertPk) => ({ kind: 'alertCreated', alertPk })),
  fc.constant({ kind: 'marketFinal' }),
  fc.constant({ kind: 'bookSeen' }),
);

it('decodeCause inverts encodeCause', () => {
  fc.assert(
    fc.property(aCause, (cause) => {
      expect(decodeCause(encodeCause(cause))).toEqual(cause);
    }),
  );
});

it('encodeCause inverts decodeCause for every stored number', () => {
  const aDetail = fc.bigInt({ min: -(2n ** 63n), max: 16_300_000_000_000_000n });
  fc.assert(fc.property(aDetail, (detail) => encodeCause(decodeCause(detail)) === detail));
});

it('encodeCause keeps the coding that processes of the previous release read', () => {
  expect(encodeCause({ kind: 'observed', atMs: 1_700_000_000_000n })).toBe(1_700_000_000_000n);
  expect(encodeCause({ kind: 'alertCreated', alertPk: 7n })).toBe(-7n);
  expect(encodeCause({ kind: 'marketFinal' })).toBe(0n);
});

it('decodeMark reads a minute, or a cause in the stage evaluate-alerts', () => {
  expect(decodeMark('fold-candles', 60n)).toEqual({ kind: 'minute', start: 60n });
  expect(decodeMark('sample-snapshots', 0n)).toEqual({ kind: 'minute', start: 0n });
  expect(decodeMark('evaluate-alerts', -7n)).toEqual({ kind: 'alertCreated', alertPk: 7n });
});
