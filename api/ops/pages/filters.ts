import { invalidRequest } from '../../errors.ts';

const MAX_TEXT = 300;

/** A text field of a form, trimmed; undefined when it is empty. @throws ApiError `invalid_request` */
export function textField(form: URLSearchParams, name: string): string | undefined {
  const text = form.get(name)?.trim();
  if (text !== undefined && text.length > MAX_TEXT) {
    throw invalidRequest([{ path: name, message: `must have at most ${MAX_TEXT} characters` }]);
  }
  return text || undefined;
}

/** A choice of these; undefined when nothing is chosen. @throws ApiError `invalid_request` */
export function chosen<T extends string>(form: URLSearchParams, name: string, values: readonly T[]): T | undefined {
  const text = form.get(name) || undefined;
  if (text === undefined) return undefined;
  const found = values.find((value) => value === text);
  if (found === undefined) throw invalidRequest([{ path: name, message: `must be one of ${values.join(', ')}` }]);
  return found;
}

const MOMENT = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)?(?:Z|[+-]\d{2}:\d{2})?$/;

/** A moment, in UTC where it names no offset: browsers send local times without one. @throws ApiError `invalid_request` */
export function momentField(form: URLSearchParams, name: string): Date | undefined {
  const text = textField(form, name);
  if (text === undefined) return undefined;
  const isPlain = /T[^Z+-]*$/.test(text);
  const at = new Date(isPlain ? `${text}Z` : text);
  if (!MOMENT.test(text) || Number.isNaN(at.getTime()) || at.getUTCFullYear() < 1970) {
    throw invalidRequest([{ path: name, message: 'must be a time such as 2026-01-31T12:00' }]);
  }
  return at;
}

/** A moment as a field of type `datetime-local` takes it: UTC, whole minutes. */
export function fieldMoment(at: Date): string {
  return at.toISOString().slice(0, 16);
}

/** A choice that may be left open. */
export function anyOf(values: readonly string[], label = 'any'): readonly (readonly [string, string])[] {
  return [['', label], ...values.map((value) => [value, value] as const)];
}
