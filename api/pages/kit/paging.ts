import type { ConsoleRequest } from '../console/route.ts';
import { withQuery } from '../console/values.ts';
import { type Html, html } from './html.ts';

/** Links to the first and the next page of a list. Keeps the filters. */
export function pages({ path, query }: Pick<ConsoleRequest, 'path' | 'query'>, next: string | null | undefined): Html {
  if (!query.has('cursor') && !next) return html``;
  const following = new URLSearchParams(query);
  following.set('cursor', next ?? '');
  return html`<nav class="pager" aria-label="Pages">${
    query.has('cursor') && html`<a class="button" href="${withQuery(path, query, {})}">First page</a>`
  }${next && html`<a class="button" rel="next" href="${path}?${following.toString()}">Next page</a>`}</nav>`;
}

/** Links that choose one value of a filter; the first is the default. */
export function tabs(
  { path, query }: Pick<ConsoleRequest, 'path' | 'query'>,
  name: string,
  label: string,
  options: readonly (readonly [value: string, label: string])[],
): Html {
  const chosen = query.get(name) ?? options[0]?.[0];
  return html`<nav class="switch" aria-label="${label}">${options.map(
    ([value, text], index) =>
      html`<a href="${withQuery(path, query, { [name]: index === 0 ? undefined : value })}"${
        value === chosen && html` aria-current="true"`
      }>${text}</a>`,
  )}</nav>`;
}
