// Adds the account's events to the page as they are made.
import { follow } from './live.js';

const MAX_SHOWN = 200;
const FIELDS = [
  'title',
  'status',
  'side',
  'size',
  'price',
  'cause',
  'webhookId',
  'tokenSymbol',
  'condition',
  'targetPrice',
  'currentPrice',
  'wallet',
  'transactionId',
];

const STATES = ['heartbeat', 'stale', 'gap', 'lagged'];

const list = document.getElementById('arrivals');
const count = document.querySelector('[data-count]');
let arrived = 0;

follow({
  url: '/console/stream/events',
  types: [
    'price_alert',
    'transaction',
    'balance_change',
    'alert_expired',
    'webhook_failing',
    'webhook_paused',
    'market_status',
    'new_market',
    'trade',
    'feed_gap',
    ...STATES,
  ],
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
    body.textContent = FIELDS.flatMap((name) => (data[name] === undefined ? [] : [`${name} ${data[name]}`])).join(
      ' · ',
    );
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
