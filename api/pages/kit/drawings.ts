import { type Html, html } from './html.ts';

interface Point {
  /** Position on the axis of time, any unit. */
  x: number;
  /** 0 to 1. */
  y: number;
}

const SPARK = { width: 96, height: 28 };

/** A line of the last day without axes, scaled to its own range. Hidden from screen readers: the change stands beside it. */
export function sparkline(values: readonly (number | null)[]): Html {
  const points = values.flatMap((y, x) => (y === null ? [] : [{ x, y }]));
  if (points.length < 2) return html`<span class="none" aria-hidden="true">–</span>`;
  const low = Math.min(...points.map(({ y }) => y));
  // A flat price is a line in the middle, and small changes do not look large.
  const span = Math.max(0.02, Math.max(...points.map(({ y }) => y)) - low);
  const line = path(points, {
    ...SPARK,
    fromX: 0,
    toX: values.length - 1,
    low: low - (span - (Math.max(...points.map(({ y }) => y)) - low)) / 2,
    span,
  });
  const { width, height } = SPARK;
  return html`<svg class="spark" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" preserveAspectRatio="none"
 aria-hidden="true"><path d="${line}"/></svg>`;
}

const CHART = { width: 800, height: 300 };

/** A point with a title. */
export interface ChartMark extends Point {
  title: string;
}

/** Lines and marks on an axis of 0 to 1, for browsers without scripts. `span`: the ends of the axis of time; default: those of the lines. */
export function lineChart(
  lines: readonly (readonly Point[])[],
  label: string,
  { marks = [], span }: { marks?: readonly ChartMark[]; span?: readonly [from: number, to: number] } = {},
): Html {
  const all = lines.flat();
  const [fromX, toX] = span ?? [Math.min(...all.map(({ x }) => x)), Math.max(...all.map(({ x }) => x))];
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const y = fixed((1 - share) * (CHART.height - 2) + 1);
    return html`<path class="gridline" d="M0 ${y}H${CHART.width}"/>`;
  });
  return html`<svg class="line-chart" viewBox="0 0 ${CHART.width} ${CHART.height}" preserveAspectRatio="none" role="img"
 aria-label="${label}">${grid}${lines.map(
   (points, index) =>
     points.length > 1 &&
     html`<path class="line series-${index % 8}" d="${path(points, { ...CHART, fromX, toX, low: 0, span: 1 })}"/>`,
 )}${marks.map(
   // A dot is a line without length, so that the stretched picture does not distort it.
   ({ title, ...point }) =>
     html`<path class="mark" d="${path([point], { ...CHART, fromX, toX, low: 0, span: 1 })}h0.01"><title>${title}</title></path>`,
 )}</svg>`;
}

function path(
  points: readonly Point[],
  box: { width: number; height: number; fromX: number; toX: number; low: number; span: number },
): string {
  const { width, height, fromX, toX, low, span } = box;
  return points
    .map(({ x, y }, index) => {
      const left = ((x - fromX) / Math.max(1, toX - fromX)) * width;
      const top = (1 - (y - low) / span) * (height - 4) + 2;
      return `${index === 0 ? 'M' : 'L'}${fixed(left)} ${fixed(top)}`;
    })
    .join('');
}

function fixed(value: number): string {
  return String(Math.round(value * 10) / 10);
}
