// Stars put a market on the watchlist without leaving the page.
const MESSAGE_MS = 6_000;

document.addEventListener('submit', async (event) => {
  const form = event.target;
  if (!form.matches?.('[data-star]')) return;
  event.preventDefault();
  const button = form.querySelector('button');
  if (button.getAttribute('aria-disabled') === 'true') return;
  const fields = new URLSearchParams(new FormData(form, button));
  const isWatched = button.value === '1';
  button.setAttribute('aria-disabled', 'true');
  show(fields, isWatched);
  try {
    // The answer of a change is a redirection to the page.
    const answer = await fetch(form.action, {
      method: 'POST',
      body: fields,
      redirect: 'manual',
      headers: { Accept: 'application/json' },
    });
    if (answer.type !== 'opaqueredirect') throw new Error(await reasonOf(answer));
  } catch (error) {
    show(fields, !isWatched);
    say(`The star was not saved: ${error instanceof TypeError ? 'the server does not answer' : error.message}.`);
  } finally {
    button.removeAttribute('aria-disabled');
  }
});

/** Shows the state at every star of the market. */
function show(fields, isWatched) {
  for (const form of document.querySelectorAll('[data-star]')) {
    if (form.elements.venue.value !== fields.get('venue') || form.elements.market_id.value !== fields.get('market_id'))
      continue;
    const button = form.querySelector('button');
    button.value = isWatched ? '0' : '1';
    button.setAttribute('aria-pressed', String(isWatched));
  }
}

async function reasonOf(answer) {
  if (answer.status === 401) return 'your session has ended, reload the page and sign in';
  try {
    return (await answer.json()).error.message;
  } catch {
    return `status ${answer.status}`;
  }
}

let line;
let timer;

function say(text) {
  if (!line) {
    line = Object.assign(document.createElement('p'), { className: 'toast' });
    line.setAttribute('role', 'alert');
    document.body.append(line);
  }
  line.textContent = text;
  line.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => {
    line.hidden = true;
  }, MESSAGE_MS);
}
