// Keeps a page fresh: asks every few seconds for its parts and exchanges those that changed. Pauses while the page is hidden.
const EVERY_MS = 5_000;

const root = document.querySelector('[data-refresh]');
const note = document.querySelector('[data-refreshed]');
const shown = new Map();
let timer;

async function refresh() {
  try {
    const answer = await fetch(root.dataset.refresh, { headers: { Accept: 'application/json' } });
    // The session is over: the page itself leads to the login.
    if (answer.status === 401) return location.reload();
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    exchange(await answer.json());
    note.textContent = `Updated ${new Date().toISOString().slice(11, 19)} UTC`;
    note.classList.remove('stale');
  } catch {
    note.textContent = 'Not up to date: no answer. Trying again.';
    note.classList.add('stale');
  }
  schedule();
}

function exchange(fragments) {
  for (const [name, markup] of Object.entries(fragments)) {
    const part = root.querySelector(`[data-fragment="${CSS.escape(name)}"]`);
    // The part that holds the keyboard focus does not change.
    if (part === null || part.contains(document.activeElement)) continue;
    // The server's own markup, escaped there.
    if (shown.get(name) !== markup) part.innerHTML = markup;
    shown.set(name, markup);
  }
}

function schedule() {
  clearTimeout(timer);
  if (!document.hidden) timer = setTimeout(refresh, EVERY_MS);
}

document.addEventListener('visibilitychange', () => (document.hidden ? clearTimeout(timer) : refresh()));
schedule();
