// Search, keyboard, copy buttons and local times. Every page of the console loads it.
import './star.js';
import { attachCombobox, matchesOf } from './combobox.js';
import { recentOptions } from './recent.js';

document.documentElement.classList.add('scripted');
// On a phone the line of sections begins with the present one.
const section = document.querySelector('.sections [aria-current]');
if (section) section.closest('ul').scrollLeft = section.offsetLeft - 16;
const rows = () => [...document.querySelectorAll('a[data-row]')];

function move(step) {
  const all = rows();
  const at = all.indexOf(document.activeElement);
  const next = all[Math.min(all.length - 1, Math.max(0, at === -1 ? 0 : at + step))];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

const ACTIONS = {
  '/': () => {
    const field = document.querySelector('input[type="search"]');
    field?.focus();
    field?.select();
  },
  j: () => move(1),
  k: () => move(-1),
  a: () => {
    // A row of a market or of an alert: only sessions that may set alerts have the link.
    const row = document.activeElement?.closest('tr');
    const of = row?.querySelector('[data-token], [data-price]')?.dataset;
    const alerts = document.querySelector('.sections a[href="/alerts"]');
    if (of && alerts) {
      const { token = of.price } = of;
      return location.assign(`/alerts/new?${new URLSearchParams({ tokenMint: token, chose: '1' })}`);
    }
    const opener = document.querySelector('[data-new-alert]');
    if (!opener) return;
    if (opener.matches('a')) return opener.click();
    opener.open = true;
    opener.dispatchEvent(new CustomEvent('open-alert'));
    opener.querySelector('input:not([type="hidden"])')?.focus();
  },
  '?': () => document.getElementById('help')?.showModal(),
};

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { target } = event;
  if (target instanceof HTMLElement && target.matches('input, select, textarea')) {
    if (event.key === 'Escape') target.blur();
    return;
  }
  const action = ACTIONS[event.key];
  if (!action || document.querySelector('dialog[open]')) return;
  event.preventDefault();
  action();
});

document.addEventListener('click', async (event) => {
  const button = event.target.closest?.('[data-copy]');
  if (!button) return;
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(
      button.dataset.copy || document.getElementById(button.dataset.copyFrom).textContent,
    );
    button.textContent = 'Copied';
  } catch {
    button.textContent = 'Select and copy the text';
  }
  setTimeout(() => {
    button.textContent = before;
  }, 1500);
});

// Only sessions that may read markets have the search.
const search = document.getElementById('find');
if (search) {
  // The page of the matches names its search.
  if (location.pathname === '/markets') search.value = new URLSearchParams(location.search).get('q') ?? '';
  const matches = matchesOf('market');
  attachCombobox(search, {
    source: async (text, signal) => (text === '' ? recentOptions() : matches(text, signal)),
    choose: ({ dataset }) => location.assign(dataset.href),
  });
}

// A form is sent once: the answer to a second click would replace the page that shows a secret.
const sent = new Set();
document.addEventListener('submit', (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== 'post') return;
  if (sent.has(form)) event.preventDefault();
  sent.add(form);
});
// The page is back from the memory of the browser.
addEventListener('pageshow', () => sent.clear());

// The address that the browser uses, also behind a proxy.
for (const each of document.querySelectorAll('[data-origin]')) each.textContent = location.origin;

document.addEventListener('pointerover', ({ target }) => {
  const time = target.closest?.('time[datetime]');
  if (!time || time.dataset.local) return;
  time.dataset.local = '1';
  time.title = `${new Date(time.dateTime).toLocaleString()} (your time)`;
});
