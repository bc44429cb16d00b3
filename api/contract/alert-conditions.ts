import type { z } from 'zod';
import { type Condition, MAX_WINDOWS_SECONDS } from '../../src/domain/alerts/alert.ts';
import { compareDecimals, type Decimal, ONE } from '../../src/domain/values/decimal.ts';

/** The fields of a condition: required and optional ones. */
export const FIELDS_OF: Readonly<Record<Condition, { required: readonly string[]; optional?: readonly string[] }>> = {
  above: { required: ['price'] },
  below: { required: ['price'] },
  crosses_above: { required: ['price'] },
  crosses_below: { required: ['price'] },
  spread: { required: ['price', 'direction'] },
  change: { required: ['change', 'unit', 'windowSeconds'], optional: ['direction'] },
  trade: { required: ['notional'] },
  volume: { required: ['windowSeconds'], optional: ['notional', 'times', 'windows'] },
  status: { required: [] },
  new_market: { required: [] },
};

/** Every field that depends on the condition. */
export const CONDITION_FIELDS = [
  'price',
  'direction',
  'change',
  'unit',
  'windowSeconds',
  'notional',
  'times',
  'windows',
] as const;

const DIRECTIONS_OF: Partial<Record<Condition, readonly string[]>> = {
  spread: ['at_most', 'at_least'],
  change: ['up', 'down'],
};

type Given = Readonly<Record<string, unknown>>;
export interface Fault {
  path: string[];
  message: string;
}

/** The faults of the fields that depend on each other. Each given field has passed its own schema. */
export function conditionFaults(given: Given, condition: Condition): Fault[] {
  const faults: Fault[] = [];
  const has = (name: string) => given[name] !== undefined;
  const fault = (name: string, message: string) => void faults.push({ path: name.split('.'), message });
  const { required, optional = [] } = FIELDS_OF[condition];
  for (const name of CONDITION_FIELDS) {
    if (required.includes(name) && !has(name)) fault(name, `is required with the condition ${condition}`);
    if (has(name) && !required.includes(name) && !optional.includes(name)) {
      fault(name, `does not belong to the condition ${condition}`);
    }
  }
  const directions = DIRECTIONS_OF[condition];
  if (directions && has('direction') && !directions.includes(given['direction'] as string)) {
    fault('direction', `must be ${directions.join(' or ')} with the condition ${condition}`);
  }
  if (condition === 'volume') volumeFaults(given, fault);
  return faults;
}

function volumeFaults(given: Given, fault: (name: string, message: string) => void): void {
  const { notional, times, windows, windowSeconds } = given;
  if ((notional === undefined) === (times === undefined)) {
    fault('notional', 'must be given, or times with windows instead, but not both');
  }
  if (times !== undefined && windows === undefined) fault('windows', 'is required with times');
  if (windows !== undefined && times === undefined) fault('windows', 'belongs to times');
  if (
    typeof windows === 'number' &&
    typeof windowSeconds === 'number' &&
    windowSeconds * (windows + 1) > MAX_WINDOWS_SECONDS
  ) {
    fault('windows', `windowSeconds * (windows + 1) must be at most ${MAX_WINDOWS_SECONDS}`);
  }
}

/** The faults of token, scope and repetition. */
export function subjectFaults(given: Given, condition: Condition | undefined): Fault[] {
  const faults: Fault[] = [];
  const fault = (name: string, message: string) => void faults.push({ path: name.split('.'), message });
  const { tokenMint, scope, repeat, cooldownSeconds } = given;
  if (condition === 'new_market') {
    if (tokenMint !== undefined) fault('tokenMint', 'does not belong to the condition new_market, which needs a scope');
    if (scope === undefined) fault('scope', 'is required with the condition new_market');
  } else if (tokenMint === undefined && scope === undefined) {
    fault('tokenMint', 'is required without a scope');
  } else if (tokenMint !== undefined && scope !== undefined) {
    fault('scope', 'must not be given with tokenMint');
  }
  if (scope !== undefined && Object.values(scope as object).every((value) => value === undefined)) {
    fault('scope', 'must have at least one of market_id, event_id, venue, category, q');
  }
  if (condition === 'new_market' && scope !== undefined && (scope as Given)['market_id'] !== undefined) {
    fault('scope.market_id', 'does not belong to the condition new_market');
  }
  if (cooldownSeconds !== undefined && repeat !== true) fault('cooldownSeconds', 'needs repeat: true');
  if (scope !== undefined && isUnreachable(given)) {
    fault('price', 'must be at most 1, because the price of an outcome is between 0 and 1');
  }
  return faults;
}

function isUnreachable({ price }: Given): boolean {
  return typeof price === 'string' && compareDecimals(price as Decimal, ONE) > 0;
}

/** The issues of a body, in the order of its fields. */
export function addFaults(payload: z.core.ParsePayload, faults: readonly Fault[], order: readonly string[]): void {
  const placeOf = ({ path }: Fault) => order.indexOf(path[0] ?? '');
  for (const { path, message } of faults.toSorted((a, b) => placeOf(a) - placeOf(b))) {
    payload.issues.push({ code: 'custom', path, message, input: payload.value });
  }
}
