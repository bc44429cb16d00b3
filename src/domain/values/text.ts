/** Text that Postgres can store: `text` and `jsonb` reject U+0000 and lone surrogates. */
export function isStorableText(text: string): boolean {
  return !text.includes('\u0000') && text.isWellFormed();
}

/** The text with U+0000 and lone surrogates replaced by U+FFFD. For errors and logs, never for data. */
export function scrubText(text: string): string {
  return isStorableText(text) ? text : text.toWellFormed().replaceAll('\u0000', '\uFFFD');
}

/** A deep copy of JSON-like data with only storable strings and keys. */
export function scrubData<T>(value: T): T {
  return scrubUnknown(value) as T;
}

function scrubUnknown(value: unknown): unknown {
  if (typeof value === 'string') return scrubText(value);
  if (Array.isArray(value)) return value.map(scrubUnknown);
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [scrubText(key), scrubUnknown(item)]));
  }
  return value;
}

/** Foreign text must not control a terminal: replaces control characters and changes of text direction. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\u{fffd}');
}

/** Marks, embeddings, overrides and isolates: they change the order in which following text is shown. */
const DIRECTION_CONTROL = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** The text with visible names such as `[U+202E]` instead of its bidirectional control characters. For pages, never for data. */
export function showDirectionControls(text: string): string {
  return text.replace(DIRECTION_CONTROL, (control) => {
    return `[U+${control.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`;
  });
}

const keys = new Map<string, string>();

/** The key of a column in a row: `volume_24h` becomes `volume24h`. Cached, because statements return thousands of rows. */
export function keyOf(column: string): string {
  const known = keys.get(column);
  if (known !== undefined) return known;
  const key = column.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
  keys.set(column, key);
  return key;
}
