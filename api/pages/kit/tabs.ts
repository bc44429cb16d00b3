import { type Html, html, number } from './html.ts';

interface Tab {
  /** The value of the query field; empty for no filter. */
  value: string;
  label: string;
  /** The rows behind the tab; `hasMore` when it is a lower bound. */
  count?: { deliveries: number; hasMore: boolean };
}

/** Links that set one field of the query and keep the others. */
export function tabs(options: {
  path: string;
  query: URLSearchParams;
  name: string;
  /** Names the navigation for screen readers. */
  label: string;
  current: string;
  items: readonly Tab[];
}): Html {
  const { path, query, name, label, current, items } = options;
  const linkTo = (value: string): string => {
    const target = new URLSearchParams(query);
    target.delete('cursor');
    target.delete(name);
    if (value !== '') target.set(name, value);
    return target.size === 0 ? path : `${path}?${target.toString()}`;
  };
  return html`<nav class="tabs" aria-label="${label}"><ul>${items.map(
    ({ value, label: text, count }) =>
      html`<li><a href="${linkTo(value)}"${value === current && html` aria-current="true"`}>${text}${
        count && html` <span class="count">${number(count.deliveries)}${count.hasMore && '+'}</span>`
      }</a></li>`,
  )}</ul></nav>`;
}
