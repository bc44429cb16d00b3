// The chart, book and trades of one market, kept current by the stream.
import { createSeriesMarkers, LineSeries } from './lightweight-charts.js';
import { flash, follow, paced, percent, showChange } from './live.js';
import { openAlertForm } from './market-alert.js';
import { colors, drawnCandle, openChart, paintChart } from './price-chart.js';

const SERIES_EVERY_MS = 10_000;
const TAPE_EVERY_MS = 2_000;
const COLD_AGAIN_MS = 3_000;
/** Of the width of a chart, and at least half a label of its axis of time, in pixels. */
const ROOM_AT_ENDS = 0.05;
const HALF_LABEL = 26;
/** The live end of the line gets a point this often, because each point lays out the whole chart. */
const POINT_SECONDS = 10;
/** More prices beside the marks of a chart would cover each other. */
const MAX_MARK_TEXTS = 12;

const root = document.querySelector('[data-market]');
const { outcome, source, stream } = root.dataset;
/** The start page shows one outcome and one range to everyone. */
const isPublic = 'isPublic' in root.dataset;
const box = document.getElementById('market-chart');
const legend = document.querySelector('[data-legend]');
const zoom = document.querySelector('[data-zoom]');
let { range, kind } = box.dataset;
let isZoomed = false;
let drawn = { line: [], candles: [], interval: '5m' };

const inside = (value) => (value < -1e-9 || value > 1 + 1e-9 ? '' : Math.abs(value).toFixed(2));
const opened = openChart(box, {
  rightOffset: 2,
  pane: 1,
  layout: { panes: { enableResize: false } },
  handleScale: { axisPressedMouseMove: { time: true, price: false } },
});
const { chart, candles, volume } = opened;
const whole = () => (isZoomed ? undefined : { priceRange: { minValue: 0, maxValue: 1 } });
const shared = {
  priceFormat: { type: 'custom', minMove: 0.0001, formatter: inside },
  autoscaleInfoProvider: (original) => whole() ?? original(),
};
const line = chart.addSeries(LineSeries, { ...shared, lineWidth: 2 });
candles.applyOptions(shared);
chart.panes()[1]?.setHeight(64);
// The uppermost label of the axis would be cut.
volume.priceScale().applyOptions({ scaleMargins: { top: 0.3, bottom: 0 } });
line.priceScale().applyOptions({ scaleMargins: { top: 0.06, bottom: 0.04 } });

function paint() {
  paintChart(opened, drawn.candles);
  line.applyOptions({ color: colors().series, visible: kind === 'line' });
  candles.applyOptions({ visible: kind === 'candle' });
}

const orderForm = document.getElementById('order-form');

/** The order of the form; its result is a part of the tape. */
function orderOf() {
  if (!orderForm) return {};
  const fields = new FormData(orderForm);
  return { side: fields.get('side'), size: fields.get('size') };
}

async function read(path) {
  const asked = new URLSearchParams(
    isPublic ? { outcome } : { outcome, range, ...(path === 'tape.json' && orderOf()) },
  );
  const query = `?${asked}`;
  const answer = await fetch(`${source}/${path}${query}`, {
    headers: { Accept: 'application/json' },
  });
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  return answer.json();
}

/** Admits answers in the order of their requests: a late answer must not replace a newer one. */
function inOrder() {
  let asked = 0;
  let shown = 0;
  return () => {
    const turn = ++asked;
    return () => {
      if (turn < shown) return false;
      shown = turn;
      return true;
    };
  };
}
const seriesTurn = inOrder();
const tapeTurn = inOrder();

async function loadSeries({ fit = false } = {}) {
  const asked = range;
  const isNewest = seriesTurn();
  const found = await read('series.json');
  if (asked !== range || !isNewest()) return;
  drawn = {
    interval: found.interval,
    line: found.line,
    candles: found.candles.map(drawnCandle),
  };
  line.setData(drawn.line);
  candles.setData(drawn.candles.map(({ volume: _, ...candle }) => candle));
  paint();
  if (fit) showAll();
  box.dataset.drawn = String(drawn.line.length);
  legend.textContent =
    drawn.line.length + drawn.candles.length === 0
      ? 'No price of this range is stored yet. Choose a longer range.'
      : '';
}

/** All points, with room for the texts at both ends. */
function showAll() {
  const count = new Set([...drawn.line, ...drawn.candles].map(({ time }) => time)).size;
  if (count === 0) return;
  const share = HALF_LABEL / Math.max(chart.timeScale().width(), 4 * HALF_LABEL);
  const room = Math.max(1, count * ROOM_AT_ENDS, (count * share) / (1 - 2 * share));
  chart.timeScale().setVisibleLogicalRange({ from: -room, to: count - 1 + room });
}

/** The markup of the book and of the trades, as the server sent it. */
const shownParts = new Map();

async function loadTape() {
  if (isPublic) return;
  const isNewest = tapeTurn();
  const parts = await read('tape.json');
  if (!isNewest()) return;
  for (const [name, markup] of Object.entries(parts)) {
    if (shownParts.get(name) === markup) continue;
    // A part per frame keeps each task short.
    await new Promise(requestAnimationFrame);
    if (!isNewest()) return;
    shownParts.set(name, markup);
    // Markup from the server, which escapes all values.
    document.querySelector(`[data-part="${name}"]`).innerHTML = markup;
  }
}

function notRead(error) {
  legend.textContent = `The newest figures cannot be read (${error.message}). The page reads them again at the next change.`;
}

/** Runs at most once per period, and once more when it was asked meanwhile. A failure waits for the next call. */
function throttled(periodMs, run) {
  let timer;
  let last = 0;
  return () => {
    if (timer !== undefined) return;
    timer = setTimeout(
      () => {
        timer = undefined;
        last = performance.now();
        run().catch(notRead);
      },
      Math.max(0, last + periodMs - performance.now()),
    );
  };
}
const soonSeries = throttled(SERIES_EVERY_MS, loadSeries);
const soonTape = throttled(TAPE_EVERY_MS, loadTape);

const figures = (time) => new Date(time * 1_000).toISOString().slice(0, 16).replace('T', ' ');
chart.subscribeCrosshairMove(({ time, seriesData, hoveredObjectId }) => {
  const mark = marks[hoveredObjectId];
  if (mark) {
    legend.textContent = `would have fired ${mark.when} UTC · ${percent(mark.price)}`;
    return;
  }
  const at = seriesData.get(kind === 'line' ? line : candles);
  if (time === undefined || !at) {
    legend.textContent = '';
    return;
  }
  const bar = seriesData.get(volume);
  const traded = bar ? ` · volume ${bar.value.toLocaleString('en-US', { maximumFractionDigits: 2 })}` : '';
  legend.textContent =
    kind === 'line'
      ? `${figures(time)} UTC · ${percent(at.value)}${traded}`
      : `${figures(time)} UTC · O ${at.open} H ${at.high} L ${at.low} C ${at.close}${traded}`;
});

/** The firings that the alert of the form would have had. */
let marks = [];
const marked = [line, candles].map((series) => createSeriesMarkers(series, []));
function drawMarks() {
  const { ink: color } = colors();
  const hasText = marks.length <= MAX_MARK_TEXTS;
  const drawnMarks = marks.map(({ time, price }, id) => ({
    id,
    time,
    price,
    position: 'atPriceMiddle',
    shape: 'circle',
    color,
    ...(hasText && { text: percent(price) }),
  }));
  for (const each of marked) each.setMarkers(drawnMarks);
  box.dataset.marks = String(marks.length);
}

orderForm?.addEventListener('submit', (event) => {
  event.preventDefault();
  const address = new URL(location.href);
  for (const [name, value] of Object.entries(orderOf())) address.searchParams.set(name, value);
  history.replaceState(null, '', address);
  loadTape().then(sayOrder).catch(notRead);
});

/** Says the result of a submitted order once: the figures change with each book. */
function sayOrder() {
  const problem = document.querySelector('[data-part="order"] .problem');
  const size = orderForm.elements.namedItem('size');
  size.toggleAttribute('aria-invalid', problem !== null);
  if (problem) size.setAttribute('aria-describedby', problem.id);
  else size.removeAttribute('aria-describedby');
  const cost = document.querySelector('[data-part="order"] strong')?.textContent;
  document.querySelector('[data-order-status]').textContent =
    problem?.textContent ?? (cost === undefined ? '' : `Price with fee: ${cost}`);
}

const form = document.getElementById('alert-form');
const lines = [];
function drawAlerts() {
  const color = colors().accent;
  for (const { series, line: drawnLine } of lines.splice(0)) series.removePriceLine(drawnLine);
  for (const link of document.querySelectorAll('[data-alert]')) {
    const options = { price: Number(link.dataset.alert), color, lineStyle: 2, lineWidth: 1, title: 'alert' };
    for (const series of [line, candles]) lines.push({ series, line: series.createPriceLine(options) });
  }
}

let latest = Number(document.querySelector('.headline [data-price]').textContent.replace(' %', '')) / 100;
const alertForm = form && openAlertForm(form, { latest: () => latest, showMarks });
function showMarks(shown) {
  marks = shown;
  drawMarks();
}
if (alertForm) {
  chart.subscribeClick(({ point, paneIndex }) => {
    if (!point || (paneIndex ?? 0) !== 0) return;
    const price = (kind === 'line' ? line : candles).coordinateToPrice(point.y);
    if (price !== null && price > 0 && price < 1) alertForm.open(price);
  });
}

const headline = document.querySelector(`.headline [data-price]`);
const moved = document.querySelector('.headline [data-change]');
const named = document.querySelector('.headline-label').textContent;
const title = /^yes$/i.test(named) ? document.title : `${named} · ${document.title}`;
const showPrice = paced((_, price) => {
  latest = Number(price);
  if (form?.open) alertForm.showDistance();
  flash(headline, percent(price));
  if (!isPublic) document.title = `${percent(price)} ${title}`;
  if (moved) showChange(moved, moved.dataset.from, price);
  const last = drawn.line.at(-1);
  if (!last) return;
  const now = Math.floor(Date.now() / 1_000 / POINT_SECONDS) * POINT_SECONDS;
  line.update({ time: Math.max(last.time, now), value: Number(price) });
});

follow({
  url: stream,
  hasSession: !isPublic,
  line: document.querySelector('[data-live]'),
  on(type, message) {
    if (type === 'price' && message.outcome_id === outcome && message.data.price !== undefined) {
      showPrice('price', message.data.price);
    } else if (type === 'snapshot') {
      const quote = message.data.outcomes.find(({ outcome_id }) => outcome_id === outcome);
      if (quote?.price !== undefined) showPrice('price', quote.price);
    } else if (type === 'book' || type === 'trade') {
      soonTape();
    } else if (type === 'candle' && message.outcome_id === outcome) {
      soonSeries();
    }
  },
  async read() {
    await Promise.all([loadSeries(), loadTape()]);
  },
});

document.addEventListener('click', (event) => {
  const link = event.target.closest?.('a[data-switch]');
  const name = link?.dataset.switch;
  if (!name || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  history.pushState(null, '', link.href);
  choose();
});
addEventListener('popstate', choose);

function choose() {
  const query = new URLSearchParams(location.search);
  // Another outcome is another page.
  if ((query.get('outcome') ?? outcome) !== outcome) return location.reload();
  const chosen = { range: query.get('range') ?? '1d', chart: query.get('chart') ?? 'line' };
  const isOther = chosen.range !== range;
  ({ range, chart: kind } = chosen);
  for (const link of document.querySelectorAll('a[data-switch]')) {
    const name = link.dataset.switch;
    if (!name) continue;
    if (link.textContent === chosen[name]) link.setAttribute('aria-current', 'true');
    else link.removeAttribute('aria-current');
    const target = new URL(link.href);
    for (const [each, value] of Object.entries(chosen)) if (each !== name) target.searchParams.set(each, value);
    link.href = target.pathname + target.search;
  }
  alertForm?.choose(range, isOther);
  if (isOther) loadSeries({ fit: true }).catch(notRead);
  else paint();
}

if (zoom) zoom.hidden = false;
zoom?.addEventListener('click', () => {
  isZoomed = !isZoomed;
  zoom.setAttribute('aria-pressed', String(isZoomed));
  zoom.textContent = isZoomed ? 'Axis from 0 to 1' : 'Zoom the axis';
  for (const each of [line, candles]) each.applyOptions({ autoscaleInfoProvider: shared.autoscaleInfoProvider });
});

matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  paint();
  drawAlerts();
  drawMarks();
});
box.querySelector('.fallback')?.remove();
paint();
drawAlerts();
loadSeries({ fit: true }).catch(notRead);
if (document.querySelector('[data-is-cold="1"]')) setTimeout(soonTape, COLD_AGAIN_MS);
