/** Milliseconds of a day in UTC, which has no leap seconds in POSIX time. */
export const DAY_MS = 86_400_000;

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
] as const;

/** Whole seconds in their largest unit without a remainder: `90 s`, `15 min`, `1 h`. */
export function span(seconds: number): string {
  const [unit, size] = UNITS.find(([, each]) => seconds % each === 0) ?? (['s', 1] as const);
  return `${seconds / size} ${unit}`;
}
