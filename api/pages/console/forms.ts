import { randomUUID } from 'node:crypto';
import { type Html, type HtmlValue, html } from '../kit/html.ts';
import type { ConsoleRequest } from './route.ts';

type Viewer = Pick<ConsoleRequest, 'session'>;

/** A form that posts to an action. The field `once` makes a form that is sent twice one write. */
export function consoleForm({ session }: Viewer, action: string, fields: HtmlValue, classes = 'form'): Html {
  return html`<form method="post" action="${action}" class="${classes}">
<input type="hidden" name="csrf" value="${session.csrf}"><input type="hidden" name="once" value="${randomUUID()}">${fields}</form>`;
}

/** A button that acts at once, or with `confirm` after a second press next to a description of the effect. */
export function consoleButton(
  viewer: Viewer,
  options: {
    action: string;
    label: string;
    /** Names the target for screen readers. */
    of?: string;
    isDangerous?: boolean;
    confirm?: string;
    fields?: HtmlValue;
  },
): Html {
  const { action, label, of, isDangerous, confirm, fields } = options;
  const name = html`${label}${of !== undefined && html`<span class="visually-hidden"> ${of}</span>`}`;
  const button = html`${fields}<button type="submit" class="${isDangerous ? 'danger' : ''}">${name}</button>`;
  if (confirm === undefined) return consoleForm(viewer, action, button, 'inline');
  return html`<details class="confirm"><summary class="button">${name}…</summary><div class="sure"><p>${confirm}</p>
${consoleForm(viewer, action, button, 'inline')}</div></details>`;
}
