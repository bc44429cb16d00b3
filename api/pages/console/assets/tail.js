// Adds the account's events to the page as they are made.
import { EVENTS, follow } from './live.js';

const MAX_SHOWN = 200;
/** A longer text without spaces is an id. */
const MAX_ID = 24;
const STATES = ['heartbeat', 'stale', 'gap', 'lagged'];

const list = document.getElementById('arrivals');
const types = list.dataset.types.split(' ');
const fields = JSON.parse(list.dataset.fields);
const count = document.querySelector('[data-count]');
let arrived = 0;

/** The market of an outcome by its token, asked once. */
const markets = new Map();
function marketOf(token) {
  if (!markets.has(token)) {
    const asked = fetch(`/console/data/outcome.json?${new URLSearchParams({ token })}`, {
      headers: { Accept: 'application/json' },
    });
    markets.set(
      token,
      asked.then((answer) => (answer.ok ? answer.json() : {})).catch(() => ({})),
    );
  }
  return markets.get(token);
}

async function nameMarket(body, token) {
  const { title, path } = await marketOf(token);
  if (title === undefined) return;
  const link = document.createElement('a');
  link.className = 'row-link';
  link.href = path;
  link.textContent = title;
  body.prepend(link, ' · ');
}

function short(text) {
  return text.length <= MAX_ID || text.includes(' ') ? text : `${text.slice(0, 8)}…${text.slice(-6)}`;
}

/** Whether the page shows the event already. */
function isShown(id, within = document) {
  return within.querySelector(`[data-event="${CSS.escape(id)}"]`) !== null;
}

/** Reads the table again. The new events above it stay, and the table omits them. */
async function readTable(signal) {
  const answer = await fetch(location.href, { signal, headers: { Accept: 'text/html' } });
  const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
  const found = page.getElementById('events');
  if (!found) throw new Error('the page has no events');
  for (const row of found.querySelectorAll('tr:has([data-event])')) {
    if (isShown(row.querySelector('[data-event]').dataset.event, list)) row.remove();
  }
  if (!signal.aborted) document.getElementById('events').replaceWith(found);
}

follow({
  url: '/console/stream/events',
  words: EVENTS,
  types: [...types, ...STATES],
  line: document.querySelector('[data-live]'),
  on(type, message) {
    if (STATES.includes(type) || isShown(message.id)) return;
    arrived += 1;
    count.textContent = arrived === 1 ? '1 new event' : `${arrived} new events`;
    const item = document.createElement('li');
    item.dataset.event = message.id;
    const head = document.createElement('strong');
    head.textContent = `${String(message.timestamp).slice(11, 19)} ${type}`;
    const body = document.createElement('span');
    const data = message.data ?? {};
    body.textContent = fields
      .flatMap(([name, label]) => (data[name] === undefined ? [] : [`${label} ${short(String(data[name]))}`.trim()]))
      .join(' · ');
    if (data.tokenMint !== undefined) nameMarket(body, data.tokenMint);
    const whole = document.createElement('details');
    const title = document.createElement('summary');
    title.textContent = message.id;
    const json = document.createElement('pre');
    json.textContent = JSON.stringify(message, null, 2);
    whole.append(title, json);
    const deliveries = document.createElement('a');
    deliveries.href = `/deliveries?${new URLSearchParams({ event: message.id })}`;
    deliveries.textContent = 'Deliveries';
    item.append(head, ' ', body, ' · ', deliveries, whole);
    list.prepend(item);
    while (list.children.length > MAX_SHOWN) list.lastElementChild.remove();
  },
  read: readTable,
});
