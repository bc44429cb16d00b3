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

/** A point of a line. `gap`: data is missing between it and the next one, so the line is broken. */
interface LinePoint extends Point {
  gap?: true;
}

/** A point with a title. */
export interface ChartMark extends Point {
  title: string;
}

/** A hatched time of a chart, on the axis of its lines. */
export interface ChartBand {
  from: number;
  to: number;
  classes: string;
}

/** A line in the colour and the pattern of its place in a chart, for legends. */
export function lineSwatch(index: number): Html {
  return html`<svg class="line-swatch" viewBox="0 0 24 4" width="24" height="4" aria-hidden="true"><path class="line series-${index % 8}" d="M0 2H24"/></svg>`;
}

/**
 * Lines and marks on an axis of 0 to 1, for browsers without scripts. `span`: the ends of the axis of time; default: the ends of the lines.
 * `bands`: times that are hatched. `level`: a value with a dashed line.
 */
export function lineChart(
  lines: readonly (readonly LinePoint[])[],
  label: string,
  {
    marks = [],
    span,
    bands = [],
    level,
  }: {
    marks?: readonly ChartMark[];
    span?: readonly [from: number, to: number];
    bands?: readonly ChartBand[];
    level?: number | undefined;
  } = {},
): Html {
  const all = lines.flat();
  const [fromX, toX] = span ?? [Math.min(...all.map(({ x }) => x)), Math.max(...all.map(({ x }) => x))];
  const box = { ...CHART, fromX, toX, low: 0, span: 1 };
  const grid = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const y = fixed((1 - share) * (CHART.height - 2) + 1);
    return html`<path class="gridline" d="M0 ${y}H${CHART.width}"/>`;
  });
  const dashed =
    level !== undefined && html`<path class="level" d="${path([{ x: fromX, y: level }], box)}H${CHART.width}"/>`;
  return html`<svg class="line-chart" viewBox="0 0 ${CHART.width} ${CHART.height}" preserveAspectRatio="none" role="img"
 aria-label="${label}">${grid}${bands.map(({ from, to, classes }) => {
   const [left, right] = [Math.max(from, fromX), Math.min(to, toX)];
   return left < right && html`<path class="${classes}" d="${hatching(left, right, box)}"/>`;
 })}${dashed}${lines.map(
   (points, index) => points.length > 1 && html`<path class="line series-${index % 8}" d="${path(points, box)}"/>`,
 )}${marks.map(
   // A dot is a line without length, so that the stretched picture does not distort it.
   ({ title, ...point }) => html`<path class="mark" d="${path([point], box)}h0.01"><title>${title}</title></path>`,
 )}</svg>`;
}

interface Box {
  width: number;
  height: number;
  fromX: number;
  toX: number;
  low: number;
  span: number;
}

const leftOf = (x: number, { width, fromX, toX }: Box) => ((x - fromX) / Math.max(1, toX - fromX)) * width;
const HATCH_STEP = 8;

/** Slanted lines between two times. */
function hatching(from: number, to: number, box: Box): string {
  const [left, right] = [leftOf(from, box), Math.max(leftOf(to, box), leftOf(from, box) + 2)];
  const { height } = box;
  let drawn = '';
  // A line runs to the upper right; its ends are cut at the sides of the band.
  for (let at = left - height; at < right; at += HATCH_STEP) {
    const [start, end] = [Math.max(left, at), Math.min(right, at + height)];
    if (start < end)
      drawn += `M${fixed(start)} ${fixed(height - (start - at))}L${fixed(end)} ${fixed(height - (end - at))}`;
  }
  return drawn;
}

function path(points: readonly LinePoint[], box: Box): string {
  const { height, low, span } = box;
  let isBroken = true;
  return points
    .map(({ x, y, gap = false }) => {
      const top = (1 - (y - low) / span) * (height - 4) + 2;
      const place = `${isBroken ? 'M' : 'L'}${fixed(leftOf(x, box))} ${fixed(top)}`;
      // A point between two gaps is a dot.
      const isAlone = isBroken && gap;
      isBroken = gap;
      return isAlone ? `${place}h0.01` : place;
    })
    .join('');
}

function fixed(value: number): string {
  return String(Math.round(value * 10) / 10);
}

const BARS = { width: 240, height: 56 };
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
  const step = BARS.width / values.length;
  const shapes = values.map((value, index) => {
    const x = (index * step).toFixed(2);
    const width = (step - 1).toFixed(2);
    if (value === null) return html`<rect class="gap" x="${x}" y="${BARS.height - 1}" width="${width}" height="1"/>`;
    // A non-zero value stays visible.
    const height = value === 0 ? 0 : Math.max(1.5, Math.min(1, value / scale) * (BARS.height - 2));
    const bar = html`<rect x="${x}" y="${(BARS.height - 1 - height).toFixed(2)}" width="${width}" height="${height.toFixed(2)}"/>`;
    return value > scale ? html`${bar}<rect class="cut" x="${x}" y="5" width="${width}" height="2.5"/>` : bar;
  });
  return html`<svg class="bars" viewBox="0 0 ${BARS.width} ${BARS.height}" preserveAspectRatio="none" role="img" aria-label="${label}">
<rect class="base" x="0" y="${BARS.height - 1}" width="${BARS.width}" height="1"/>${shapes}</svg>`;
}

const DEPTH_WIDTH = 100;

/** The size of a level of a book, as a share of the largest one. Hidden from screen readers: the cell beside it has the figure. */
export function depthBar(share: number, classes = 'depth'): Html {
  const width = Math.max(1, share * DEPTH_WIDTH).toFixed(1);
  return html`<svg class="${classes}" viewBox="0 0 ${DEPTH_WIDTH} 10" preserveAspectRatio="none" aria-hidden="true"><rect width="${width}" height="10"/></svg>`;
}

const DEPTH_BOX = { width: 400, height: 120 };
/** The shown prices reach this many times as far as the worst price of the order. */
const DEPTH_REACH = 1.6;
const LEAST_REACH = 0.05;

export interface DepthLevel {
  price: number;
  size: number;
}
type DepthSide = 'bids' | 'asks';

/**
 * The sizes of a book, summed from the best price of each side. With an order, the prices around the middle, and the part that the order
 * takes is filled; without one, the whole book. Both sides are best first. The script reads the levels from the figure.
 */
export function depthChart(
  book: Readonly<Record<DepthSide, readonly DepthLevel[]>>,
  label: string,
  used?: { side: DepthSide; size: number },
): Html {
  const best = [book.bids[0], book.asks[0]].flatMap((level) => (level ? [level.price] : []));
  if (best.length === 0) return html``;
  const middle = best.reduce((sum, price) => sum + price, 0) / best.length;
  const taken = used === undefined ? [] : takenOf(book[used.side], used.size);
  const reached = used === undefined ? [...book.bids, ...book.asks] : taken;
  const distance = Math.max(0, ...reached.map(({ price }) => Math.abs(price - middle)));
  const reach = Math.max(LEAST_REACH, (used === undefined ? 1 : DEPTH_REACH) * distance);
  const [from, to] = [Math.max(0, middle - reach), Math.min(1, middle + reach)];
  const shown = (levels: readonly DepthLevel[]) => levels.filter(({ price }) => price >= from && price <= to);
  const total = (levels: readonly DepthLevel[]) => levels.reduce((sum, { size }) => sum + size, 0);
  const highest = Math.max(total(shown(book.bids)), total(shown(book.asks)), Number.MIN_VALUE);
  const x = (price: number) => ((price - from) / Math.max(to - from, 1e-9)) * DEPTH_BOX.width;
  const y = (sum: number) => fixed((1 - sum / highest) * (DEPTH_BOX.height - 4) + 2);
  /** A level reaches from its price to the next one, or to the edge of the picture. */
  const area = (levels: readonly DepthLevel[], all: readonly DepthLevel[], classes: string) => {
    const [first] = levels;
    if (first === undefined) return html``;
    let sum = 0;
    let drawn = `M${fixed(x(first.price))} ${DEPTH_BOX.height}`;
    for (const [place, { size }] of levels.entries()) {
      sum += size;
      const edge = classes.startsWith('asks') ? DEPTH_BOX.width : 0;
      const end = all[place + 1] === undefined ? edge : x(all[place + 1]?.price ?? 0);
      drawn += `V${y(sum)}H${fixed(Math.min(DEPTH_BOX.width, Math.max(0, end)))}`;
    }
    return html`<path class="area ${classes}" d="${drawn}V${DEPTH_BOX.height}Z"/>`;
  };
  return html`<figure class="depth-chart" data-from="${from}" data-to="${to}" data-bids="${listed(book.bids)}" data-asks="${listed(book.asks)}"><svg viewBox="0 0 ${DEPTH_BOX.width} ${DEPTH_BOX.height}" preserveAspectRatio="none" role="img"
 aria-label="${label}">${area(shown(book.bids), book.bids, 'bids')}${area(shown(book.asks), book.asks, 'asks')}${used !== undefined && area(taken, book[used.side], `${used.side} used`)}<path class="cursor" d=""/></svg>
<figcaption><span class="num">${axis(from)}</span><span class="num">${axis(middle)}</span><span class="num">${axis(to)}</span></figcaption></figure>`;
}

const listed = (levels: readonly DepthLevel[]) => levels.map(({ price, size }) => `${price} ${size}`).join(',');

/** The levels that an order of a size takes; the last one in part. */
function takenOf(levels: readonly DepthLevel[], size: number): DepthLevel[] {
  const taken: DepthLevel[] = [];
  let rest = size;
  for (const level of levels) {
    if (rest <= 0) break;
    taken.push({ price: level.price, size: Math.min(level.size, rest) });
    rest -= level.size;
  }
  return taken;
}

const axis = (price: number) => String(Math.round(price * 1_000) / 1_000);
