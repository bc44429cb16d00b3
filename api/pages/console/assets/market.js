// The chart, book and trades of one market, kept current by the stream.
import { choicesOfAddress, connectControls, showParts } from './chart-controls.js';
import { connectDepth } from './depth.js';
import { flash, follow, paced, percent, showChange } from './live.js';
import { openAlertForm } from './market-alert.js';
import { openMarketChart } from './market-chart.js';

const SERIES_EVERY_MS = 10_000;
const TAPE_EVERY_MS = 2_000;
const COLD_AGAIN_MS = 3_000;

const root = document.querySelector('[data-market]');
const { outcome, source, stream } = root.dataset;
/** The start page shows one outcome and one range to everyone. */
const isPublic = 'isPublic' in root.dataset;
const box = document.getElementById('market-chart');
const legend = document.querySelector('[data-legend]');
const chart = openMarketChart(box, legend, { kind: box.dataset.kind });

const orderForm = document.getElementById('order-form');

/** The order of the form; its result is a part of the tape. */
function orderOf() {
  if (!orderForm) return {};
  const fields = new FormData(orderForm);
  return { side: fields.get('side'), size: fields.get('size') };
}

async function read(path) {
  const asked = new URLSearchParams(isPublic || path === 'tape.json' ? {} : choicesOfAddress());
  asked.set('outcome', outcome);
  if (path === 'tape.json') for (const [name, value] of Object.entries(orderOf())) asked.set(name, value);
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
  const asked = choicesOfAddress().toString();
  const isNewest = seriesTurn();
  const found = await read('series.json');
  // Another choice has its own answer.
  if (asked !== choicesOfAddress().toString() || !isNewest()) return;
  const { parts, ...data } = found;
  chart.show(data, { fit });
  showParts(parts);
}

/** The markup of the book and of the trades, as the server sent it. */
const shownParts = new Map();

const depth = document.querySelector('[data-part="depth"]');
const showDepth = depth ? connectDepth(depth, document.querySelector('[data-depth]')) : undefined;

const tradeCells = () => [...document.querySelectorAll('[data-trade]')];
const tradesOf = () => new Set(tradeCells().map(({ dataset: { trade } }) => trade));

/** Each new trade flashes once. */
function flashNew(known) {
  for (const cell of tradeCells()) if (!known.has(cell.dataset.trade)) cell.closest('tr').classList.add('flashed');
}

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
    const known = name === 'trades' ? tradesOf() : undefined;
    showParts({ [name]: markup });
    if (name === 'depth') showDepth?.();
    if (known?.size > 0) flashNew(known);
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
let latest = Number(document.querySelector('.headline [data-price]').textContent.replace(' %', '')) / 100;
const alertForm = form && openAlertForm(form, { latest: () => latest, showMarks: chart.showMarks });
chart.chart.subscribeClick(({ point, paneIndex, hoveredObjectId }) => {
  const { path } = chart.markOf(hoveredObjectId) ?? {};
  if (path) return location.assign(path);
  if (!alertForm || !point || (paneIndex ?? 0) !== 0) return;
  const price = chart.priceAt(point.y);
  if (price !== null && price > 0 && price < 1) alertForm.open(price);
});

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
  chart.update(latest, outcome);
});

/** Other outcomes of the market, when the chart compares them. */
const showOther = paced((id, price) => chart.update(Number(price), id));

follow({
  url: stream,
  hasSession: !isPublic,
  line: document.querySelector('[data-live]'),
  on(type, message) {
    if (type === 'price' && message.data.price !== undefined) {
      if (message.outcome_id === outcome) showPrice('price', message.data.price);
      else showOther(message.outcome_id, message.data.price);
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

connectControls({
  chart,
  load: (options) => loadSeries(options).catch(notRead),
  // Another outcome is another page.
  isPageOf: (query) => (query.get('outcome') ?? outcome) === outcome,
  onChoice: ({ range, isOtherRange }) => alertForm?.choose(range, isOtherRange),
});
loadSeries({ fit: true }).catch(notRead);
if (document.querySelector('[data-is-cold="1"]')) setTimeout(soonTape, COLD_AGAIN_MS);
