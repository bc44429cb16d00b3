import type { Figure, Goal } from './figure.ts';

const COLUMNS = ['bench', 'figure', 'measured', 'baseline', 'ratio', 'goal', 'met'] as const;
type Row = Record<(typeof COLUMNS)[number], string>;

/** Whether a figure meets its goal; a figure without a goal always does. */
export function isMet({ ratio, goal }: Figure): boolean | undefined {
  if (goal === undefined) return undefined;
  // A number that could not be measured meets no goal.
  const value = (goal.of === undefined ? ratio : goal.of.value) ?? Number.NaN;
  return 'atLeast' in goal ? value >= goal.atLeast : value <= goal.atMost;
}

function goalText(goal: Goal): string {
  const bound = 'atLeast' in goal ? `>= ${goal.atLeast}` : `<= ${goal.atMost}`;
  return goal.of === undefined ? bound : `${goal.of.name} ${bound} ${goal.of.unit}`.trim();
}

function rowOf(bench: string, figure: Figure): Row {
  const { title, measured, baseline, ratio, goal } = figure;
  const met = isMet(figure);
  return {
    bench,
    figure: title,
    measured,
    baseline,
    ratio: ratio == null ? '-' : ratio.toFixed(ratio < 10 ? 2 : 1),
    goal: goal === undefined ? '-' : goalText(goal),
    met: met === undefined ? '-' : met ? 'yes' : 'NO',
  };
}

/** The line of a figure during the run. */
export function inOneLine(figure: Figure): string {
  const { measured, baseline, ratio, goal, met } = rowOf('', figure);
  return `${figure.title}: ${measured}; ${baseline}; ratio ${ratio}, goal ${goal}, met ${met}`;
}

/** All figures of a run as one Markdown table. */
export function tableOf(figures: readonly { bench: string; figure: Figure }[]): string {
  const rows = figures.map(({ bench, figure }) => rowOf(bench, figure));
  const widths = COLUMNS.map((column) => Math.max(column.length, ...rows.map((row) => row[column].length)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, index) => cell.padEnd(widths[index] ?? 0)).join(' | ')} |`;
  return [
    line(COLUMNS),
    line(widths.map((width) => '-'.repeat(width))),
    ...rows.map((row) => line(COLUMNS.map((column) => row[column]))),
  ].join('\n');
}
