import type { Row, SoakSample } from './report.ts';

const WIDTH = 360;
const HEIGHT = 48;

/** A self-contained page with a small chart of every figure, the warm-up shaded. */
export function sparklinePage(samples: readonly SoakSample[], rows: readonly Row[], warmUpSeconds: number): string {
  const until = Math.max(1, samples.at(-1)?.seconds ?? 1);
  const charts = rows.map(({ figure, slopePerHour, verdict }) => {
    const points = samples.flatMap(({ seconds, figures }) => {
      const value = figures[figure];
      return value === undefined || Number.isNaN(value) ? [] : [{ seconds, value }];
    });
    const top = Math.max(...points.map(({ value }) => value), Number.MIN_VALUE);
    const line = points
      .map(
        ({ seconds, value }) =>
          `${((seconds / until) * WIDTH).toFixed(1)},${(HEIGHT - (value / top) * HEIGHT).toFixed(1)}`,
      )
      .join(' ');
    return `<figure class="${verdict === 'GROWS' ? 'grows' : ''}"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${figure}">
<rect width="${((warmUpSeconds / until) * WIDTH).toFixed(1)}" height="${HEIGHT}"/><polyline points="${line}"/></svg>
<figcaption>${figure}<br><small>${slopePerHour}/h · ${verdict}</small></figcaption></figure>`;
  });
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Soak</title><style>
body{font:13px system-ui;display:grid;grid-template-columns:repeat(auto-fill,minmax(${WIDTH}px,1fr));gap:12px}
figure{margin:0}svg{width:100%;border-bottom:1px solid #ccc}rect{fill:#eee}
polyline{fill:none;stroke:#246;stroke-width:1.5;vector-effect:non-scaling-stroke}.grows polyline{stroke:#c00}
</style><h1>Soak</h1>${charts.join('\n')}</html>\n`;
}
