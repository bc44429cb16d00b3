import { showDirectionControls } from '../../../src/domain/values/text.ts';
import { type ApiError, type ErrorDetail, invalidRequest } from '../../errors.ts';
import { area, checks, choice, field } from './forms.ts';
import { type Html, type HtmlValue, html } from './html.ts';

type Options<Control extends (options: never) => Html> = Parameters<Control>[0] & {
  /** The label in the list of reasons, for a label with markup. */
  called?: string;
};

/** A form with the values that the browser sent, and the reasons of the API at the fields. Names of fields are paths of the API's body. */
export interface FormView {
  /** Whether the API rejected these values. */
  readonly isRejected: boolean;
  value(name: string, initial?: string): string;
  values(name: string, initial?: readonly string[]): readonly string[];
  isChecked(name: string, initial?: boolean): boolean;
  field(options: Options<typeof field>): Html;
  area(options: Options<typeof area>): Html;
  /** A text that the page never shows again. A reason of the API comes before `problem`. */
  secretArea(options: Options<typeof area>): Html;
  choice(options: Options<typeof choice>): Html;
  checks(options: Options<typeof checks>): Html;
  /** The reason against an object as a whole, for a place that no control has. */
  problem(name: string, label: string): Html;
  /** The fields of the form under all reasons, which have the labels of the fields and links to them. */
  withReasons(fields: Html): Html;
}

/** A form before the first attempt, or after a rejection. `lead` states what the rejection means. */
export function formView(sent?: URLSearchParams, error?: ApiError, lead = 'Nothing was saved.'): FormView {
  const details: readonly ErrorDetail[] = error?.details ?? [];
  const problemOf = (name: string): { problem?: string } => {
    const own = details.filter(({ path }) => path === name || path.startsWith(`${name}.`));
    if (own.length === 0) return {};
    const words = own.map(({ path, message }) =>
      path === name ? message : `${path.slice(name.length + 1)}: ${message}`,
    );
    return { problem: words.join('; ') };
  };
  const value = (name: string, initial = '') => sent?.get(name) ?? initial;
  const values = (name: string, initial: readonly string[] = []) => sent?.getAll(name) ?? initial;

  const labels = new Map<string, HtmlValue>();
  const own = ({ name, label, called }: { name: string; label: HtmlValue; called?: string }) => {
    labels.set(name, called ?? label);
    return problemOf(name);
  };
  const labelOf = (path: string) => labels.get(path) ?? labels.get(fieldOf(path)) ?? path;

  return {
    isRejected: error !== undefined,
    value,
    values,
    isChecked: (name, initial = false) => (sent ? sent.has(name) : initial),
    field: (options) => field({ ...options, ...own(options), value: value(options.name, options.value) }),
    area: (options) => area({ ...options, ...own(options), value: value(options.name, options.value) }),
    secretArea: (options) => area({ ...options, ...own(options), value: '' }),
    choice: (options) => choice({ ...options, ...own(options), value: value(options.name, options.value) }),
    checks: (options) => checks({ ...options, ...own(options), values: values(options.name, options.values) }),
    problem(name, label) {
      labels.set(name, label);
      const found = details.find(({ path }) => path === name);
      return html`${found && html`<p class="field-problem">${found.message}</p>`}`;
    },
    withReasons(fields) {
      if (error === undefined) return fields;
      const reasons =
        details.length === 0
          ? html`<p>${error.message}</p>`
          : html`<ul>${details.map(
              ({ path, message }) => html`<li><a href="#field-${fieldOf(path)}">${labelOf(path)}: ${message}</a></li>`,
            )}</ul>`;
      return html`<div class="problem" role="alert"><p>${lead}</p>${reasons}</div>${fields}`;
    },
  };
}

/** The field of a path: fields of objects have a name each, lists have one. */
function fieldOf(path: string): string {
  return /^(scope|filter|find)\./.test(path) ? path : (path.split('.')[0] ?? '');
}

/** A text with the line breaks of the API: browsers send another one. */
export function linesOf(text: string): string {
  return text.replaceAll('\r\n', '\n');
}

/**
 * A number as the API reads it: a comma may stand in place of the point.
 * @throws ApiError `invalid_request` for `1,000`, which is a thousand for some people and one for others
 */
export function withPoint(path: string, text: string): string {
  const given = text.replace(',', '.');
  if (!/^[1-9]\d{0,2},\d{3}$/.test(text)) return given;
  throw invalidRequest([{ path, message: `write ${text.replace(',', '')}, or ${given} with a point` }]);
}

/** Whether a trimmed field differs from the field that a page showed for a stored text. */
export function isEdited(text: string, stored = ''): boolean {
  return linesOf(text) !== linesOf(showDirectionControls(stored)).trim();
}
