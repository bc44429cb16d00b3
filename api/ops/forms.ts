import { type Html, type HtmlValue, html } from './html.ts';
import type { OpsRequest } from './ops-route.ts';

type Viewer = Pick<OpsRequest, 'operator' | 'csrf'>;

/** A form that posts to an action. Empty for viewers, because the server rejects their actions. */
export function actionForm(request: Viewer, action: string, fields: HtmlValue, classes = 'form'): Html {
  if (request.operator.role !== 'operator') return html``;
  return html`<form method="post" action="${action}" class="${classes}">
<input type="hidden" name="csrf" value="${request.csrf}">${fields}</form>`;
}

/**
 * A button that acts at once, or with `confirm` after a second press next to a description of the effect. It works without a
 * script. Empty for viewers.
 */
export function actionButton(
  request: Viewer,
  options: {
    action: string;
    label: string;
    /** Names the target for screen readers: the key that `Revoke` revokes. */
    of?: string;
    isDangerous?: boolean;
    confirm?: HtmlValue;
    /** The label of the second button; default: `label`. */
    submitLabel?: string;
    /** Hidden fields. */
    fields?: Readonly<Record<string, string>>;
  },
): Html {
  const { action, label, of, isDangerous, confirm, submitLabel = label, fields = {} } = options;
  const hidden = Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`,
  );
  const named = (text: string) => html`${text}${of !== undefined && html`<span class="visually-hidden"> ${of}</span>`}`;
  const tone = isDangerous ? 'danger' : '';
  const form = actionForm(
    request,
    action,
    html`${hidden}<button type="submit" class="${tone}">${named(submitLabel)}</button>`,
    'inline',
  );
  if (confirm === undefined || request.operator.role !== 'operator') return form;
  return html`<details class="confirm"><summary class="button">${named(label)}…</summary><div class="sure"><p>${confirm}</p>${form}</div></details>`;
}

/** A labelled input. */
export function field(options: {
  label: string;
  name: string;
  value?: string;
  type?: 'text' | 'number' | 'password' | 'date' | 'datetime-local' | 'search';
  hint?: string;
  isRequired?: boolean;
  /** The value of the autocomplete attribute. */
  autocomplete?: string;
  max?: number;
  min?: number;
  /** The field of a page whose only purpose is this form. */
  hasFocus?: boolean;
}): Html {
  const { label, name, value, type = 'text', hint, isRequired, autocomplete = 'off', max, min, hasFocus } = options;
  const id = `field-${name}`;
  return html`<div class="field"><label for="${id}">${label}</label>
<input id="${id}" name="${name}" type="${type}" autocomplete="${autocomplete}"${
    value !== undefined && html` value="${value}"`
  }${isRequired && html` required`}${hasFocus && html` autofocus`}${max !== undefined && html` max="${max}"`}${min !== undefined && html` min="${min}"`}${
    hint !== undefined && html` aria-describedby="${id}-hint"`
  }>${hint !== undefined && html`<p class="hint" id="${id}-hint">${hint}</p>`}</div>`;
}

/** A labelled select element. */
export function choice(options: {
  label: string;
  name: string;
  value: string;
  options: readonly (readonly [value: string, label: string])[];
}): Html {
  const { label, name, value: chosen, options: items } = options;
  const id = `field-${name}`;
  return html`<div class="field"><label for="${id}">${label}</label><select id="${id}" name="${name}">${items.map(
    ([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`,
  )}</select></div>`;
}

/** A filter form, which sends a GET of the same page. */
export function filterForm(path: string, fields: HtmlValue): Html {
  return html`<form method="get" action="${path}" class="filters">${fields}<div class="submit"><button type="submit">Show</button>
<a class="quiet" href="${path}">Reset</a></div></form>`;
}
