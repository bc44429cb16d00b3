// The form of an alert beside the chart of a market, and its trial on the past.
import { followAlertForm } from './alert-form.js';
import { alertPrice } from './live.js';

/** Conditions on the price, below and above it. */
const SIDES = { crosses: ['crosses_below', 'crosses_above'], state: ['below', 'above'] };

/** Connects the form with the chart. `latest` returns the present price, and `showMarks` draws the firings of a trial. */
export function openAlertForm(details, { latest, showMarks }) {
  const form = details.querySelector('form');
  const [priceField, condition] = ['price', 'condition'].map((name) => form.querySelector(`[name="${name}"]`));
  const followed = followAlertForm(form, {
    onTrial(trial) {
      showMarks(
        [...trial.querySelectorAll('[data-fired]')].flatMap(({ dataset: { fired, at }, textContent }) =>
          at === '' ? [] : [{ time: Number(fired), price: Number(at), when: textContent }],
        ),
      );
    },
  });

  function showDistance() {
    const price = Number(priceField.value.replace(',', '.'));
    const points = (price - latest()) * 100;
    const isPrice = Object.values(SIDES).some((side) => side.includes(condition.value));
    form.querySelector('[data-distance]').textContent =
      isPrice && priceField.value !== '' && Number.isFinite(points)
        ? `${Math.abs(points).toFixed(1)} points ${points < 0 ? 'below' : 'above'} the present price`
        : '';
  }
  function openForm(price) {
    details.open = true;
    if (price !== undefined) {
      priceField.value = alertPrice(price);
      const [below, above] = condition.value.startsWith('crosses_') ? SIDES.crosses : SIDES.state;
      condition.value = price < latest() ? below : above;
    }
    followed.refresh();
    showDistance();
    details.scrollIntoView({ block: 'nearest' });
    (price === undefined ? priceField : form.querySelector('button.primary')).focus({ preventScroll: true });
  }

  form.addEventListener('input', showDistance);
  details.addEventListener('open-alert', () => openForm());
  details.querySelector('summary').addEventListener('click', () => details.open || followed.refresh());
  document.addEventListener('click', ({ target }) => {
    const price = clickedPrice(target);
    if (price !== undefined) openForm(price);
  });

  return {
    open: openForm,
    showDistance,
    /** Tries the alert again when another range of the chart is chosen. */
    choose(range, isOther) {
      form.querySelector('[name="over"]').value = range;
      if (isOther && details.open) followed.refresh();
    },
  };
}

const named = () => document.querySelector('.headline-label')?.textContent;

/** The price of this outcome in a clicked row of the book or of the trades, or in the headline. */
function clickedPrice(target) {
  const headline = target.closest?.('.headline [data-price]');
  if (headline) return inUnits(headline.textContent.replace('%', '')) / 100;
  const row = target.closest?.('[data-part="book"] tbody tr, [data-part="trades"] tbody tr');
  const of = row?.querySelector('[data-label="Outcome"]')?.textContent.trim();
  if (!row || (of !== undefined && of !== named())) return undefined;
  const price = inUnits(row.querySelector('[data-label^="Price"]')?.textContent);
  return price > 0 && price < 1 ? price : undefined;
}

const inUnits = (text) => Number(text?.trim() || Number.NaN);
