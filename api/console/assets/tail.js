// Adds the account's events to the page as they are made.
import { follow } from './live.js';

const MAX_SHOWN = 200;
const STATES = ['heartbeat', 'stale', 'gap', 'lagged'];

const list = document.getElementById('arrivals');
const [types, fields] = [list.dataset.types, list.dataset.fields].map((names) => names.split(' '));
const count = document.querySelector('[data-count]');
let arrived = 0;

follow({
  url: '/console/stream/events',
  types: [...types, ...STATES],
  line: document.querySelector('[data-live]'),
  on(type, message) {
    if (STATES.includes(type)) return;
    arrived += 1;
    count.textContent = arrived === 1 ? '1 new event' : `${arrived} new events`;
    const item = document.createElement('li');
    const head = document.createElement('strong');
    head.textContent = `${String(message.timestamp).slice(11, 19)} ${type}`;
    const body = document.createElement('span');
    const data = message.data ?? {};
    body.textContent = fields
      .flatMap((name) => (data[name] === undefined ? [] : [`${name} ${data[name]}`]))
      .join(' · ');
    const whole = document.createElement('details');
    const title = document.createElement('summary');
    title.textContent = message.id;
    const json = document.createElement('pre');
    json.textContent = JSON.stringify(message, null, 2);
    whole.append(title, json);
    item.append(head, ' ', body, whole);
    list.prepend(item);
    while (list.children.length > MAX_SHOWN) list.lastElementChild.remove();
  },
});
