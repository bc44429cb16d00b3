import { type Html, type HtmlValue, html } from './html.ts';
import type { Session } from './session.ts';

/** A request whose session may send forms. */
interface Viewer {
  session: Pick<Session, 'hiddenFields' | 'mayAct'>;
}

/** A form that posts to an action. Empty for a session that may not act, because the server rejects its actions. */
export function actionForm({ session }: Viewer, action: string, fields: HtmlValue, classes = 'form'): Html {
  if (!session.mayAct) return html``;
  return html`<form method="post" action="${action}" class="${classes}">
${session.hiddenFields()}${fields}</form>`;
}

/**
 * A button that acts at once, or with `confirm` after a second press next to a description of the effect. It works without a
 * script. Empty for a session that may not act.
 */
export function actionButton(
  viewer: Viewer,
  options: {
    action: string;
    label: string;
    /** Names the target for screen readers: the key that `Revoke` revokes. */
    of?: string;
    isDangerous?: boolean;
    confirm?: HtmlValue;
    /** The label of the second button; default: `label`. */
    submitLabel?: string;
    fields?: HtmlValue;
  },
): Html {
  const { action, label, of, isDangerous, confirm, submitLabel = label, fields } = options;
  const named = (text: string) => html`${text}${of !== undefined && html`<span class="visually-hidden"> ${of}</span>`}`;
  const tone = isDangerous ? 'danger' : '';
  const button = html`${fields}<button type="submit" class="${tone}">${named(submitLabel)}</button>`;
  const form = actionForm(viewer, action, button, 'inline');
  if (confirm === undefined || !viewer.session.mayAct) return form;
  return html`<details class="confirm"><summary class="button">${named(label)}…</summary><div class="sure"><p>${confirm}</p>${form}</div></details>`;
}

/** Fields that a form sends unseen. */
export function hidden(fields: Readonly<Record<string, string>>): Html {
  return html`${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}`;
}

/** A key or a secret, on the only page that shows it. */
export function onceShown(name: 'key' | 'secret', value: string): Html {
  return html`<h2>Copy the ${name} now. It is shown only once.</h2>
<code class="secret" tabindex="0">${value}</code>
<p><button type="button" data-copy="${value}">Copy</button></p>`;
}

interface Labelled {
  label: HtmlValue;
  name: string;
  hint?: string | undefined;
  /** Makes the id unique when several forms of a page have a field of this name. */
  form?: string;
  /** The reason why the server rejected the value. */
  problem?: string | undefined;
}

/** The attributes of a control, and the texts under it that they name. */
function described({ name, hint, problem, form }: Labelled): { id: string; attributes: Html; texts: Html } {
  const id = form === undefined ? `field-${name}` : `field-${form}-${name}`;
  const names = [problem !== undefined && `${id}-problem`, hint !== undefined && `${id}-hint`].filter((each) => each);
  return {
    id,
    attributes: html`${names.length > 0 && html` aria-describedby="${names.join(' ')}"`}${
      problem !== undefined && html` aria-invalid="true"`
    }`,
    texts: html`${problem !== undefined && html`<p class="field-problem" id="${id}-problem">${problem}</p>`}${
      hint !== undefined && html`<p class="hint" id="${id}-hint">${hint}</p>`
    }`,
  };
}

/** A labelled input. */
export function field(
  options: Labelled & {
    value?: string;
    type?: 'text' | 'number' | 'password' | 'date' | 'datetime-local' | 'search';
    isRequired?: boolean;
    /** The value of the autocomplete attribute. */
    autocomplete?: string;
    max?: number;
    min?: number;
    /** The field of a page whose only purpose is this form. */
    hasFocus?: boolean;
  },
): Html {
  const { label, name, value, type = 'text', isRequired, autocomplete = 'off', max, min, hasFocus } = options;
  const { id, attributes, texts } = described(options);
  return html`<div class="field"><label for="${id}">${label}</label>
<input id="${id}" name="${name}" type="${type}" autocomplete="${autocomplete}"${
    value !== undefined && html` value="${value}"`
  }${isRequired && html` required`}${hasFocus && html` autofocus`}${max !== undefined && html` max="${max}"`}${
    min !== undefined && html` min="${min}"`
  }${attributes}>${texts}</div>`;
}

/** A labelled text of several lines. */
export function area(options: Labelled & { value?: string; rows?: number }): Html {
  const { label, name, value = '', rows = 3 } = options;
  const { id, attributes, texts } = described(options);
  // A line break directly after the tag is not a part of the text.
  return html`<div class="field"><label for="${id}">${label}</label>
<textarea id="${id}" name="${name}" rows="${rows}" autocomplete="off" spellcheck="false"${attributes}>${'\n'}${value}</textarea>${texts}</div>`;
}

/** A labelled select element. */
export function choice(
  options: Labelled & {
    value: string;
    options: readonly (readonly [value: string, label: string])[];
    /** The parts of the form that the style sheet shows for an option. */
    showsOf?: (value: string) => string;
  },
): Html {
  const { label, name, value: chosen, options: items, showsOf } = options;
  const { id, attributes, texts } = described(options);
  return html`<div class="field"><label for="${id}">${label}</label><select id="${id}" name="${name}"${attributes}>${items.map(
    ([value, text]) =>
      html`<option value="${value}"${value === chosen && html` selected`}${showsOf && html` data-shows="${showsOf(value)}"`}>${text}</option>`,
  )}</select>${texts}</div>`;
}

/** Labelled checkboxes for several values of one name. */
export function checks(
  options: Labelled & { values: readonly string[]; options: readonly (readonly [value: string, label: string])[] },
): Html {
  const { label, name, values, options: items } = options;
  const { id, attributes, texts } = described(options);
  return html`<fieldset class="checks" id="${id}"${attributes}><legend>${label}</legend>${items.map(
    ([value, text]) =>
      html`<label class="check"><input type="checkbox" name="${name}" value="${value}"${
        values.includes(value) && html` checked`
      }>${text}</label>`,
  )}${texts}</fieldset>`;
}

/** A filter form, which sends a GET of the same page. */
export function filterForm(path: string, fields: HtmlValue): Html {
  return html`<form method="get" action="${path}" class="filters">${fields}<div class="submit"><button type="submit">Show</button>
<a class="quiet" href="${path}">Reset</a></div></form>`;
}
