import fc from 'fast-check';
import type { Observed, Unit } from '../../../src/domain/alerts/condition.ts';
import type { Condition } from '../../../src/domain/alerts/conditions.ts';
import type { Rule } from '../../../src/domain/alerts/rule.ts';
import { type Decimal, decimal } from '../../../src/domain/values/decimal.ts';

const T = Date.UTC(2026, 0, 1);
/*
 * Prices and sizes are small multiples of these units, so that random values often meet a threshold exactly. A sum or a product of them in
 * binary numbers would not.
 */
const PRICE = { units: 37n, scale: 3 };
const SIZE = { units: 3n, scale: 1 };
const NOTIONAL = { units: PRICE.units * SIZE.units, scale: PRICE.scale + SIZE.scale };
const PLAIN = { units: 1n, scale: 0 };

/** `count` units as a decimal. */
function times(count: number, { units, scale }: typeof PRICE): Decimal {
  const digits = String(BigInt(count) * units).padStart(scale + 1, '0');
  const at = digits.length - scale;
  return decimal(scale === 0 ? digits : `${digits.slice(0, at)}.${digits.slice(at)}`);
}

const small = fc.integer({ min: 1, max: 9 });
const seconds = (max: number) => fc.integer({ min: 0, max }).map((value) => value * 1_000);

/** The fields of a condition on prices of each kind. */
export const someKind = fc
  .oneof(
    fc.record({ condition: fc.constantFrom('above' as const, 'below' as const), threshold: small }),
    fc.record({ condition: fc.constantFrom('crosses_above' as const, 'crosses_below' as const), threshold: small }),
    fc.record({
      condition: fc.constant('spread' as const),
      direction: fc.constantFrom('at_most' as const, 'at_least' as const),
      threshold: fc.integer({ min: 0, max: 4 }),
    }),
    fc.record({
      condition: fc.constant('change' as const),
      direction: fc.constantFrom(undefined, 'up' as const, 'down' as const),
      unit: fc.constant('absolute' as const),
      threshold: fc.integer({ min: 1, max: 5 }),
      windowMs: seconds(20).map((ms) => ms + 1_000),
    }),
    fc.record({
      condition: fc.constant('change' as const),
      direction: fc.constantFrom(undefined, 'up' as const, 'down' as const),
      unit: fc.constant('percent' as const),
      threshold: fc.constantFrom(10, 50, 100, 200),
      windowMs: seconds(20).map((ms) => ms + 1_000),
    }),
    fc.record({ condition: fc.constant('trade' as const), threshold: fc.integer({ min: 1, max: 60 }) }),
    fc.record({
      condition: fc.constant('volume' as const),
      threshold: fc.integer({ min: 1, max: 100 }),
      windowMs: seconds(20).map((ms) => ms + 1_000),
    }),
    fc.record({
      condition: fc.constant('volume' as const),
      threshold: fc.integer({ min: 1, max: 4 }),
      windowMs: seconds(10).map((ms) => ms + 1_000),
      windows: fc.integer({ min: 1, max: 3 }),
    }),
  )
  .map((kind) => ({ ...kind, threshold: times(kind.threshold, unitOf(kind)) }));

/** The unit of a threshold. */
function unitOf(kind: { condition: Condition; unit?: Unit; windows?: number }): typeof PRICE {
  if (kind.condition === 'trade') return NOTIONAL;
  if (kind.condition === 'volume') return kind.windows === undefined ? NOTIONAL : PLAIN;
  return kind.unit === 'percent' ? PLAIN : PRICE;
}

/** A rule whose start lies among the observations of `someObservations`. */
export const someRule: fc.Arbitrary<Rule> = fc
  .record({
    kind: someKind,
    startMs: seconds(20),
    lastsMs: fc.oneof(
      { weight: 4, arbitrary: fc.constant(Number.POSITIVE_INFINITY) },
      { weight: 1, arbitrary: seconds(60) },
    ),
    cooldownMs: fc.oneof(fc.constant(null), fc.constant(0), seconds(20)),
  })
  .map(({ kind, startMs, lastsMs, cooldownMs }) => ({
    ...kind,
    startMs: T + startMs,
    endMs: T + startMs + lastsMs,
    cooldownMs,
    seesStart: ['above', 'below', 'spread'].includes(kind.condition),
  }));

/** A quote or a trade, without its place and time. */
export const observedFields: fc.Arbitrary<Omit<Observed, 'n' | 'atMs'>> = fc
  .record({
    price: fc.integer({ min: 0, max: 9 }),
    spread: fc.constantFrom(null, 0, 1, 2, 3),
    size: fc.oneof(fc.constant(null), small),
  })
  .map(({ price, spread, size }) => {
    const isQuote = size === null && spread !== null;
    return {
      price: times(price, PRICE),
      bid: isQuote ? times(price, PRICE) : null,
      ask: isQuote ? times(price + spread, PRICE) : null,
      size: size === null ? null : times(size, SIZE),
    };
  });

/** Quotes and trades with times that stay equal or rise. */
export const someObservations: fc.Arbitrary<Observed[]> = fc
  .array(fc.tuple(fc.oneof(fc.constant(0), seconds(8)), observedFields), { minLength: 1, maxLength: 60 })
  .map((list) => {
    let atMs = T;
    return list.map(([afterMs, fields], index) => {
      atMs += afterMs;
      return { n: BigInt(index + 1), atMs, ...fields };
    });
  });
