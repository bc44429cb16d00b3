// Refreshes a page: fetches its parts every few seconds and replaces the changed parts. Pauses while the page is hidden.
const EVERY_MS = 3_000;

const root = document.querySelector('[data-refresh]');
const note = document.querySelector('[data-refreshed]');
const shown = new Map();
let timer;

async function refresh() {
  try {
    const answer = await fetch(root.dataset.refresh, { headers: { Accept: 'application/json' } });
    // The session has ended: the reload redirects to the login.
    if (answer.status === 401) return location.reload();
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    replaceParts(await answer.json());
    note.textContent = `Updated ${new Date().toISOString().slice(11, 19)} UTC`;
    note.classList.remove('stale');
  } catch {
    note.textContent = 'Out of date: no answer. Retrying.';
    note.classList.add('stale');
  }
  schedule();
}

function replaceParts(fragments) {
  for (const [name, markup] of Object.entries(fragments)) {
    const part = root.querySelector(`[data-fragment="${CSS.escape(name)}"]`);
    // The part with the keyboard focus does not change.
    if (part === null || part.contains(document.activeElement)) continue;
    // Markup from the server, which escapes all values.
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
