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

/** One of these values; undefined when the field is empty. @throws ApiError `invalid_request` */
export function chosen<T extends string>(form: URLSearchParams, name: string, values: readonly T[]): T | undefined {
  const text = form.get(name) || undefined;
  if (text === undefined) return undefined;
  const found = values.find((value) => value === text);
  if (found === undefined) throw invalidRequest([{ path: name, message: `must be one of ${values.join(', ')}` }]);
  return found;
}

const MOMENT = /^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?)?(?:Z|[+-]\d{2}:\d{2})?$/;

/** A moment, in UTC unless it has an offset, because browsers send local times without an offset. @throws ApiError `invalid_request` */
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

/** A moment in the format of a `datetime-local` field: UTC, whole minutes. */
export function fieldMoment(at: Date): string {
  return at.toISOString().slice(0, 16);
}

/** The options of an optional choice. */
export function anyOf(values: readonly string[], label = 'any'): readonly (readonly [string, string])[] {
  return [['', label], ...values.map((value) => [value, value] as const)];
}
