import { compareDecimals, type Decimal, LongNumber, parseDecimal } from '../values/decimal.ts';
import { parseExactJson } from '../values/exact-json.ts';

export const MAX_CONDITIONS = 10;
export const MAX_LISTED = 50;
export const MAX_TEXT = 256;
/** `type`, or a path of one to four names below `data`. */
export const FIELD_PATTERN = '^(type|data(\\.[A-Za-z][A-Za-z0-9_]{0,63}){1,4})$';

export type FilterValue = string | number | boolean;

/** One test of a field: `field` and exactly one operator. */
export interface FilterCondition {
  readonly field: string;
  readonly equal?: FilterValue | undefined;
  readonly in?: FilterValue[] | undefined;
  readonly above?: number | undefined;
  readonly below?: number | undefined;
  readonly exists?: boolean | undefined;
}
export const OPERATORS = ['equal', 'in', 'above', 'below', 'exists'] as const satisfies (keyof FilterCondition)[];

/** All conditions must match. */
export type EventFilter = readonly FilterCondition[];

/**
 * Whether an event with this body passes. Numbers compare by their exact decimals, and `above` and `below` include equality, as the
 * conditions of alerts. A value of another type is neither equal, above nor below. A path through a list reaches every item, and one that
 * matches is enough.
 */
export function passesFilter(filter: EventFilter, body: string): boolean {
  return matchesFilter(filter, parseExactJson(body).value);
}

/** As `passesFilter`, for the value of a body that `parseExactJson` returned. */
export function matchesFilter(filter: EventFilter, event: unknown): boolean {
  const isCorrection = valuesAt(event, ['data', 'correction']).includes(true);
  return filter.every(
    (condition) =>
      (isCorrection && RESULT_FIELDS.has(condition.field)) ||
      matches(condition, valuesAt(event, condition.field.split('.'))),
  );
}

/** A filter that let a result pass must not exclude its correction, which differs in these fields. */
const RESULT_FIELDS = new Set(['data.status', 'data.previousStatus', 'data.winningOutcomeId', 'data.resolution']);

function matches({ equal, in: listed, above, below, exists }: FilterCondition, found: readonly unknown[]): boolean {
  if (exists !== undefined) return found.length > 0 === exists;
  if (equal !== undefined) return found.some((value) => isEqual(value, equal));
  if (listed !== undefined) return found.some((value) => listed.some((item) => isEqual(value, item)));
  if (above !== undefined) return found.some((value) => (compared(value, above) ?? -1) >= 0);
  if (below !== undefined) return found.some((value) => (compared(value, below) ?? 1) <= 0);
  return false;
}

/** The values at a path. Null is no value. */
function valuesAt(node: unknown, path: readonly string[]): unknown[] {
  if (Array.isArray(node)) return node.flatMap((item) => valuesAt(item, path));
  const [name, ...rest] = path;
  if (name === undefined) return node === null ? [] : [node];
  if (typeof node !== 'object' || node === null || node instanceof LongNumber || !Object.hasOwn(node, name)) return [];
  return valuesAt((node as Record<string, unknown>)[name], rest);
}

function isEqual(value: unknown, expected: FilterValue): boolean {
  return typeof expected === 'number' ? compared(value, expected) === 0 : value === expected;
}

function compared(value: unknown, expected: number): -1 | 0 | 1 | null {
  const given = numberOf(value);
  const wanted = parseDecimal(expected);
  return given === null || wanted === null ? null : compareDecimals(given, wanted);
}

function numberOf(value: unknown): Decimal | null {
  if (value instanceof LongNumber) return parseDecimal(value.text);
  return typeof value === 'number' ? parseDecimal(value) : null;
}
