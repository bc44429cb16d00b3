// The search and the requests of /docs. The page itself is complete without this file.
document.documentElement.classList.add('scripts');

const MAX_SHOWN = 200_000;
const entries = [...document.querySelectorAll('.entry')].map((element) => ({
  element,
  text: '',
}));
const groups = [...document.querySelectorAll('.group')];
const links = [...document.querySelectorAll('aside li')];
const search = document.querySelector('#search');
const found = document.querySelector('.found');
const contents = document.querySelector('aside details');

// A phone shows the page before the list of contents.
if (matchMedia('(max-width: 900px)').matches) contents.open = false;

/** Names, paths, descriptions and fields of an entry; examples would match every word. */
function wordsOf(element) {
  const parts = element.querySelectorAll('h3, .summary, summary + p, .type, .fields > dt > code');
  return [...parts]
    .map((part) => part.textContent)
    .join(' ')
    .toLowerCase();
}

search.addEventListener('input', () => {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = new Set();
  for (const entry of entries) {
    entry.text ||= wordsOf(entry.element);
    const isShown = words.every((word) => entry.text.includes(word));
    entry.element.hidden = !isShown;
    if (isShown) shown.add(`#${entry.element.id}`);
  }
  for (const group of groups) group.hidden = words.length > 0 && group.querySelector('.entry:not([hidden])') === null;
  for (const link of links) link.hidden = !shown.has(link.firstElementChild.getAttribute('href'));
  found.textContent = words.length === 0 ? '' : `${shown.size} of ${entries.length} entries match`;
});
// Enter leads to the first entry; the form has no address.
search.form.addEventListener('submit', (event) => {
  event.preventDefault();
  const first = entries.find(({ element }) => !element.hidden);
  if (first) location.hash = first.element.id;
  reveal();
});

/** Opens the entry of the address, also of the former page, whose addresses were such as `#/markets/listMarkets`. */
function reveal() {
  const [, id = ''] = /^#(?:\/[^/]+\/)?([\w-]+)$/.exec(location.hash) ?? [];
  const entry = document.getElementById(id);
  if (entry?.tagName === 'DETAILS') entry.open = true;
  entry?.scrollIntoView();
}
addEventListener('hashchange', reveal);
reveal();

const key = document.querySelector('#key');
key.form.addEventListener('submit', (event) => event.preventDefault());

/** The request of a form: its address and the options of `fetch`. */
function requestOf(form) {
  const { method, path, key: keyHeader } = form.dataset;
  const headers = {};
  const query = new URLSearchParams();
  let target = path;
  let body;
  for (const [name, value] of new FormData(form)) {
    const [place, field] = name.split(/\.(.*)/s);
    if (name === 'body') body = value.trim() === '' ? undefined : value;
    else if (place === 'path') target = target.replace(`{${field}}`, encodeURIComponent(value));
    else if (value !== '' && place === 'query') query.append(field, value);
    else if (value !== '') headers[field] = value;
  }
  if (keyHeader !== '' && key.value !== '')
    headers[keyHeader] = keyHeader === 'Authorization' ? `Bearer ${key.value}` : key.value;
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  return {
    url: `${location.origin}${target}${query.size === 0 ? '' : `?${query}`}`,
    options: { method, headers, body },
  };
}

/** The key of the reader stays out of texts that are copied. */
function shownHeaders(headers) {
  return Object.entries(headers).map(([name, value]) => [
    name,
    key.value === '' ? value : value.replace(key.value, '$KEY'),
  ]);
}

function curlOf(url, { method, headers, body }) {
  const parts = method === 'GET' ? [] : [`-X ${method}`];
  for (const [name, value] of shownHeaders(headers)) parts.push(`-H "${name}: ${value}"`);
  if (body !== undefined) parts.push(`-d '${body.replaceAll("'", "'\\''")}'`);
  return `curl ${[...parts, `"${url}"`].join(' \\\n  ')}`;
}

function typescriptOf(url, { method, headers, body }) {
  const shown = Object.fromEntries(shownHeaders(headers));
  const lines = [`  method: ${JSON.stringify(method)},`, `  headers: ${JSON.stringify(shown)},`];
  if (body !== undefined) lines.push(`  body: ${JSON.stringify(body)},`);
  return `const answer = await fetch(${JSON.stringify(url)}, {\n${lines.join('\n')}\n});\nconsole.log(await answer.json());`;
}

/** Indented JSON with the digits of the answer, which a parser of numbers would round. */
function pretty(text) {
  let out = '';
  let depth = 0;
  let before = '';
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[{}[\],:]|[^\s"{}[\],:]+/gs)) {
    const isEnd = token === '}' || token === ']';
    const isAfterStart = before === '{' || before === '[';
    if (isEnd) depth = Math.max(0, depth - 1);
    if (isEnd ? !isAfterStart : isAfterStart || before === ',') out += `\n${'  '.repeat(depth)}`;
    if (token === '{' || token === '[') depth += 1;
    out += token === ':' ? ': ' : token;
    before = token;
  }
  return out;
}

/** A titled text that can be copied. */
function block(label, text) {
  const box = document.createElement('div');
  const head = document.createElement('div');
  const name = document.createElement('strong');
  const copy = document.createElement('button');
  const pre = document.createElement('pre');
  head.className = 'block-head';
  name.textContent = label;
  copy.type = 'button';
  copy.textContent = 'Copy';
  copy.setAttribute('aria-label', `Copy: ${label}`);
  copy.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(pre.textContent);
      copy.textContent = 'Copied';
    } catch {
      copy.textContent = 'Select and copy the text';
    }
  });
  pre.tabIndex = 0;
  pre.textContent = text;
  head.append(name, copy);
  box.append(head, pre);
  return { box, pre };
}

/** Sends a form and shows the answer as it arrives: a stream has no end, so the button stops it. */
async function send(form) {
  const answer = form.nextElementSibling;
  const button = form.querySelector('button');
  const { url, options } = requestOf(form);
  const stop = new AbortController();
  form.stop = stop;
  button.textContent = 'Stop';
  const line = document.createElement('p');
  line.textContent = 'Waiting for the answer';
  answer.replaceChildren(
    line,
    block('curl', curlOf(url, options)).box,
    block('TypeScript', typescriptOf(url, options)).box,
  );
  const start = performance.now();
  try {
    const response = await fetch(url, { ...options, signal: stop.signal });
    line.textContent = `${response.status} ${response.statusText}`
      .trim()
      .concat(` after ${Math.round(performance.now() - start)} ms`);
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    const { box, pre } = block('Answer', '');
    answer.append(box, block('Headers of the answer', headers).box);
    const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '');
    let text = '';
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
      text += part.value;
      if (text.length > MAX_SHOWN) stop.abort();
      if (!isJson || text.length > MAX_SHOWN) pre.textContent = text.slice(0, MAX_SHOWN);
    }
    pre.textContent = isJson ? pretty(text) : text;
  } catch (error) {
    if (!stop.signal.aborted) line.textContent = `No answer: ${error.message}`;
    else line.textContent += ', stopped';
  } finally {
    form.stop = undefined;
    button.textContent = 'Send';
  }
}

for (const form of document.querySelectorAll('.try form')) {
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    if (form.stop) form.stop.abort();
    else send(form);
  });
}
