/** The venue's three formats of a time. */

/** `2026-07-02T20:43:26Z`. */
export function isoSeconds(second: number): string {
  return `${new Date(second * 1000).toISOString().slice(0, 19)}Z`;
}

/** `2026-07-02T20:43:26.375208Z`; trailing zeros of the fraction are dropped, as Go's encoder does. */
export function isoMicros(second: number, micros: number): string {
  const fraction = String(micros).padStart(6, '0').replace(/0+$/, '');
  const base = new Date(second * 1000).toISOString().slice(0, 19);
  return fraction === '' ? `${base}Z` : `${base}.${fraction}Z`;
}

/** `2026-07-24 00:00:16+00`, the form of `closedTime`. */
export function spacedTime(second: number): string {
  return `${new Date(second * 1000).toISOString().slice(0, 19).replace('T', ' ')}+00`;
}

/** `2026-08-31`. */
export function isoDate(second: number): string {
  return new Date(second * 1000).toISOString().slice(0, 10);
}
