import { type Html, html, number } from './html.ts';

/** The rows of a page of a list. */
export const PAGE_ROWS = 50;

/** The address of a page: its path, and its filters. */
interface Place {
  path: string;
  query: URLSearchParams;
}

/** The address of a page with some parameters replaced; undefined removes one. Starts again at the first page. */
export function withQuery({ path, query }: Place, change: Readonly<Record<string, string | undefined>>): string {
  const target = new URLSearchParams(query);
  target.delete('cursor');
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) target.delete(name);
    else target.set(name, value);
  }
  return target.size === 0 ? path : `${path}?${target.toString()}`;
}

/** Links to the first and the next page of a list with keyset cursors. Keeps the filters. */
export function pager(
  place: Place,
  next: string | null | undefined,
  labels: { first: string; next: string } = { first: 'First page', next: 'Next page' },
): Html {
  const isLater = place.query.has('cursor');
  if (!isLater && !next) return html``;
  return html`<nav class="pager" aria-label="Pages">${
    isLater && html`<a class="button" href="${withQuery(place, {})}">${labels.first}</a>`
  }${next && html`<a class="button" href="${withQuery(place, { cursor: next })}" rel="next">${labels.next}</a>`}</nav>`;
}

/** The labels of a list whose first page has the newest rows. */
export const BY_AGE = { first: 'Newest', next: 'Older' } as const;

interface Tab {
  /** The value of the query field; empty for no filter. */
  value: string;
  label: string;
  /** The rows behind the tab; `hasMore` when it is a lower bound. */
  count?: { deliveries: number; hasMore: boolean };
}

/** Links that set one field of the query and keep the others. */
export function tabs(
  place: Place,
  options: {
    name: string;
    /** Names the navigation for screen readers. */
    label: string;
    current: string;
    items: readonly Tab[];
  },
): Html {
  const { name, label, current, items } = options;
  return html`<nav class="tabs" aria-label="${label}"><ul>${items.map(
    ({ value, label: text, count }) =>
      html`<li><a href="${withQuery(place, { [name]: value || undefined })}"${value === current && html` aria-current="true"`}>${text}${
        count && html` <span class="count">${number(count.deliveries)}${count.hasMore && '+'}</span>`
      }</a></li>`,
  )}</ul></nav>`;
}

/** Links in one line that choose one value of a filter; the first is the default. */
export function switches(
  place: Place,
  name: string,
  label: string,
  options: readonly (readonly [value: string, label: string])[],
): Html {
  const chosen = place.query.get(name) ?? options[0]?.[0];
  return html`<nav class="switch" aria-label="${label}">${options.map(
    ([value, text], index) =>
      html`<a href="${withQuery(place, { [name]: index === 0 ? undefined : value })}"${
        value === chosen && html` aria-current="true"`
      }>${text}</a>`,
  )}</nav>`;
}
