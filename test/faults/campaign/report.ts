import { SEED } from './seed.ts';

/** The result of one campaign. */
export interface CampaignReport {
  scenario: string;
  store: string;
  faults: number;
  alerts: number;
  events: number;
  deliveries: number;
  /** Events that were delivered more than once. */
  twice: number;
  crossings: number;
  recoveriesMs: readonly number[];
}

const COLUMNS = ['scenario', 'store', 'faults', 'alerts', 'crossings', 'events', 'deliveries', 'twice', 'p50', 'worst'];

function seconds(ms: number | undefined): string {
  return ms === undefined ? '-' : `${(ms / 1000).toFixed(1)} s`;
}

/** The reports as one table. */
export function reportTable(reports: readonly CampaignReport[]): string {
  const rows = reports.map((report) => {
    const sorted = [...report.recoveriesMs].sort((a, b) => a - b);
    return [
      report.scenario,
      report.store,
      ...[report.faults, report.alerts, report.crossings, report.events, report.deliveries, report.twice].map(String),
      seconds(sorted[Math.floor(sorted.length / 2)]),
      seconds(sorted.at(-1)),
    ];
  });
  const widths = COLUMNS.map((name, at) => Math.max(name.length, ...rows.map((row) => row[at]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  return [`faults, seed ${SEED}; p50 and worst are times to recover`, ...[COLUMNS, ...rows].map(line)].join('\n');
}
