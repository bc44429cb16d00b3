// Searches while the user types, and keeps the prices of the table current.
import { flash, follow, percent, perFrame, showChange } from './live.js';

const TYPING_MS = 180;
/** The largest number of markets of one stream. */
const MAX_STREAMED = 100;

const form = document.querySelector('form[data-instant]');
let timer;
let search;
let stream;
const cells = new Map();

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

async function show(address, history) {
  search?.abort();
  search = new AbortController();
  const results = document.getElementById('results');
  results.setAttribute('aria-busy', 'true');
  try {
    const answer = await fetch(address, { signal: search.signal, headers: { Accept: 'text/html' } });
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const found = page.getElementById('results');
    // An error or the sign-in: the browser shows it.
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

function start() {
  stream?.close();
  cells.clear();
  const results = document.getElementById('results');
  for (const cell of results.querySelectorAll('[data-price]')) cells.set(cell.dataset.price, { price: cell });
  for (const cell of results.querySelectorAll('[data-change]')) {
    const known = cells.get(cell.dataset.change);
    if (known) known.change = cell;
  }
  const ids = results.dataset.markets.split(',').filter(Boolean).slice(0, MAX_STREAMED);
  if (ids.length === 0) return;
  const paint = perFrame((outcome, price) => {
    const cell = cells.get(outcome);
    if (!cell) return;
    flash(cell.price, percent(price));
    if (cell.change) showChange(cell.change, cell.change.dataset.from, price);
  });
  stream = follow({
    url: `/console/stream/all?channels=prices&snapshot=true&market_ids=${ids.map(encodeURIComponent).join(',')}`,
    line: results.querySelector('[data-live]'),
    on(type, message) {
      if (type === 'price' && message.data.price !== undefined) paint(message.outcome_id, message.data.price);
      if (type !== 'snapshot') return;
      for (const { outcome_id, price } of message.data.outcomes) if (price !== undefined) paint(outcome_id, price);
    },
  });
}

start();
