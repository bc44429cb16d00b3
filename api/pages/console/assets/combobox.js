// A text field with a list of options that the server or the script makes as the user types: the combobox pattern of ARIA.
const TYPING_MS = 150;
let count = 0;

/**
 * Turns an input into a combobox. Its parent gets the list as a child. `source(text, signal)` returns an element or a fragment with the
 * options of a text, or nothing: groups `ul[role=group]` with `li[role=option]`, and notes `p[data-note]`. `choose(option)` gets the chosen
 * option. Enter without an active option stays with the form. Returns a function that closes the list.
 */
export function attachCombobox(input, { source, choose }) {
  count += 1;
  const listId = `options-${count}`;
  const popup = made('div', { className: 'find-popup', hidden: true });
  const list = made('div', { id: listId, role: 'listbox', ariaLabel: 'Matches' });
  const note = made('p', { className: 'find-note', hidden: true });
  const status = made('p', { className: 'visually-hidden', role: 'status' });
  popup.append(list, note);
  input.parentElement.classList.add('find-box');
  input.after(popup, status);
  input.setAttribute('role', 'combobox');
  input.setAttribute('aria-autocomplete', 'list');
  input.setAttribute('aria-controls', listId);
  input.setAttribute('aria-expanded', 'false');
  input.setAttribute('autocomplete', 'off');

  let timer;
  let reading;
  let active;

  const options = () => [...list.querySelectorAll('[role="option"]')];

  function activate(option) {
    active?.setAttribute('aria-selected', 'false');
    active = option;
    if (!option) return input.removeAttribute('aria-activedescendant');
    option.setAttribute('aria-selected', 'true');
    input.setAttribute('aria-activedescendant', option.id);
    option.scrollIntoView({ block: 'nearest' });
  }

  function show(found) {
    const notes = [...(found?.querySelectorAll('[data-note]') ?? [])].map((each) => each.textContent);
    activate(undefined);
    list.replaceChildren(...(found?.querySelectorAll('[role="group"]') ?? []));
    for (const [at, option] of options().entries()) option.id = `${listId}-${at}`;
    say(notes.join(' '));
    const length = options().length;
    const isOpen = length > 0 || notes.length > 0;
    status.textContent = isOpen ? [length > 0 && `${length} options`, ...notes].filter(Boolean).join('. ') : '';
    list.hidden = length === 0;
    popup.hidden = !isOpen;
    input.setAttribute('aria-expanded', String(length > 0));
    list.scrollTop = 0;
  }

  function say(text) {
    note.textContent = text;
    note.hidden = text === '';
  }

  function stop() {
    clearTimeout(timer);
    reading?.abort();
  }

  function close() {
    stop();
    show(undefined);
  }

  async function read() {
    stop();
    reading = new AbortController();
    const { signal } = reading;
    list.setAttribute('aria-busy', 'true');
    try {
      const found = await source(input.value.trim(), signal);
      if (!signal.aborted) show(found);
    } catch (error) {
      if (signal.aborted) return;
      show(undefined);
      popup.hidden = false;
      say(`The search got no answer: ${error.message}`);
      status.textContent = note.textContent;
    } finally {
      if (!signal.aborted) list.removeAttribute('aria-busy');
    }
  }

  const KEYS = {
    ArrowDown: () => (popup.hidden ? void read() : step(1)),
    ArrowUp: () => (popup.hidden ? void read() : step(-1)),
    Enter: () => active && pick(active),
    Escape: () => close(),
  };

  function step(by) {
    const all = options();
    if (all.length === 0) return;
    const at = all.indexOf(active);
    activate(all[at === -1 ? (by > 0 ? 0 : all.length - 1) : (at + by + all.length) % all.length]);
  }

  function pick(option) {
    close();
    choose(option);
  }

  input.addEventListener('input', () => {
    stop();
    timer = setTimeout(read, TYPING_MS);
  });
  input.addEventListener('focus', () => void read());
  input.addEventListener('click', () => popup.hidden && void read());
  input.addEventListener('blur', close);
  input.addEventListener('keydown', (event) => {
    const { key } = event;
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, key)) return;
    if (key === 'Enter' && !active) return stop();
    if (key === 'Escape' && popup.hidden) return;
    event.preventDefault();
    // The page has keys of its own.
    event.stopPropagation();
    KEYS[key]();
  });
  // A press keeps the focus in the field.
  popup.addEventListener('pointerdown', (event) => event.preventDefault());
  popup.addEventListener('mousedown', (event) => event.preventDefault());
  popup.addEventListener('click', ({ target }) => {
    const option = target.closest('[role="option"]');
    if (option) pick(option);
  });
  // The field had the focus before the script ran.
  if (document.activeElement === input) void read();
  return close;
}

/** A source of `attachCombobox`: the matches of the server, of markets or, with `outcome`, of outcomes. An empty text has no matches. */
export function matchesOf(subject) {
  return async (text, signal) => {
    if (text === '') return undefined;
    const query = new URLSearchParams({ q: text, for: subject });
    let answer;
    try {
      // Not `text/html`: a failure then has a sentence instead of a page.
      answer = await fetch(`/console/find?${query}`, { signal, headers: { Accept: '*/*' } });
    } catch {
      signal.throwIfAborted();
      throw new Error('the server does not answer. Try again.');
    }
    const body = await answer.text();
    if (answer.status === 401) throw new Error('your session has ended. Reload the page and sign in.');
    if (!answer.ok) throw new Error(`${sentenceOf(body) ?? `status ${answer.status}`}. Try again.`);
    return new DOMParser().parseFromString(body, 'text/html').body;
  };
}

function sentenceOf(body) {
  try {
    return JSON.parse(body).error?.message;
  } catch {
    return undefined;
  }
}

/** An element with these properties; attributes of ARIA by their properties. */
function made(name, { role, ...properties }) {
  const element = Object.assign(document.createElement(name), properties);
  if (role) element.setAttribute('role', role);
  return element;
}
