// Applies filters at once, and keeps the prices of the table current.
import { flash, follow, paced, percent, showChange } from './live.js';

/** The largest number of markets of one stream. */
const MAX_STREAMED = 100;

const form = document.querySelector('form[data-instant]');
const defaults = JSON.parse(form?.dataset.defaults ?? '{}');
let search;
let stream;
/** The cells of an outcome: it may stand among the leaders of a row and in its list. */
const cells = new Map();
/** The prices that the stream sent, by outcome. */
const sent = new Map();

form?.classList.add('instant');
form?.addEventListener('change', () => show(addressOfForm(), 'pushState'));
form?.addEventListener('submit', (event) => {
  event.preventDefault();
  show(addressOfForm(), 'pushState');
});
addEventListener('popstate', () => {
  if (!form) return;
  const query = new URLSearchParams(location.search);
  for (const each of form.elements) if (each.name) each.value = query.get(each.name) ?? defaults[each.name] ?? '';
  show(location.href);
});

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

/** Reads the tables again. A stream of other markets begins anew. Open rows stay open. */
async function readTable(signal) {
  const found = await readResults(location.href, signal);
  if (!found) throw new Error('the page has no results');
  if (signal.aborted) return;
  const results = document.getElementById('results');
  const open = new Set(openRows(results).map(({ dataset }) => dataset.members));
  for (const row of found.querySelectorAll('[data-members]')) row.open = open.has(row.dataset.members);
  const isSame = ['markets', 'venues'].every((name) => found.dataset[name] === results.dataset[name]);
  const [before, after] = [results, found].map((each) => [...each.querySelectorAll('.market-table')]);
  if (!isSame || before.length !== after.length) {
    results.replaceWith(found);
    start();
    return;
  }
  for (const [at, table] of before.entries()) table.replaceWith(after[at]);
  findCells(results);
  for (const [outcome, price] of sent) paint(outcome, price);
  document.dispatchEvent(new CustomEvent('markets-read'));
}

const openRows = (results) => [...results.querySelectorAll('[data-members][open]')];
const idsIn = (text) => text.split(',').filter(Boolean);

function findCells(results) {
  cells.clear();
  for (const cell of results.querySelectorAll('[data-price]')) cellsOf(cell.dataset.price).prices.push(cell);
  for (const cell of results.querySelectorAll('[data-change]')) cellsOf(cell.dataset.change).changes.push(cell);
}

function cellsOf(outcome) {
  const known = cells.get(outcome) ?? { prices: [], changes: [] };
  cells.set(outcome, known);
  return known;
}

const paint = paced((outcome, price) => {
  const found = cells.get(outcome);
  if (!found) return;
  for (const cell of found.prices) flash(cell, percent(price));
  for (const cell of found.changes) showChange(cell, cell.dataset.from, price);
});

function receive(outcome, price) {
  if (price === undefined) return;
  sent.set(outcome, price);
  // The chart of an event follows the same stream.
  document.dispatchEvent(new CustomEvent('market-price', { detail: { outcome, price } }));
  paint(outcome, price);
}

/** Follows the markets of open rows, then the leaders of all rows. States how many markets the stream cannot hold. */
function start() {
  stream?.close();
  sent.clear();
  const results = document.getElementById('results');
  findCells(results);
  const wanted = new Set([
    ...openRows(results).flatMap(({ dataset }) => idsIn(dataset.members)),
    ...idsIn(results.dataset.markets),
  ]);
  const ids = [...wanted].slice(0, MAX_STREAMED);
  const note = results.querySelector('[data-still]');
  if (note) {
    const left = wanted.size - ids.length;
    note.hidden = left === 0;
    note.textContent = `${left} markets at the end of the list keep the prices of the load: close a row.`;
  }
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

// Markets beyond the leaders are followed while their row is open. The event does not bubble.
document.addEventListener(
  'toggle',
  ({ target }) => {
    const leaders = new Set(idsIn(document.getElementById('results')?.dataset.markets ?? ''));
    if (target.matches('[data-members]') && idsIn(target.dataset.members).some((id) => !leaders.has(id))) start();
  },
  true,
);

start();
