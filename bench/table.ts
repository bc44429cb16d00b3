/** A figure beside the physical limit that was measured in the same run (DESIGN section 11). */
export interface Figure {
  what: string;
  measured: string;
  baseline: string;
  ratio: string;
  goal: string;
}

/** Prints figures for a person. */
export function printFigures(figures: readonly Figure[]): void {
  console.table(Object.fromEntries(figures.map(({ what, ...rest }) => [what, rest])));
}

/** The value below which a share of the samples lies; `share` 0..1. */
export function percentile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
}

/** Thousands with a separator, no decimals. */
export function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
