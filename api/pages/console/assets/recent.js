// The markets that this browser opened last. They stay in the browser, and a sign-out forgets them.
const KEY = 'oddswire.recent';
const MAX_RECENT = 10;

const account = document.querySelector('.who .operator')?.textContent ?? '';

/** The last markets of this account, the newest first: `{path, title}`. */
export function recentMarkets() {
  try {
    const stored = JSON.parse(localStorage.getItem(KEY));
    if (stored.account !== account) return [];
    // A page writes them, so that anything else is not ours.
    return stored.markets.filter(
      ({ path, title }) => /^\/markets\/[^/]+\/[^/]+$/.test(path) && typeof title === 'string',
    );
  } catch {
    return [];
  }
}

function keep(markets) {
  try {
    localStorage.setItem(KEY, JSON.stringify({ account, markets: markets.slice(0, MAX_RECENT) }));
  } catch {
    // A browser without storage has no list.
  }
}

function forget() {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // It stored nothing.
  }
}

/** Options for a list box; undefined without a market. */
export function recentOptions() {
  const markets = recentMarkets();
  if (markets.length === 0) return undefined;
  const group = made('ul', undefined, { role: 'group', 'aria-label': 'Recently seen' });
  group.append(made('li', 'Recently seen', { role: 'presentation', class: 'find-heading' }));
  for (const { path, title } of markets) {
    const option = made('li', undefined, {
      role: 'option',
      class: 'find-question',
      'aria-selected': 'false',
      'data-href': path,
    });
    option.append(made('span', title, { class: 'find-name' }));
    group.append(option);
  }
  const options = document.createDocumentFragment();
  options.append(group);
  return options;
}

/** Titles of venues are text. */
function made(name, text, attributes = {}) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

const seen = document.querySelector('[data-seen]');
if (seen) {
  const { pathname: path } = location;
  keep([{ path, title: seen.dataset.seen }, ...recentMarkets().filter((each) => each.path !== path)]);
}

const place = document.querySelector('[data-recent]');
if (place) {
  const markets = recentMarkets();
  place.append(
    made('span', markets.length === 0 ? 'Markets that you open appear here.' : 'Recently seen', { class: 'muted' }),
  );
  for (const { path, title } of markets) place.append(made('a', title, { href: path }));
}

// Other people may use the browser after a sign-out.
document.addEventListener('submit', ({ target }) => {
  if (/^\/sign-out(-everywhere)?$/.test(new URL(target.action).pathname)) forget();
});
