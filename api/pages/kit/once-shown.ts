import { type Html, html } from './html.ts';

/** A key or a secret, on the only page that shows it. */
export function onceShown(name: 'key' | 'secret', value: string): Html {
  return html`<h2>Copy the ${name} now. It is shown only once.</h2>
<code class="secret" tabindex="0">${value}</code>
<p><button type="button" data-copy="${value}">Copy</button></p>`;
}
