import type { WebhookActivity } from '../../../src/store/ops/webhooks.ts';
import { type Html, html, number, table } from '../kit/html.ts';

type Hour = WebhookActivity['hours'][number];

const HOURS = 24;
const HOUR_SECONDS = 3_600;
/** Drawing units; the page stretches the drawing to its width. */
const WIDTH = 10;
const GAP = 2;
const HEIGHT = 100;

/** A stacked bar chart of delivered and failed attempts per hour, oldest first, with a table of the same figures. */
export function hourChart(hours: readonly Hour[], nowMs: number): Html {
  const last = Math.floor(nowMs / 1000 / HOUR_SECONDS) * HOUR_SECONDS;
  const byHour = new Map(hours.map((hour) => [hour.hour, hour]));
  const slots = Array.from({ length: HOURS }, (_, index) => last - (HOURS - 1 - index) * HOUR_SECONDS);
  const most = Math.max(1, ...hours.map(({ attempts }) => attempts));
  const failed = hours.reduce((sum, hour) => sum + hour.attempts - hour.delivered, 0);
  const bars = slots.map((slot, index) => {
    const hour = byHour.get(slot);
    const x = index * WIDTH;
    if (hour === undefined)
      return html`<rect class="base" x="${x}" y="${HEIGHT - 1}" width="${WIDTH - GAP}" height="1"/>`;
    const whole = (hour.attempts / most) * HEIGHT;
    const good = (hour.delivered / most) * HEIGHT;
    return html`<g><title>${clock(slot)}: ${hour.delivered} of ${hour.attempts} delivered</title>
<rect class="failed" x="${x}" y="${fixed(HEIGHT - whole)}" width="${WIDTH - GAP}" height="${fixed(whole - good)}"/>
<rect class="delivered" x="${x}" y="${fixed(HEIGHT - good)}" width="${WIDTH - GAP}" height="${fixed(good)}"/></g>`;
  });
  return html`<figure class="card hours">
<figcaption><span class="key delivered">delivered</span> <span class="key failed">failed</span> <span class="muted">attempts per hour, UTC</span></figcaption>
<svg class="bars" viewBox="0 0 ${HOURS * WIDTH - GAP} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="Attempts per hour in the last 24 hours, ${failed} failed">${bars}</svg>
<div class="axis" aria-hidden="true"><span>${clock(slots[0] ?? last)}</span><span>${clock(slots[HOURS / 2] ?? last)}</span><span>${clock(last)}</span></div>
<details><summary>Table</summary>${table<Hour>({
    caption: 'Attempts per hour, newest first',
    columns: [
      { label: 'Hour (UTC)', cell: ({ hour }) => clock(hour) },
      { label: 'Attempts', cell: ({ attempts }) => number(attempts), isNumeric: true },
      { label: 'Delivered', cell: ({ delivered }) => number(delivered), isNumeric: true },
      { label: 'Failed', cell: ({ attempts, delivered }) => number(attempts - delivered), isNumeric: true },
      { label: 'p50', cell: ({ p50Ms }) => html`${number(p50Ms)} ms`, isNumeric: true },
      { label: 'p95', cell: ({ p95Ms }) => html`${number(p95Ms)} ms`, isNumeric: true },
    ],
    rows: [...hours].reverse(),
    empty: 'No attempt in this period.',
  })}</details></figure>`;
}

function clock(hour: number): string {
  return new Date(hour * 1000).toISOString().slice(11, 16);
}

function fixed(value: number): string {
  return value.toFixed(2);
}
