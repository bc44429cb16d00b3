import { type Html, html } from './html.ts';

const WIDTH = 240;
const HEIGHT = 56;
/** Bars above this multiple of the recent median are cut. */
const OUTLIER = 6;
/** The newest minutes, which decide the scale. */
const RECENT = 20;
/** The room above a cut scale that shows the ends of cut bars. */
const HEADROOM = 1.15;

type Values = readonly (number | null)[];

/**
 * The value of a full bar: the highest one, unless it exceeds the recent values by far. The first read of a venue's history would otherwise
 * flatten the rest of the chart.
 */
export function barScale(values: Values): number {
  const known = values.filter((value) => value !== null);
  const highest = Math.max(1, ...known);
  const recent = values
    .slice(-RECENT)
    .filter((value) => value !== null && value > 0)
    .toSorted((a, b) => (a ?? 0) - (b ?? 0));
  const median = recent[Math.floor(recent.length / 2)] ?? null;
  if (median === null || highest <= OUTLIER * median) return highest;
  return HEADROOM * Math.max(1, ...known.filter((value) => value <= OUTLIER * median));
}

/**
 * A bar chart with one bar per minute. The server draws it, so it needs no script. Unknown minutes are ticks; bars above the scale end in
 * a cut.
 */
export function bars(values: Values, label: string, scale = barScale(values)): Html {
  const step = WIDTH / values.length;
  const shapes = values.map((value, index) => {
    const x = (index * step).toFixed(2);
    const width = (step - 1).toFixed(2);
    if (value === null) return html`<rect class="gap" x="${x}" y="${HEIGHT - 1}" width="${width}" height="1"/>`;
    // A non-zero value stays visible.
    const height = value === 0 ? 0 : Math.max(1.5, Math.min(1, value / scale) * (HEIGHT - 2));
    const bar = html`<rect x="${x}" y="${(HEIGHT - 1 - height).toFixed(2)}" width="${width}" height="${height.toFixed(2)}"/>`;
    return value > scale ? html`${bar}<rect class="cut" x="${x}" y="5" width="${width}" height="2.5"/>` : bar;
  });
  return html`<svg class="bars" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">
<rect class="base" x="0" y="${HEIGHT - 1}" width="${WIDTH}" height="1"/>${shapes}</svg>`;
}
