import { WEBHOOK_FORMATS, type WebhookFormat } from '../../../../src/domain/chat/chat-url.ts';
import { shownUrl } from '../../../../src/domain/values/parse-url.ts';
import { showDirectionControls } from '../../../../src/domain/values/text.ts';
import { SUBSCRIBABLE_EVENTS } from '../../../../src/domain/webhooks/event.ts';
import {
  type FilterCondition,
  type FilterValue,
  MAX_CONDITIONS,
  OPERATORS,
} from '../../../../src/domain/webhooks/filter.ts';
import { ORDER_BY } from '../../../../src/domain/webhooks/order.ts';
import { ApiError, invalidRequest } from '../../../errors.ts';
import { type FormView, isEdited, withPoint } from '../../kit/form-view.ts';
import { type Html, html } from '../../kit/html.ts';
import type { Webhook } from '../answers.ts';

const FORMAT_LABELS: Readonly<Record<WebhookFormat, string>> = {
  json: 'signed JSON, for a program',
  discord: 'message in Discord',
  slack: 'message in Slack',
  telegram: 'message in Telegram',
};
const OPERATOR_LABELS: Readonly<Record<(typeof OPERATORS)[number], string>> = {
  equal: 'is',
  in: 'is one of',
  above: 'is at least',
  below: 'is at most',
  exists: 'is present',
};
/** The rows of a filter that a new form has. */
const MIN_ROWS = 3;

/** The fields of a new webhook, or of one that changes: then empty fields of secrets keep their values. */
export function webhookFields(view: FormView, webhook?: Webhook): Html {
  return html`${view.field({
    label: 'Address of your receiver',
    name: 'url',
    hint: webhook
      ? `Now ${shownUrl(webhook.url)}. Leave empty to keep it.`
      : 'https, reachable from the internet. oddswire creates the secret.',
  })}
${view.choice({
  label: 'Format',
  name: 'format',
  value: webhook?.format ?? 'json',
  options: WEBHOOK_FORMATS.map((each) => [each, FORMAT_LABELS[each]] as const),
  hint: 'A message needs the address of a webhook of that service, which is shown with its host only.',
})}
${view.checks({
  label: 'Events',
  name: 'events',
  values: webhook?.events ?? ['price_alert'],
  options: SUBSCRIBABLE_EVENTS.map((each) => [each, each] as const),
})}
<details class="more"${(webhook !== undefined || view.isRejected) && html` open`}><summary>Options</summary><div class="form">
${view.field({ label: 'Description', name: 'description', value: webhook?.description ?? '', hint: 'For you. No delivery contains it.' })}
<fieldset><legend>Order</legend><label class="check"><input type="checkbox" name="ordered" id="field-ordered" value="true"${
    view.isChecked('ordered', webhook?.ordered) && html` checked`
  }>events of one key arrive one after another</label>
<div class="with-order">${view.choice({
    label: 'Key of the order',
    name: 'orderBy',
    value: webhook?.orderBy ?? 'market',
    options: ORDER_BY.map((each) => [each, each] as const),
  })}</div></fieldset>
${view.field({
  label: 'Attempts per second, at most',
  name: 'maxPerSecond',
  value: webhook?.maxPerSecond === undefined ? '' : String(webhook.maxPerSecond),
  hint: webhook
    ? '0.1 to 1000. Leave empty for no limit.'
    : '0.1 to 1000. Leave empty for no limit; a new webhook of a chat service then has 1.',
})}
${filterRows(view, webhook?.filter)}
${headerFields(view, webhook?.headerNames)}</div></details>`;
}

function filterRows(view: FormView, filter: readonly FilterCondition[] = []): Html {
  const sent = rowNumbers(view).length;
  const rows = Math.min(MAX_CONDITIONS, Math.max(MIN_ROWS, (view.isRejected ? sent : filter.length) + 1));
  const numbered = (row: number, label: string) => ({
    label: html`<span class="visually-hidden">Condition ${row + 1}: </span>${label}`,
    called: `Condition ${row + 1}, ${label.toLowerCase()}`,
  });
  return html`<fieldset id="field-filter"><legend>Filter</legend>
<p class="hint">Only events that meet every condition are sent. A field is <code>type</code>, or a path such as <code>data.venue</code>.
A value in quotes is a text, as in <code>"123"</code>; separate several values by commas.</p>${view.problem('filter', 'Filter')}
${Array.from({ length: rows }, (_, row) => {
  const condition = filter[row];
  const operator = condition && OPERATORS.find((each) => condition[each] !== undefined);
  return html`<div class="filter-row">${view.field({ ...numbered(row, 'Field'), name: `filter.${row}.field`, value: condition?.field ?? '' })}
${view.choice({
  ...numbered(row, 'Test'),
  name: `filter.${row}.operator`,
  value: operator ?? 'equal',
  options: OPERATORS.map((each) => [each, OPERATOR_LABELS[each]] as const),
})}
${view.field({ ...numbered(row, 'Value'), name: `filter.${row}.value`, value: condition && operator ? shownValue(condition[operator]) : '' })}</div>`;
})}</fieldset>`;
}

/** No page shows a value of a header, also not one that was just entered. */
function headerFields(view: FormView, names: readonly string[] = []): Html {
  const isAgain = view.isRejected && view.value('headers') !== '';
  return html`${view.secretArea({
    label: 'Headers',
    name: 'headers',
    hint:
      names.length === 0
        ? 'One per line, such as Authorization: Bearer abc. No page shows their values.'
        : `Now ${names.join(', ')}. Leave empty to keep them. Other lines, such as Authorization: Bearer abc, replace all of them.`,
    ...(isAgain && { problem: 'Enter the headers again: no page shows their values.' }),
  })}
${
  names.length > 0 &&
  html`<label class="check"><input type="checkbox" name="removeHeaders" value="true"${view.isChecked('removeHeaders') && html` checked`}>remove all headers</label>`
}`;
}

/** The body of `POST /v1/webhooks`. @throws ApiError `invalid_request` */
export function newWebhookBody(form: URLSearchParams): Record<string, unknown> {
  const { text, filter, headers, maxPerSecond } = readFields(form);
  return {
    url: text('url'),
    events: form.getAll('events'),
    ...(text('format') !== '' && text('format') !== 'json' && { format: text('format') }),
    ...(form.has('ordered') && { ordered: true, orderBy: text('orderBy') }),
    ...(maxPerSecond !== undefined && { maxPerSecond }),
    ...(filter.length > 0 && { filter }),
    ...(headers && { headers }),
    ...(text('description') !== '' && { description: text('description') }),
  };
}

/** The body of `PUT /v1/webhooks/{id}`. An empty address and empty headers stay as they are. @throws ApiError `invalid_request` */
export function webhookChange(form: URLSearchParams, webhook: Webhook): Record<string, unknown> {
  const { text, filter, headers, maxPerSecond } = readFields(form);
  return {
    ...(text('url') !== '' && { url: text('url') }),
    ...(text('format') !== (webhook.format ?? 'json') && { format: text('format') }),
    events: form.getAll('events'),
    ...(form.has('ordered') ? { ordered: true, orderBy: text('orderBy') } : { ordered: false }),
    maxPerSecond: maxPerSecond ?? null,
    // As the page showed them: with visible names of direction controls.
    ...(JSON.stringify(filter) !== showDirectionControls(JSON.stringify(webhook.filter ?? [])) && {
      filter: filter.length > 0 ? filter : null,
    }),
    ...(isEdited(text('description'), webhook.description) && { description: text('description') || null }),
    ...(form.has('removeHeaders') ? { headers: null } : headers && { headers }),
  };
}

function readFields(form: URLSearchParams) {
  const text = (name: string) => (form.get(name) ?? '').trim();
  const rate = withPoint('maxPerSecond', text('maxPerSecond'));
  return {
    text,
    filter: filterOf(form),
    headers: headersOf(form.get('headers') ?? ''),
    // Other text is for the API to reject.
    maxPerSecond: rate === '' ? undefined : Number.isFinite(Number(rate)) ? Number(rate) : rate,
  };
}

/** The form without empty rows of the filter, so that a row has the number of its condition in the body. */
export function withoutEmptyRows(form: URLSearchParams): URLSearchParams {
  const made = new URLSearchParams([...form].filter(([name]) => !name.startsWith('filter.')));
  const rows = rowNumbers({ value: (name) => form.get(name) ?? '' });
  for (const [to, from] of rows.entries()) {
    for (const part of ['field', 'operator', 'value']) {
      made.append(`filter.${to}.${part}`, form.get(`filter.${from}.${part}`) ?? '');
    }
  }
  return made;
}

/** The numbers of the rows that are not empty. */
function rowNumbers({ value }: Pick<FormView, 'value'>): number[] {
  return Array.from({ length: MAX_CONDITIONS }, (_, row) => row).filter(
    (row) => value(`filter.${row}.field`).trim() !== '' || value(`filter.${row}.value`).trim() !== '',
  );
}

function filterOf(form: URLSearchParams): Record<string, unknown>[] {
  return rowNumbers({ value: (name) => form.get(name) ?? '' }).map((row) => {
    const text = (part: string) => (form.get(`filter.${row}.${part}`) ?? '').trim();
    const operator = text('operator');
    return { field: text('field'), [operator]: operandOf(operator, text('value')) };
  });
}

function operandOf(operator: string, text: string): unknown {
  if (operator === 'exists' && text === '') return true;
  return operator === 'in' ? (text.match(/\s*"(?:[^"\\]|\\.)*"\s*|[^,]+/g) ?? []).map(filterValue) : filterValue(text);
}

/** The value of a text: a number, true or false, a text in quotes, or the text itself. */
function filterValue(given: string): FilterValue {
  const text = given.trim();
  if (!/^(true|false|-?\d+(\.\d+)?|"(?:[^"\\]|\\.)*")$/.test(text)) return text;
  try {
    return JSON.parse(text) as FilterValue;
  } catch {
    return text;
  }
}

function shownValue(value: FilterCondition[(typeof OPERATORS)[number]]): string {
  if (Array.isArray(value)) return value.map((each) => shownValue(each)).join(', ');
  if (typeof value !== 'string') return String(value);
  return filterValue(value) === value && !value.includes(',') && value.trim() === value ? value : JSON.stringify(value);
}

/** The headers of a text with one per line; undefined without any. */
function headersOf(text: string): Record<string, string> | undefined {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
  if (lines.length === 0) return undefined;
  const pairs = lines.map((line): [string, string] => {
    const [name = '', ...value] = line.split(':');
    return [name.trim(), value.join(':').trim()];
  });
  const names = pairs.map(([name]) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw invalidRequest([{ path: 'headers', message: `${twice} is a name that occurs twice` }]);
  return Object.fromEntries(pairs);
}

/** The reasons of a rejection with the names of the form. */
export function atWebhookFields(error: ApiError): ApiError {
  const details = error.details.map(({ path, message }) => {
    const [, row] = /^filter\.(\d+)(?!\.field$)/.exec(path) ?? [];
    return { path: row === undefined ? path : `filter.${row}.value`, message };
  });
  return new ApiError(error.code as 'invalid_request', error.message, { details });
}

/** A filter in words. */
export function filterWords(filter: readonly FilterCondition[]): Html {
  return html`${filter.map((condition, index) => {
    const operator = OPERATORS.find((each) => condition[each] !== undefined);
    if (operator === undefined) return null;
    const test =
      operator === 'exists'
        ? condition.exists
          ? 'is present'
          : 'is absent'
        : `${OPERATOR_LABELS[operator]} ${shownValue(condition[operator])}`;
    return html`${index > 0 && html`<br>`}<code>${condition.field}</code> <span class="long">${test}</span>`;
  })}`;
}
