// The form of an alert beside the chart of a market, and its trial on the past.
import { alertPrice } from './live.js';

const TRIAL_AGAIN_MS = 1_000;

/** Connects the form with the chart. `latest` returns the present price, and `showMarks` draws the firings of a trial. */
export function openAlertForm(form, { latest, showMarks }) {
  function showDistance() {
    const price = Number(form.querySelector('[name="price"]').value.replace(',', '.'));
    const points = (price - latest()) * 100;
    const note = form.querySelector('[data-distance]');
    note.textContent = Number.isFinite(points)
      ? `${Math.abs(points).toFixed(1)} points ${points < 0 ? 'below' : 'above'} the present price`
      : '';
  }
  function openForm(price) {
    form.open = true;
    const field = form.querySelector('[name="price"]');
    if (price !== undefined) {
      field.value = alertPrice(price);
      form.querySelector('[name="condition"]').value = price < latest() ? 'below' : 'above';
      tryOnPast(form.querySelector('[data-try]'));
    }
    showDistance();
    form.scrollIntoView({ block: 'nearest' });
    (price === undefined ? field : form.querySelector('button[type="submit"]')).focus({ preventScroll: true });
  }
  const trial = form.querySelector('[data-trial]');
  function forgetTrial() {
    trial.replaceChildren();
    showMarks([]);
  }

  /** Shows the firings of the form on the chart and in a list. The button of a job that has not ended is pressed again by itself. */
  async function tryOnPast(button) {
    const fields = new FormData(button.form, button);
    const before = new URLSearchParams(fields).toString();
    trial.setAttribute('aria-busy', 'true');
    try {
      const answer = await fetch(button.formAction, { method: 'POST', body: new URLSearchParams(fields) });
      const found = new DOMParser().parseFromString(await answer.text(), 'text/html');
      // The form has other values now.
      if (before !== new URLSearchParams(new FormData(button.form, button)).toString()) return;
      // Markup from the server, which escapes all values. Without the page of the form it is that of an error.
      const shown =
        found.querySelector('.trial') ?? found.querySelector('form .problem') ?? found.querySelector('.lead');
      trial.replaceChildren(...(shown ? [shown] : [`The server answered ${answer.status}. Reload the page.`]));
      const fired = [...trial.querySelectorAll('[data-fired]')].flatMap(({ dataset: { fired, at }, textContent }) =>
        at === '' ? [] : [{ time: Number(fired), price: Number(at), when: textContent }],
      );
      showMarks(fired);
      const again = trial.querySelector('[data-try]');
      if (again) setTimeout(() => again.isConnected && tryOnPast(again), TRIAL_AGAIN_MS);
    } catch {
      trial.replaceChildren('The alert was not tried: no connection to the server. Try again.');
    } finally {
      trial.removeAttribute('aria-busy');
    }
  }

  form.addEventListener('input', () => {
    showDistance();
    forgetTrial();
  });
  form.addEventListener('submit', (event) => {
    if (!event.submitter?.matches('[data-try]')) return;
    event.preventDefault();
    tryOnPast(event.submitter);
  });
  form.addEventListener('open-alert', () => openForm());

  return {
    open: openForm,
    showDistance,
    /** Tries the alert again when another range of the chart is chosen. */
    choose(range, isOther) {
      form.querySelector('[name="over"]').value = range;
      if (isOther && trial.hasChildNodes()) tryOnPast(form.querySelector('[data-try]'));
    },
  };
}
