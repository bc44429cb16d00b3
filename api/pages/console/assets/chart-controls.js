// The links, forms and buttons of a chart. They change the address of the page and its chart without a reload.
import { savePicture } from './chart-picture.js';

const CHOICES = ['range', 'chart', 'compare'];
const DEFAULTS = { range: '1d', chart: 'line' };

/** The choices in the address of the page, as a query. */
export function choicesOfAddress() {
  const query = new URLSearchParams(location.search);
  return new URLSearchParams([...query].filter(([name, value]) => CHOICES.includes(name) && value !== ''));
}

const chosen = (query, name) => query.get(name) ?? DEFAULTS[name];

/** Writes the parts of an answer into the page. */
export function showParts(parts) {
  for (const [name, markup] of Object.entries(parts)) {
    const part = document.querySelector(`[data-part="${name}"]`);
    // Markup from the server, which escapes all values. An open list stays open.
    if (!part) continue;
    const wasOpen = part.querySelector('details')?.open ?? false;
    part.innerHTML = markup;
    const details = part.querySelector('details');
    if (details) details.open = wasOpen;
  }
}

/**
 * Connects the controls of a page with its chart. `load` reads the data of the choices in the address. `isPageOf` is false for an address
 * of another page. `onChoice` gets each choice.
 */
export function connectControls({ chart, load, isPageOf = () => true, onChoice }) {
  const zoom = document.querySelector('[data-zoom]');
  const picture = document.querySelector('[data-picture]');
  const form = document.querySelector('[data-compare]');
  let shown = choicesOfAddress();
  let isZoomed = false;

  function choose() {
    const query = new URLSearchParams(location.search);
    if (!isPageOf(query)) return location.reload();
    const before = shown;
    shown = choicesOfAddress();
    for (const link of document.querySelectorAll('a[data-switch]')) {
      const name = link.dataset.switch;
      const target = new URL(link.href);
      for (const each of CHOICES) {
        if (each === name) continue;
        target.searchParams.delete(each);
        for (const value of shown.getAll(each)) target.searchParams.append(each, value);
      }
      link.href = target.pathname + target.search;
      if (!name) continue;
      if (link.textContent === chosen(shown, name)) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
    if (form) {
      const named = shown.has('compare') ? shown.getAll('compare') : JSON.parse(form.dataset.standard);
      for (const box of form.elements) if (box.type === 'checkbox') box.checked = named.includes(box.value);
      limit();
    }
    chart.choose(chosen(shown, 'chart'));
    onChoice?.({ range: chosen(shown, 'range'), isOtherRange: chosen(before, 'range') !== chosen(shown, 'range') });
    if (before.toString() !== shown.toString()) load({ fit: true });
  }

  /** The other boxes wait while as many as possible are chosen. */
  function limit() {
    const boxes = [...form.elements].filter(({ type }) => type === 'checkbox');
    const isFull = boxes.filter(({ checked }) => checked).length >= Number(form.dataset.most);
    for (const box of boxes) box.disabled = isFull && !box.checked;
  }

  document.addEventListener('click', (event) => {
    const link = event.target.closest?.('a[data-switch]');
    if (!link?.dataset.switch || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    history.pushState(null, '', link.href);
    choose();
  });
  addEventListener('popstate', choose);
  form?.addEventListener('change', () => {
    const address = new URL(location.href);
    address.searchParams.delete('compare');
    for (const value of new FormData(form).getAll('compare')) address.searchParams.append('compare', value);
    history.pushState(null, '', address);
    choose();
  });
  if (form) {
    limit();
    form.querySelector('[type="submit"]').hidden = true;
  }
  if (zoom) {
    zoom.hidden = false;
    zoom.addEventListener('click', () => {
      isZoomed = !isZoomed;
      zoom.setAttribute('aria-pressed', String(isZoomed));
      zoom.textContent = isZoomed ? 'Axis from 0 to 100 %' : 'Zoom the axis';
      chart.zoom(isZoomed);
    });
  }
  if (picture) {
    picture.hidden = false;
    picture.addEventListener('click', () => savePicture(chart, { range: chosen(shown, 'range') }));
  }
}
