import { type Html, html } from './html.ts';

const WIDTH = 240;
const HEIGHT = 56;

/** A bar chart with one bar per minute. The server draws it, so it needs no script. Unknown minutes are ticks. */
export function bars(values: readonly (number | null)[], label: string): Html {
  const highest = Math.max(1, ...values.map((value) => value ?? 0));
  const step = WIDTH / values.length;
  const shapes = values.map((value, index) => {
    const x = (index * step).toFixed(2);
    const width = (step - 1).toFixed(2);
    if (value === null) return html`<rect class="gap" x="${x}" y="${HEIGHT - 1}" width="${width}" height="1"/>`;
    // A non-zero value stays visible.
    const height = value === 0 ? 0 : Math.max(1.5, (value / highest) * (HEIGHT - 2));
    return html`<rect x="${x}" y="${(HEIGHT - 1 - height).toFixed(2)}" width="${width}" height="${height.toFixed(2)}"/>`;
  });
  return html`<svg class="bars" viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">
<rect class="base" x="0" y="${HEIGHT - 1}" width="${WIDTH}" height="1"/>${shapes}</svg>`;
}
