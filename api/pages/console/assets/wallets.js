// Says while an address is entered whether it is one, in the words of the server.
const TYPING_MS = 200;

const check = document.querySelector('[data-check]');
const form = check?.closest('form');
let timer;
let reading;

async function read() {
  reading?.abort();
  reading = new AbortController();
  const { signal } = reading;
  const fields = new FormData(form);
  const asked = new URLSearchParams({ venue: fields.get('venue'), address: fields.get('address') });
  try {
    const answer = await fetch(`${check.dataset.check}?${asked}`, { signal });
    if (!answer.ok) return;
    const found = new DOMParser().parseFromString(await answer.text(), 'text/html');
    // Markup from the server, which escapes all values.
    if (!signal.aborted) check.replaceChildren(...found.body.childNodes);
  } catch {
    // The server checks the address again when it is sent.
  }
}

for (const name of ['venue', 'address']) {
  form?.querySelector(`[name="${name}"]`).addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(read, TYPING_MS);
  });
}
