import type { z } from 'zod';
import { CONDITION_FIELDS, type GivenFields } from '../../src/domain/alerts/condition.ts';
import { type Condition, conditionOf, isBookCondition, isOfNewMarkets } from '../../src/domain/alerts/conditions.ts';
import { compareDecimals, type Decimal, ONE } from '../../src/domain/values/decimal.ts';

export interface Fault {
  path: string[];
  message: string;
}

/** The faults of the fields that depend on each other. Each given field has passed its own schema. */
export function conditionFaults(given: GivenFields, condition: Condition): Fault[] {
  const faults: Fault[] = [];
  const has = (name: string) => given[name] !== undefined;
  const fault = (name: string, message: string) => void faults.push({ path: name.split('.'), message });
  const definition = conditionOf(condition);
  const { required, optional = [] } = definition;
  for (const name of CONDITION_FIELDS) {
    if (required.includes(name) && !has(name)) fault(name, `is required with the condition ${condition}`);
    if (has(name) && !required.includes(name) && !optional.includes(name)) {
      fault(name, `does not belong to the condition ${condition}`);
    }
  }
  const directions = definition.direction?.options.flatMap(([value]) => (value === '' ? [] : [value as string]));
  if (directions && has('direction') && !directions.includes(given['direction'] as string)) {
    fault('direction', `must be ${directions.join(' or ')} with the condition ${condition}`);
  }
  definition.faults?.(given, fault);
  return faults;
}

/** The faults of token, scope and repetition. */
export function subjectFaults(given: GivenFields, condition: Condition | undefined): Fault[] {
  const faults: Fault[] = [];
  const fault = (name: string, message: string) => void faults.push({ path: name.split('.'), message });
  const { tokenMint, scope, repeat, cooldownSeconds, sellTokenMint } = given;
  const needsScope = condition !== undefined && isOfNewMarkets(condition);
  if (needsScope) {
    if (tokenMint !== undefined)
      fault('tokenMint', `does not belong to the condition ${condition}, which needs a scope`);
    if (scope === undefined) fault('scope', `is required with the condition ${condition}`);
  } else if (condition !== undefined && isBookCondition(condition)) {
    if (scope !== undefined) fault('scope', `does not belong to the condition ${condition}`);
    if (tokenMint === undefined) fault('tokenMint', `is required with the condition ${condition}`);
    if (tokenMint !== undefined && tokenMint === sellTokenMint) fault('sellTokenMint', 'must differ from tokenMint');
  } else if (tokenMint === undefined && scope === undefined) {
    fault('tokenMint', 'is required without a scope');
  } else if (tokenMint !== undefined && scope !== undefined) {
    fault('scope', 'must not be given with tokenMint');
  }
  if (scope !== undefined && Object.values(scope as object).every((value) => value === undefined)) {
    fault('scope', 'must have at least one of market_id, event_id, venue, category, q');
  }
  if (needsScope && scope !== undefined && (scope as GivenFields)['market_id'] !== undefined) {
    fault('scope.market_id', `does not belong to the condition ${condition}`);
  }
  if (cooldownSeconds !== undefined && repeat !== true) fault('cooldownSeconds', 'needs repeat: true');
  if (scope !== undefined && !(condition !== undefined && isBookCondition(condition)) && isUnreachable(given)) {
    fault('price', 'must be at most 1, because the price of an outcome is between 0 and 1');
  }
  return faults;
}

function isUnreachable({ price }: GivenFields): boolean {
  return typeof price === 'string' && compareDecimals(price as Decimal, ONE) > 0;
}

/** The issues of a body, in the order of its fields. */
export function addFaults(payload: z.core.ParsePayload, faults: readonly Fault[], order: readonly string[]): void {
  const placeOf = ({ path }: Fault) => order.indexOf(path[0] ?? '');
  for (const { path, message } of faults.toSorted((a, b) => placeOf(a) - placeOf(b))) {
    payload.issues.push({ code: 'custom', path, message, input: payload.value });
  }
}
