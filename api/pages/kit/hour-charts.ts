import { MEASURED_DELIVERIES, type WebhookHours } from '../../../src/store/deliveries/webhook-figures.ts';
import { emptyState, type Html, html, number, table } from './html.ts';
import { percent } from './shown-values.ts';

type Hour = WebhookHours['hours'][number];

const HOURS = 24;
const HOUR_SECONDS = 3_600;
/** Drawing units; the page stretches the drawing to its width. */
const WIDTH = 10;
const GAP = 2;
const HEIGHT = 100;

/** An hour of the axis. `unknown`: its deliveries are not counted. Absent `figures`: no attempt. */
interface Slot {
  start: number;
  figures?: Hour | undefined;
  isUnknown: boolean;
}

/** Figures and charts of the attempts of the last 24 hours. */
export function lastDay(activity: WebhookHours, nowMs: number): Html {
  if (activity.day === null) {
    return emptyState(
      activity.countedSince === null
        ? 'No attempt in this period.'
        : `Not counted: the newest ${number(MEASURED_DELIVERIES)} deliveries have no attempt in this period.`,
    );
  }
  const { attempts, delivered, p50Ms, p95Ms } = activity.day;
  return html`<div class="grid">
<div class="card">Success<span class="figure">${percent(delivered, attempts)}</span><span class="hint">${number(delivered)} of ${number(attempts)} attempts</span></div>
<div class="card">p50<span class="figure">${number(p50Ms)} <small>ms</small></span><span class="hint">from the connection to the complete answer</span></div>
<div class="card">p95<span class="figure">${number(p95Ms)} <small>ms</small></span><span class="hint">all attempts, including failed ones</span></div>
</div>
${hourCharts(activity, nowMs)}
<p class="hint">These figures cover the attempts of the newest ${number(MEASURED_DELIVERIES)} deliveries.</p>`;
}

/** Success rate, latency and number of the attempts of each hour, with a table of the same figures. */
function hourCharts({ hours, countedSince }: Omit<WebhookHours, 'day'>, nowMs: number): Html {
  const last = Math.floor(nowMs / 1000 / HOUR_SECONDS) * HOUR_SECONDS;
  const byHour = new Map(hours.map((hour) => [hour.hour, hour]));
  const knownFrom = countedSince === null ? 0 : countedSince.getTime() / 1000;
  const slots = Array.from({ length: HOURS }, (_, index): Slot => {
    const start = last - (HOURS - 1 - index) * HOUR_SECONDS;
    return { start, figures: byHour.get(start), isUnknown: start + HOUR_SECONDS <= knownFrom };
  });
  const failed = hours.reduce((sum, hour) => sum + hour.attempts - hour.delivered, 0);
  const slowest = Math.max(0, ...hours.map(({ p95Ms }) => p95Ms));
  // One timeout would flatten all other hours on an even scale.
  const latencyShare = (ms: number) => Math.log1p(ms) / Math.max(1, Math.log1p(slowest));
  const most = Math.max(1, ...hours.map(({ attempts }) => attempts));
  const worst = Math.min(1, ...hours.map(({ attempts, delivered }) => delivered / attempts));
  return html`<div class="hour-charts">${chart(slots, {
    name: 'Success rate',
    keys: html`<span class="key delivered">delivered</span> <span class="key failed">failed</span> <span class="muted">of the attempts of an hour, to 100 %</span>`,
    label: `Success rate per hour in the last 24 hours, at least ${percent(Math.floor(worst * 1e6), 1e6)}`,
    title: ({ delivered, attempts }) => `${percent(delivered, attempts)} of ${attempts} delivered`,
    parts: ({ delivered, attempts }) => [
      ['failed', 1],
      ['delivered', delivered / attempts],
    ],
  })}${chart(slots, {
    name: 'Latency',
    keys: html`<span class="key p50">p50</span> <span class="key p95">p95</span> <span class="muted">to ${number(slowest)} ms, logarithmic</span>`,
    label: `Latency per hour in the last 24 hours, p95 at most ${slowest} ms`,
    title: ({ p50Ms, p95Ms }) => `p50 ${p50Ms} ms, p95 ${p95Ms} ms`,
    parts: ({ p50Ms, p95Ms }) => [
      ['p95', latencyShare(p95Ms)],
      ['p50', latencyShare(p50Ms)],
    ],
  })}${chart(slots, {
    name: 'Attempts',
    keys: html`<span class="key delivered">delivered</span> <span class="key failed">failed</span> <span class="muted">per hour, to ${number(most)}</span>`,
    label: `Attempts per hour in the last 24 hours, ${failed} failed`,
    title: ({ delivered, attempts }) => `${delivered} of ${attempts} delivered`,
    parts: ({ delivered, attempts }) => [
      ['failed', attempts / most],
      ['delivered', delivered / most],
    ],
  })}</div>
<p class="hint">A tick at the bottom is an hour without an attempt${
    slots.some(({ isUnknown }) => isUnknown) && ', and a grey bar an hour whose deliveries are not counted'
  }. Times are in UTC.</p>
<details class="hour-table"><summary>The same figures as a table</summary>${table<Slot>({
    caption: 'Attempts per hour, newest first',
    columns: [
      { label: 'Hour (UTC)', cell: ({ start }) => clock(start) },
      {
        label: 'Attempts',
        cell: ({ figures, isUnknown }) => (isUnknown ? 'not counted' : number(figures?.attempts ?? 0)),
        isNumeric: true,
      },
      {
        label: 'Failed',
        cell: ({ figures }) => number(figures && figures.attempts - figures.delivered),
        isNumeric: true,
      },
      {
        label: 'Success',
        cell: ({ figures }) => (figures ? percent(figures.delivered, figures.attempts) : number(null)),
        isNumeric: true,
      },
      { label: 'p50', cell: ({ figures }) => ms(figures?.p50Ms), isNumeric: true },
      { label: 'p95', cell: ({ figures }) => ms(figures?.p95Ms), isNumeric: true },
    ],
    rows: slots.toReversed(),
    empty: '',
  })}</details>`;
}

interface Chart {
  name: string;
  keys: Html;
  label: string;
  /** Of the bar of an hour. */
  title(hour: Hour): string;
  /** Heights from the bottom as shares of the drawing, the tallest first. */
  parts(hour: Hour): (readonly [kind: string, share: number])[];
}

function chart(slots: readonly Slot[], { name, keys, label, title, parts }: Chart): Html {
  const bars = slots.map(({ start, figures, isUnknown }, index) => {
    const x = index * WIDTH;
    const rect = (kind: string, height: number) =>
      html`<rect class="${kind}" x="${x}" y="${fixed(HEIGHT - height)}" width="${WIDTH - GAP}" height="${fixed(height)}"/>`;
    if (isUnknown) return html`<g><title>${clock(start)}: not counted</title>${rect('unknown', HEIGHT)}</g>`;
    if (figures === undefined) return html`<g><title>${clock(start)}: no attempt</title>${rect('base', 1)}</g>`;
    return html`<g><title>${clock(start)}: ${title(figures)}</title>${parts(figures).map(([kind, share]) => rect(kind, share * HEIGHT))}</g>`;
  });
  const first = slots[0]?.start ?? 0;
  const last = slots.at(-1)?.start ?? 0;
  return html`<figure class="card hours"><figcaption><strong>${name}</strong> ${keys}</figcaption>
<svg class="bars" viewBox="0 0 ${HOURS * WIDTH - GAP} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${label}">${bars}</svg>
<div class="axis" aria-hidden="true"><span>${clock(first)}</span><span>${clock(slots[HOURS / 2]?.start ?? last)}</span><span>${clock(last)}</span></div></figure>`;
}

function ms(value: number | undefined): Html {
  return value === undefined ? number(null) : html`${number(value)} ms`;
}

function clock(hour: number): string {
  return new Date(hour * 1000).toISOString().slice(11, 16);
}

function fixed(value: number): string {
  return value.toFixed(2);
}
