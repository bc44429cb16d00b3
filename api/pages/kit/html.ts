import { html as escaped } from 'ghtml';
import { showDirectionControls } from '../../../src/domain/values/text.ts';

/** Safe markup. `html` builds it from literals and escaped values only. */
export class Html {
  readonly #text: string;

  private constructor(text: string) {
    this.#text = text;
  }

  /** Builds markup from the literals and the values of a template. */
  static of(strings: readonly string[], values: readonly HtmlValue[]): Html {
    let text = strings[0] ?? '';
    for (const [index, value] of values.entries()) text += render(value) + (strings[index + 1] ?? '');
    return new Html(text);
  }

  toString(): string {
    return this.#text;
  }
}

/** The values of a template: text and numbers are escaped; null and undefined print nothing. */
export type HtmlValue = Html | string | number | bigint | null | undefined | false | readonly HtmlValue[];

/** Builds markup and escapes every value except `Html`. Attributes must be quoted. */
export function html(strings: TemplateStringsArray, ...values: HtmlValue[]): Html {
  return Html.of(strings, values);
}

/** Escapes each value separately: ghtml leaves a value unescaped after a `!`. Text cannot change the order of the text around it. */
function render(value: HtmlValue): string {
  if (value === null || value === undefined || value === false) return '';
  if (value instanceof Html) return value.toString();
  if (typeof value === 'object') return value.map(render).join('');
  return escaped`${showDirectionControls(String(value))}`;
}

/** The placeholder for unknown or inapplicable values. */
export const NONE = html`<span class="none" aria-label="none">–</span>`;

/** A whole or decimal number in groups of three digits. */
export function number(value: number | bigint | null | undefined): Html {
  if (value === null || value === undefined) return NONE;
  return html`<span class="num">${value.toLocaleString('en-US')}</span>`;
}

/** A moment, `2026-03-01 14:05:09` in UTC. */
export function time(at: Date | null | undefined): Html {
  if (at === null || at === undefined) return NONE;
  const iso = at.toISOString();
  return html`<time class="num" datetime="${iso}" title="${iso}">${iso.slice(0, 10)} ${iso.slice(11, 19)}</time>`;
}

/** A moment as a time of day, `14:05:09` in UTC, with the date when it is of another day. */
export function clock(at: Date, nowMs: number): Html {
  const iso = at.toISOString();
  const isToday = new Date(nowMs).toISOString().slice(0, 10) === iso.slice(0, 10);
  return html`<time class="num" datetime="${iso}" title="${iso}">${isToday ? '' : `${iso.slice(0, 10)} `}${iso.slice(11, 19)}</time>`;
}

/** A moment relative to now: `12 s ago`, `in 3 min`. */
export function ago(at: Date | null | undefined, nowMs: number): Html {
  if (at === null || at === undefined) return NONE;
  const iso = at.toISOString();
  const pastMs = nowMs - at.getTime();
  const words = Math.abs(pastMs) < 1_000 ? 'now' : pastMs > 0 ? `${duration(pastMs)} ago` : `in ${duration(-pastMs)}`;
  return html`<time class="num" datetime="${iso}" title="${iso}">${words}</time>`;
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A length of time in its largest fitting unit: `340 ms`, `12 s`, `3 min`, `5 h`, `2 d`. */
export function duration(ms: number): string {
  const [unit, size] = UNITS.find(([, unitMs]) => Math.abs(ms) >= unitMs) ?? (['ms', 1] as const);
  return `${Math.floor(ms / size)} ${unit}`;
}

export type Tone = 'good' | 'warn' | 'bad' | 'idle';

/** A state: colour and shape show its severity, the word names it. */
export function badge(tone: Tone, text: string): Html {
  return html`<span class="badge ${tone}">${text}</span>`;
}

/** Text that may be long or hostile. Shown in full, with line breaks anywhere. */
export function longText(text: string | null | undefined): Html {
  return text === null || text === undefined || text === '' ? NONE : html`<span class="long">${text}</span>`;
}

/** An id, an address or the like, in a fixed-width face. */
export function code(text: string | null | undefined): Html {
  return text === null || text === undefined || text === '' ? NONE : html`<code>${text}</code>`;
}

export interface Column<Row> {
  label: string;
  cell(row: Row): HtmlValue;
  /** Right-aligned, with digits of equal width. */
  isNumeric?: boolean;
}

/** A table, a list of cards on a phone. The first column names the row. */
export function table<Row>(options: {
  /** The table's caption for screen readers. */
  caption: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** Replaces a table without rows. */
  empty: HtmlValue;
}): Html {
  const { caption, columns, rows, empty } = options;
  if (rows.length === 0) return emptyState(empty);
  const side = ({ isNumeric }: Column<Row>) => (isNumeric ? 'numeric' : 'text');
  // Explicit roles, because the block layout on phones removes the implicit roles of table elements.
  return html`<div class="table-wrap" role="region" aria-label="${caption}" tabindex="0"><table role="table">
<caption class="visually-hidden">${caption}</caption>
<thead role="rowgroup"><tr role="row">${columns.map(
    (column) => html`<th role="columnheader" scope="col" class="${side(column)}">${column.label}</th>`,
  )}</tr></thead>
<tbody role="rowgroup">${rows.map(
    (row) =>
      html`<tr role="row">${columns.map((column, index) =>
        index === 0
          ? html`<th role="rowheader" scope="row" class="${side(column)}">${column.cell(row)}</th>`
          : html`<td role="cell" class="${side(column)}" data-label="${column.label}"><div>${column.cell(row)}</div></td>`,
      )}</tr>`,
  )}</tbody></table></div>`;
}

/** States that a list is empty, and the reason. */
export function emptyState(text: HtmlValue): Html {
  return html`<p class="empty">${text}</p>`;
}

/** A list of names and values. */
export function facts(pairs: readonly (readonly [name: string, value: HtmlValue])[]): Html {
  return html`<dl class="facts">${pairs.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}
