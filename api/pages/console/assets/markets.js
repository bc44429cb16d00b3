// Searches while the user types, and keeps the prices of the table current.
import { flash, follow, paced, percent, showChange } from './live.js';

const TYPING_MS = 180;
/** The largest number of markets of one stream. */
const MAX_STREAMED = 100;

const form = document.querySelector('form[data-instant]');
let timer;
let search;
let stream;
const cells = new Map();
/** The prices that the stream sent, by outcome. */
const sent = new Map();

form?.classList.add('instant');
form?.addEventListener('input', ({ target }) => {
  clearTimeout(timer);
  if (target.type === 'search') timer = setTimeout(() => show(addressOfForm(), 'replaceState'), TYPING_MS);
  else show(addressOfForm(), 'pushState');
});
form?.addEventListener('submit', (event) => {
  event.preventDefault();
  clearTimeout(timer);
  show(addressOfForm(), 'pushState');
});
addEventListener('popstate', () => {
  if (!form) return;
  const query = new URLSearchParams(location.search);
  for (const each of form.elements) {
    if (each.name) each.value = query.get(each.name) ?? (each.tagName === 'SELECT' ? defaultOf(each) : '');
  }
  show(location.href);
});

function defaultOf(select) {
  return { status: 'open', sort: 'volume_24h' }[select.name] ?? '';
}

function addressOfForm() {
  const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ''));
  return `${form.action}?${query}`;
}

/** The results of an address; undefined for an error or the sign-in. */
async function readResults(address, signal) {
  const answer = await fetch(address, { signal, headers: { Accept: 'text/html' } });
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  return page.getElementById('results') ?? undefined;
}

async function show(address, history) {
  search?.abort();
  search = new AbortController();
  const results = document.getElementById('results');
  results.setAttribute('aria-busy', 'true');
  try {
    const found = await readResults(address, search.signal);
    // The browser shows the error or the sign-in.
    if (!found) return location.assign(address);
    results.replaceWith(found);
    if (history) window.history[history](null, '', address);
    start();
  } catch (error) {
    if (error.name === 'AbortError') return;
    results.removeAttribute('aria-busy');
    const line = results.querySelector('[data-live]');
    line.textContent = 'the search got no answer, try again';
    line.dataset.tone = 'bad';
  }
}

/** Reads the table again. A stream of other markets begins anew. */
async function readTable(signal) {
  const found = await readResults(location.href, signal);
  if (!found) throw new Error('the page has no results');
  if (signal.aborted) return;
  const results = document.getElementById('results');
  if (found.dataset.markets !== results.dataset.markets || found.dataset.venues !== results.dataset.venues) {
    results.replaceWith(found);
    start();
    return;
  }
  results.querySelector('.market-table').replaceWith(found.querySelector('.market-table'));
  findCells(results);
  for (const [outcome, price] of sent) paint(outcome, price);
  document.dispatchEvent(new CustomEvent('markets-read'));
}

function findCells(results) {
  cells.clear();
  for (const cell of results.querySelectorAll('[data-price]')) cells.set(cell.dataset.price, { price: cell });
  for (const cell of results.querySelectorAll('[data-change]')) {
    const known = cells.get(cell.dataset.change);
    if (known) known.change = cell;
  }
}

const paint = paced((outcome, price) => {
  const cell = cells.get(outcome);
  if (!cell) return;
  flash(cell.price, percent(price));
  if (cell.change) showChange(cell.change, cell.change.dataset.from, price);
});

function receive(outcome, price) {
  if (price === undefined) return;
  sent.set(outcome, price);
  // The chart of an event follows the same stream.
  document.dispatchEvent(new CustomEvent('market-price', { detail: { outcome, price } }));
  paint(outcome, price);
}

function start() {
  stream?.close();
  sent.clear();
  const results = document.getElementById('results');
  findCells(results);
  const ids = results.dataset.markets.split(',').filter(Boolean).slice(0, MAX_STREAMED);
  if (ids.length === 0) return;
  stream = follow({
    url: `/console/stream/all?channels=prices&snapshot=true&market_ids=${ids.map(encodeURIComponent).join(',')}`,
    line: results.querySelector('[data-live]'),
    hasSnapshot: true,
    venues: results.dataset.venues.split(','),
    on(type, message) {
      if (type === 'price') receive(message.outcome_id, message.data.price);
      if (type === 'snapshot') for (const { outcome_id, price } of message.data.outcomes) receive(outcome_id, price);
    },
    read: readTable,
  });
}

start();
