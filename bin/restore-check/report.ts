import { printable } from '../../src/domain/values/text.ts';

/** A line of `oddswire restore-check`. */
export interface Finding {
  readonly check: string;
  /** A note needs a decision or no action; a problem prevents a sound start; empty means that no data could be checked. */
  readonly state: 'ok' | 'problem' | 'note' | 'empty';
  readonly text: string;
}

/** A line per finding, and a last line with the number of problems. */
export function findingsText(findings: readonly Finding[]): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  const lines = findings.map(
    ({ check, state, text }) => `${state.padEnd('problem'.length)}  ${check.padEnd(width)}  ${printable(text)}\n`,
  );
  const problems = findings.filter(({ state }) => state === 'problem').length;
  const none = findings.some(({ state }) => state === 'empty') ? 'Nothing was compared.' : 'No problems.';
  return `${lines.join('')}${problems === 0 ? none : `Problems: ${problems}.`}\n`;
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** A duration in its largest whole unit. */
export function sayAge(seconds: number): string {
  const [unit, size] = UNITS.find(([, length]) => seconds >= length) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${unit}`;
}
