// The form of an alert: a preview while its fields change, and the choice of its subjects by words.
import { attachCombobox, matchesOf } from './combobox.js';

const TYPING_MS = 400;
const TRIAL_AGAIN_MS = 1_000;
/** An id is chosen without a match. */
const ID = /^\S{20,}$/;

/** Follows the fields of a form. `onTrial` gets the section with the firings on the past, also when it becomes empty. */
export function followAlertForm(form, { onTrial = () => undefined } = {}) {
  const sentence = form.querySelector('[data-sentence]');
  const trial = form.querySelector('[data-trial]');
  let timer;
  let isRunning = false;
  let waiting;

  /** Runs one request at a time. The newest of the waiting ones replaces the others. */
  async function queue(job) {
    if (isRunning) {
      waiting = job;
      return;
    }
    isRunning = true;
    try {
      await job();
    } finally {
      isRunning = false;
      const next = waiting;
      waiting = undefined;
      if (next) queue(next);
    }
  }

  const fieldsOf = (button) => new URLSearchParams(new FormData(form, button));

  /** The page of the form after a button, as a document. */
  async function ask(button, extra = {}) {
    const fields = fieldsOf(button);
    for (const [name, value] of Object.entries(extra)) fields.set(name, value);
    const action = (button ?? form.querySelector('[data-try]')).formAction;
    const answer = await fetch(action, { method: 'POST', body: fields });
    return { answer, found: new DOMParser().parseFromString(await answer.text(), 'text/html') };
  }

  /** Markup from the server, which escapes all values. */
  function show(found, status) {
    const said = found.querySelector('[data-sentence]');
    if (said && said.innerHTML !== sentence.innerHTML) sentence.replaceChildren(...said.childNodes);
    // Without the page of the form it is that of an error.
    const shown = found.querySelector('.trial') ?? found.querySelector('form .problem') ?? found.querySelector('.lead');
    trial.replaceChildren(...(shown ? [shown] : [`The server answered ${status}. Reload the page.`]));
    onTrial(trial);
  }

  async function working(job) {
    trial.setAttribute('aria-busy', 'true');
    try {
      await job();
    } catch {
      trial.replaceChildren('The alert was not tried: no connection to the server. Try again.');
      onTrial(trial);
    } finally {
      trial.removeAttribute('aria-busy');
    }
  }

  /** Shows the preview of the fields. `chose` names a subject that was just chosen. */
  function refresh(chose) {
    clearTimeout(timer);
    queue(() =>
      working(async () => {
        const before = fieldsOf().toString();
        const { answer, found } = await ask(undefined, { preview: '1', ...(chose && { chose }) });
        if (chose) takeSuggestion(found);
        else if (before !== fieldsOf().toString()) return;
        show(found, answer.status);
        for (const pick of form.querySelectorAll('[data-pick]')) takePick(pick, found, pick.dataset.pick === chose);
      }),
    );
  }

  /** Shows the firings with every detail. The button of a job that has not ended is pressed again by itself. */
  function tryOnPast(button) {
    clearTimeout(timer);
    queue(() =>
      working(async () => {
        const before = fieldsOf(button).toString();
        const { answer, found } = await ask(button);
        // The form has other values now.
        if (before !== fieldsOf(button).toString()) return;
        show(found, answer.status);
        const again = trial.querySelector('[data-try]');
        if (again) setTimeout(() => again.isConnected && tryOnPast(again), TRIAL_AGAIN_MS);
      }),
    );
  }

  /** Replaces a subject by its name, or by its search. */
  function takePick(pick, found, isAsked) {
    const next = found.querySelector(`[data-pick="${pick.dataset.pick}"]`);
    if (!next) return;
    const isSettled = next.querySelector('.chosen') !== null && pick.querySelector('.chosen') === null;
    if (!isAsked && !isSettled) return;
    const hadFocus = pick.contains(document.activeElement);
    pick.replaceWith(next);
    connectPick(next);
    if (hadFocus || isAsked)
      (next.querySelector('input[type="search"], input[type="radio"]') ?? nextField(next)).focus();
  }

  /** The first visible field behind an element: where the choice of a subject leads. */
  function nextField(element) {
    const fields = [...form.querySelectorAll('input:not([type="hidden"]), select, button')];
    const behind = (each) => element.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING;
    return fields.find((each) => behind(each) && !element.contains(each) && each.checkVisibility()) ?? element;
  }

  /** An empty price gets the suggestion of the server. */
  function takeSuggestion(found) {
    const price = form.querySelector('[name="price"]');
    if (price && price.value === '') price.value = found.querySelector('[name="price"]')?.value ?? '';
  }

  function set(name, value) {
    const field = form.querySelector(`[name="${name}"]:not([type="radio"])`);
    if (field) field.value = value;
  }

  function connectPick(pick) {
    const input = pick.querySelector('input[type="search"]');
    if (!input) return;
    attachCombobox(input, {
      source: matchesOf(pick.dataset.for),
      choose({ dataset: { token, href } }) {
        // The matches of a page that came without a script.
        for (const each of pick.querySelectorAll('.matches')) each.remove();
        const [, kind, venue, id] = /^\/(markets|events)\/([^/]+)\/([^/?]+)$/.exec(href ?? '') ?? [];
        if (token !== undefined) hold(pick, pick.dataset.pick, token);
        else if (kind) {
          hold(pick, kind === 'markets' ? 'scope.market_id' : 'scope.event_id', decodeURIComponent(id));
          set('scope.venue', decodeURIComponent(venue));
        } else set('scope.q', input.value);
        input.value = '';
        refresh(pick.dataset.pick);
      },
    });
  }

  /** Sets a hidden field of a subject. */
  function hold(pick, name, value) {
    const field = pick.querySelector(`input[type="hidden"][name="${name}"]`) ?? document.createElement('input');
    Object.assign(field, { type: 'hidden', name, value });
    pick.append(field);
  }

  for (const pick of form.querySelectorAll('[data-pick]')) connectPick(pick);

  form.addEventListener('input', ({ target }) => {
    const isSearch = target.matches('[data-pick] input[type="search"]');
    if (isSearch && !ID.test(target.value.trim())) return;
    clearTimeout(timer);
    timer = setTimeout(refresh, TYPING_MS);
  });
  form.addEventListener('submit', (event) => {
    const { submitter } = event;
    const asked = document.activeElement?.closest('[data-pick]');
    const isEnterOfSearch = asked && submitter?.hidden && document.activeElement.type === 'search';
    const pick = isEnterOfSearch ? asked : submitter?.closest('[data-pick]');
    if (!pick && !submitter?.matches('[data-try]')) return;
    event.preventDefault();
    if (!pick) return tryOnPast(submitter);
    const button = isEnterOfSearch ? pick.querySelector('button') : submitter;
    clearTimeout(timer);
    queue(() =>
      working(async () => {
        const { found } = await ask(button);
        takePick(pick, found, true);
      }),
    );
  });

  return { refresh: () => refresh(), tryOnPast: () => tryOnPast(form.querySelector('[data-try]')) };
}
