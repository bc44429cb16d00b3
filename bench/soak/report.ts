import type { Retired } from './aging.ts';
import { ruleOf, type Unit } from './figures.ts';
import type { Figures } from './process-samples.ts';
import { batches, fitLine, judgeFlat, type Point } from './slopes.ts';

/** All figures of one moment, seconds since the start of the load. */
export interface SoakSample {
  readonly seconds: number;
  readonly figures: Figures;
}

/** One figure over the judged time. */
export interface Row {
  readonly figure: string;
  readonly atWarmUp: string;
  readonly atEnd: string;
  readonly slopePerHour: string;
  /** Half the width of the slope's 95 % interval. */
  readonly spread: string;
  readonly percentPerHour: string;
  readonly verdict: string;
}

export interface Report {
  readonly rows: readonly Row[];
  /** Constant figures, which `rows` omits. */
  readonly unchanged: readonly string[];
  /** Figures that must be flat but grow. */
  readonly growing: readonly string[];
}

const HOUR = 3_600;
const KEPT_BATCHES = 12;

/** Judges every figure by its samples from the end of the warm-up on. */
export function judge(samples: readonly SoakSample[], warmUpSeconds: number): Report {
  const names = [...new Set(samples.flatMap(({ figures }) => Object.keys(figures)))].sort(byGroup);
  const pointsOf = (name: string, from: number): Point[] =>
    samples.flatMap(({ seconds, figures }) => {
      const y = figures[name];
      return seconds < from || y === undefined || Number.isNaN(y) ? [] : [{ x: seconds, y }];
    });
  const trades = fitLine(pointsOf('trades stored', warmUpSeconds))?.slope ?? 0;
  const growing: string[] = [];
  const unchanged = names.filter((name) => new Set(pointsOf(name, warmUpSeconds).map(({ y }) => y)).size <= 1);
  const moving = names.filter((name) => !unchanged.includes(name));
  const rows = moving.map((figure): Row => {
    const { unit, expectation } = ruleOf(figure);
    const settled = expectation.kind === 'flat' ? (expectation.settleSeconds ?? 0) : 0;
    const points = pointsOf(figure, Math.max(warmUpSeconds, settled));
    const judged = expectation.kind === 'flat' ? judgeFlat(points, expectation) : null;
    const line = judged ? judged.line : fitLine(batches(points, KEPT_BATCHES, 'middle'));
    if (judged?.verdict === 'GROWS') growing.push(figure);
    const show = (value: number | undefined) => (value === undefined ? '' : format(value, unit));
    return {
      figure,
      atWarmUp: show(points[0]?.y),
      atEnd: show(points.at(-1)?.y),
      slopePerHour: line ? format(line.slope * HOUR, unit, true) : '',
      spread: line ? format(((line.high - line.low) / 2) * HOUR, unit) : '',
      percentPerHour:
        line && line.mean !== 0 ? `${((100 * line.slope * HOUR) / Math.abs(line.mean)).toFixed(1)} %` : '',
      verdict: judged ? judged.verdict : verdictOf(expectation.kind, line?.slope ?? 0, trades, unit),
    };
  });
  return { rows, unchanged, growing };
}

function verdictOf(kind: string, slope: number, trades: number, unit: Unit): string {
  if (kind === 'shown') return 'shown';
  if (trades <= 0) return 'kept';
  return `kept: ${format((1000 * slope) / trades, unit)} per 1,000 trades`;
}

const GROUPS = [/^runner/, /^(api|poller|aggregator|alerter|deliverer):/, /^postgres/, /^queue/, /^(marks|deliveries)/];

/** Processes first, tables last. */
function byGroup(a: string, b: string): number {
  const group = (name: string) => {
    const index = GROUPS.findIndex((pattern) => pattern.test(name));
    return index < 0 ? GROUPS.length : index;
  };
  return group(a) - group(b) || a.localeCompare(b);
}

const WORDS: Readonly<Record<Unit, string>> = { bytes: '', count: '', ms: ' ms', s: ' s', '%': ' %', '/s': '/s' };

export function format(value: number, unit: Unit, isSigned = false): string {
  const sign = isSigned && value > 0 ? '+' : '';
  if (unit === 'bytes') {
    const size = Math.abs(value);
    if (size >= 1024 * 1024) return `${sign}${(value / 1024 / 1024).toFixed(1)} MB`;
    return `${sign}${(value / 1024).toFixed(0)} kB`;
  }
  const digits = Math.abs(value) < 10 && !Number.isInteger(value) ? 2 : 0;
  return `${sign}${value.toLocaleString('en', { maximumFractionDigits: digits })}${WORDS[unit]}`;
}

/** The table as lines of aligned columns. */
export function tableOf(rows: readonly Row[]): string[] {
  const header: Row = {
    figure: 'figure',
    atWarmUp: 'after warm-up',
    atEnd: 'at the end',
    slopePerHour: 'slope/h',
    spread: '±',
    percentPerHour: '%/h',
    verdict: 'verdict',
  };
  return aligned(
    [header, ...rows].map(({ figure, verdict, ...numbers }) => [figure, ...Object.values(numbers), verdict]),
  );
}

export function retiredTable(retired: readonly Retired[]): string[] {
  const lines = retired.map(({ table, partitionsMade, partitionsDropped, rowsSeeded, rowsGone, problem }) => [
    table,
    ...[partitionsMade, partitionsDropped, rowsSeeded, rowsGone].map((value) => value.toLocaleString('en')),
    problem || 'as expected',
  ]);
  return aligned([['retention', 'partitions made', 'dropped', 'old rows seeded', 'gone', ''], ...lines]);
}

/** First and last column left-aligned, numbers right-aligned. */
function aligned(lines: readonly string[][]): string[] {
  const columns = lines[0]?.length ?? 0;
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...lines.map((line) => (line[column] ?? '').length)),
  );
  return lines.map((line) =>
    line
      .map((cell, column) => {
        if (column === 0) return cell.padEnd(widths[column] ?? 0);
        return column === columns - 1 ? cell : cell.padStart(widths[column] ?? 0);
      })
      .join('  ')
      .trimEnd(),
  );
}
