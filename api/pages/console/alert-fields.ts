import {
  CONDITION_FIELDS,
  type ConditionDefinition,
  DEFAULT_COOLDOWN_SECONDS,
  THRESHOLD_FIELDS,
  type ThresholdField,
} from '../../../src/domain/alerts/condition.ts';
import {
  CONDITIONS,
  type Condition,
  conditionOf,
  findCondition,
  isBookCondition,
  isOfNewMarkets,
} from '../../../src/domain/alerts/conditions.ts';
import { ORDER_SIDES } from '../../../src/domain/markets/market.ts';
import { RESOLUTION_STATES } from '../../../src/domain/markets/resolution.ts';
import { span } from '../../../src/domain/values/durations.ts';
import { ApiError } from '../../errors.ts';
import { fieldMoment, momentField } from '../kit/filters.ts';
import { type FormView, isEdited, linesOf, withPoint } from '../kit/form-view.ts';
import { hidden } from '../kit/forms.ts';
import { type Html, html } from '../kit/html.ts';
import { atPick, type Picks, pickField } from './alert-picks/field.ts';
import { webhookField } from './alert-webhooks.ts';
import { secondsOf } from './alert-words.ts';
import type { Alert, Webhook } from './answers.ts';
import { plain, venueTitle } from './values.ts';

const SCOPE_FIELDS = ['market_id', 'event_id', 'venue', 'category', 'q'] as const;

/** The name in the form of the field `direction` of a condition: several conditions have one, with other values. */
const directionName = (condition: Condition) => `${condition}Direction`;

/** The conditions with a direction. */
const DIRECTED = CONDITIONS.flatMap((name) => {
  const { direction } = conditionOf(name);
  return direction === undefined ? [] : [{ name, direction }];
});

/** The classes of the parts of the form that a condition needs. */
function shownParts(condition: string): string {
  const definition = findCondition(condition);
  if (definition === undefined) return '';
  const fields = [...definition.required, ...(definition.optional ?? [])];
  return [
    ...fields.map((field) => (field === 'direction' ? `when-direction-of-${condition}` : `when-${field}`)),
    ...(fields.includes('price')
      ? [definition.priceLabel === undefined ? 'for-price' : definition.of === 'book' ? 'for-net' : 'for-spread']
      : []),
    ...(isOfNewMarkets(condition as Condition) ? ['new-markets'] : []),
    ...(isBookCondition(condition as Condition) ? ['of-books'] : []),
  ].join(' ');
}

interface Choices {
  /** All webhooks of the account; undefined for a key that must not read them. */
  webhooks: readonly Webhook[] | undefined;
  picks: Picks;
}

interface NewChoices extends Choices {
  venues: readonly string[];
}

/** All fields of a new alert. The style sheet shows those of the chosen condition; the body has only those, with every browser. */
export function alertFields(view: FormView, choices: NewChoices): Html {
  const { venues, picks } = choices;
  const isScope = view.value('subject') === 'scope';
  return html`${conditionField(view, CONDITIONS)}
<fieldset><legend>Watches</legend>
<div class="radios"><label class="check"><input type="radio" name="subject" value="token" id="subject-token"${!isScope && html` checked`}>one outcome</label>
<label class="check"><input type="radio" name="subject" value="scope" id="subject-scope"${isScope && html` checked`}>all outcomes of markets</label></div>
<div class="for-token">${pickField(view, 'tokenMint', picks, OUTCOME_HINT)}</div>
<div class="for-scope"><p class="hint" id="field-scope">At least one field. All given ones must fit, also for markets that appear later.</p>${view.problem('scope', 'All outcomes of markets')}
${pickField(view, 'scope', picks, 'Words of its title, or its id.')}
<div class="pair">${view.choice({
    label: 'Venue',
    name: 'scope.venue',
    value: '',
    options: [['', 'any'], ...venues.map((venue) => [venue, venueTitle(venue)] as const)],
  })}
${view.field({ label: 'Category', name: 'scope.category', hint: 'In the spelling of the venue.' })}
${view.field({ label: 'Words', name: 'scope.q', hint: 'Each one is in the title of the market or of its event.' })}</div></div></fieldset>
${conditionParts(view, picks)}
${endParts(view, choices)}`;
}

/** The fields of a new alert on one outcome, which its page shows. */
export function outcomeAlertFields(view: FormView, outcome: string, choices: Choices): Html {
  const conditions = CONDITIONS.filter((each) => !isOfNewMarkets(each));
  return html`${hidden({ subject: 'token', tokenMint: outcome })}
<div class="pair">${conditionField(view, conditions)}${conditionParts(view, choices.picks)}</div>
<p class="hint" data-distance></p>
${endParts(view, choices)}`;
}

function conditionField(view: FormView, conditions: readonly Condition[]): Html {
  return view.choice({
    label: 'Condition',
    name: 'condition',
    value: 'above',
    options: conditions.map((each) => [each, conditionOf(each).label] as const),
    showsOf: shownParts,
  });
}

/** The fields of all conditions. The style sheet shows the fields of the chosen one. */
function conditionParts(view: FormView, picks: Picks): Html {
  return html`<div class="when-price">${view.field({
    label: html`<span class="for-price">Price</span> <span class="for-spread">Spread</span> <span class="for-net">Net per unit</span>`,
    called: findCondition(view.value('condition'))?.priceLabel ?? 'Price',
    name: 'price',
    hint: 'In the currency of the outcome: 0.25 is 25 %. For other tokens the price itself.',
  })}</div>
<div class="when-change"><div class="pair">${view.field({ label: 'Move', name: 'change', hint: 'At least this: 0.05 is 5 points.' })}
${unitField(view)}</div></div>
${DIRECTED.map(
  ({ name, direction }) =>
    html`<div class="when-direction-of-${name}">${directionField(view, direction, directionName(name))}</div>`,
)}
${orderFields(view, picks)}
<div class="when-notional">${view.field({
    label: 'Amount',
    name: 'notional',
    hint: 'Price times size, in the currency of the outcome. For a volume: the sum of the trades of the window. For an order: what it costs without the fee.',
  })}</div>
<div class="when-times"><div class="pair">${view.field({ label: 'Or multiple', name: 'times', hint: 'Of the mean of the windows before, such as 3.' })}
${view.field({ label: 'Windows for the mean', name: 'windows' })}</div></div>
${statesField(view)}
<div class="when-windowSeconds">${view.field({ label: 'Window', name: 'windowSeconds', hint: 'Such as 90 s, 15 min or 1 h; at most 24 h.' })}</div>`;
}

/** How often the alert fires, which webhook gets its events, and its end and its name. */
function endParts(view: FormView, { webhooks }: Choices): Html {
  const isOpen = ['expiresAt', 'name', 'note'].some((each) => view.value(each) !== '');
  return html`<fieldset><legend>Then</legend>
<label class="check"><input type="checkbox" name="repeat" id="field-repeat" value="true"${view.isChecked('repeat') && html` checked`}>fire again after a cool-down</label>
<div class="with-repeat">${cooldownField(view, span(DEFAULT_COOLDOWN_SECONDS))}</div>
${webhookField(view, webhooks)}</fieldset>
<details class="more"${(isOpen || view.isRejected) && html` open`}><summary>End, name and note</summary><div class="form">${endField(view)}
${nameFields(view)}</div></details>`;
}

const OUTCOME_HINT = 'Words of the question, or the id of an outcome or a token.';

/** The fields that an alert can change. Without `webhooks`, the key must not read them. */
export function editFields(view: FormView, alert: Alert, webhooks: readonly Webhook[] | undefined): Html {
  const threshold = thresholdOf(alert);
  const repeats = alert.cooldownSeconds !== undefined;
  const { direction } = conditionOf(alert.condition);
  return html`${
    threshold !== undefined &&
    view.field({ label: THRESHOLD_LABELS[threshold], name: threshold, value: plain(alert[threshold] ?? '') })
  }
${alert.side !== undefined && sideField(view, alert.side)}
${alert.size !== undefined && sizeField(view, plain(alert.size))}
${
  isBookCondition(alert.condition) &&
  alert.notional !== undefined &&
  view.field({ label: THRESHOLD_LABELS.notional, name: 'notional', value: plain(alert.notional) })
}
${alert.states !== undefined && statesField(view, alert.states)}
${alert.unit !== undefined && unitField(view, alert.unit)}
${direction !== undefined && directionField(view, direction, 'direction', alert.direction ?? '')}
${alert.windows !== undefined && view.field({ label: 'Windows for the mean', name: 'windows', value: String(alert.windows) })}
${
  alert.windowSeconds !== undefined &&
  view.field({
    label: 'Window',
    name: 'windowSeconds',
    value: span(alert.windowSeconds),
    hint: 'Such as 15 min or 1 h.',
  })
}
${view.choice({
  label: 'Fires',
  name: 'repeat',
  value: String(repeats),
  options: [
    ['false', alert.tokenMint === undefined ? 'once for each outcome or market' : 'once'],
    ['true', 'again after a cool-down'],
  ],
})}
${cooldownField(view, span(alert.cooldownSeconds ?? DEFAULT_COOLDOWN_SECONDS))}
<p class="hint">A change of the fields above, or of the end, starts the alert anew: it looks at observations from then on.${
    repeats &&
    alert.tokenMint !== undefined &&
    alert.triggeredAt !== undefined &&
    ' This alert has fired: when it fires only once, it ends now.'
  }</p>
${endField(view, alert.expiresAt)}
${webhooks !== undefined && webhookField(view, webhooks, alert.webhookId)}
${nameFields(view, alert)}`;
}

function directionField(
  view: FormView,
  { label, options }: NonNullable<ConditionDefinition['direction']>,
  name: string,
  value: string = options[0]?.[0] ?? '',
): Html {
  return view.choice({ label, name, value, options });
}

function unitField(view: FormView, value = 'absolute'): Html {
  return view.choice({
    label: 'Unit of the move',
    name: 'unit',
    value,
    options: [
      ['absolute', 'of the price'],
      ['percent', '% of the earlier price'],
    ],
  });
}

const THRESHOLD_LABELS: Readonly<Record<ThresholdField, string>> = {
  price: 'Price',
  change: 'Move',
  notional: 'Amount',
  times: 'Multiple',
};

function thresholdOf(alert: Alert): ThresholdField | undefined {
  return THRESHOLD_FIELDS.find((each) => alert[each] !== undefined);
}

function cooldownField(view: FormView, value: string): Html {
  return view.field({
    label: 'Cool-down',
    name: 'cooldownSeconds',
    value,
    hint: 'The least time between two firings on one outcome, such as 15 min or 1 d.',
  });
}

/** The order of a new alert on books. */
function orderFields(view: FormView, picks: Picks): Html {
  return html`<div class="when-sellTokenMint">${pickField(view, 'sellTokenMint', picks, OUTCOME_HINT)}</div>
<div class="when-side">${sideField(view)}</div>
<div class="when-size">${sizeField(view)}</div>`;
}

function sideField(view: FormView, value = 'buy'): Html {
  return view.choice({
    label: 'Order',
    name: 'side',
    value,
    options: ORDER_SIDES.map((side) => [side, side] as const),
  });
}

function sizeField(view: FormView, value = ''): Html {
  return view.field({
    label: 'Size',
    name: 'size',
    value,
    hint: 'Units of the outcome, such as 500. For an order, this or an amount.',
  });
}

/** The states of a result that fire the alert. */
function statesField(view: FormView, chosen: readonly string[] = []): Html {
  return html`<div class="when-states"><fieldset><legend>The result is</legend>${view.problem('states', 'The result is')}
<div class="radios">${RESOLUTION_STATES.filter((state) => state !== 'none').map(
    (state) =>
      html`<label class="check"><input type="checkbox" name="states" value="${state}"${chosen.includes(state) && html` checked`}>${state}</label>`,
  )}</div></fieldset></div>`;
}

function endField(view: FormView, expiresAt?: string): Html {
  return view.field({
    label: 'Ends (UTC)',
    name: 'expiresAt',
    type: 'datetime-local',
    value: expiresAt === undefined ? '' : fieldMoment(new Date(expiresAt)),
    hint: 'Leave empty for no end.',
  });
}

function nameFields(view: FormView, { name = '', note = '' }: Pick<Alert, 'name' | 'note'> = {}): Html {
  return html`${view.field({ label: 'Name', name: 'name', value: name, hint: 'Optional. The event has it.' })}
${view.area({ label: 'Note', name: 'note', value: note, hint: 'Optional, for you.' })}`;
}

/** The body of `POST /v1/alerts`: only the fields of the chosen condition. */
export function newAlertBody(form: URLSearchParams): Record<string, unknown> {
  const text = (name: string) => (form.get(name) ?? '').trim();
  const condition = CONDITIONS.find((each) => each === text('condition'));
  const { required = [], optional = [] } = (condition && conditionOf(condition)) ?? {};
  const isOfNew = condition !== undefined && isOfNewMarkets(condition);
  const body: Record<string, unknown> = { condition: condition ?? text('condition') };
  const isOnBooks = condition !== undefined && isBookCondition(condition);
  if (isOfNew || (text('subject') === 'scope' && !isOnBooks)) {
    body['scope'] = Object.fromEntries(
      SCOPE_FIELDS.filter((each) => !isOfNew || each !== 'market_id')
        .map((each) => [each, text(`scope.${each}`)] as const)
        .filter(([, value]) => value !== ''),
    );
  } else if (text('tokenMint') !== '') body['tokenMint'] = text('tokenMint');
  for (const name of CONDITION_FIELDS) {
    if (![...required, ...optional].includes(name)) continue;
    if (name === 'states') {
      if (form.has(name)) body[name] = form.getAll(name);
      continue;
    }
    const value = text(name === 'direction' && condition ? directionName(condition) : name);
    if (value !== '') body[name] = inputOf(name, value);
  }
  if (form.has('repeat')) {
    body['repeat'] = true;
    if (text('cooldownSeconds') !== '') body['cooldownSeconds'] = secondsOf(text('cooldownSeconds'));
  }
  const end = momentField(form, 'expiresAt');
  if (end !== undefined) body['expiresAt'] = end.toISOString();
  for (const name of ['name', 'note', 'webhookId']) if (text(name) !== '') body[name] = linesOf(text(name));
  return body;
}

/** The body of `PATCH /v1/alerts/{id}`: only the fields that differ, because some of them start the alert anew. */
export function alertChange(form: URLSearchParams, alert: Alert): Record<string, unknown> {
  const text = (name: string) => (form.get(name) ?? '').trim();
  const body: Record<string, unknown> = {};
  const threshold = thresholdOf(alert);
  if (threshold !== undefined && text(threshold) !== plain(alert[threshold] ?? '')) {
    body[threshold] = inputOf(threshold, text(threshold));
  }
  // A field that the form does not have stays.
  for (const name of ['direction', 'unit', 'windows', 'side'] as const) {
    if (form.has(name) && text(name) !== String(alert[name] ?? '')) body[name] = inputOf(name, text(name)) || null;
  }
  for (const name of ['size', 'notional'] as const) {
    if (isBookCondition(alert.condition) && form.has(name) && text(name) !== plain(alert[name] ?? ''))
      body[name] = inputOf(name, text(name));
  }
  const states = form.getAll('states');
  if (states.length > 0 && alert.states !== undefined && states.join() !== alert.states.join()) body['states'] = states;
  const windowSeconds = secondsOf(text('windowSeconds'));
  if (alert.windowSeconds !== undefined && windowSeconds !== alert.windowSeconds) body['windowSeconds'] = windowSeconds;
  const repeats = alert.cooldownSeconds !== undefined;
  const shallRepeat = form.has('repeat') ? text('repeat') === 'true' : repeats;
  if (shallRepeat !== repeats) body['repeat'] = shallRepeat;
  const cooldownSeconds = secondsOf(text('cooldownSeconds'));
  const hasCooldown = repeats || text('cooldownSeconds') !== '';
  if (shallRepeat && hasCooldown && cooldownSeconds !== alert.cooldownSeconds)
    body['cooldownSeconds'] = cooldownSeconds;
  if (form.has('webhookId') && text('webhookId') !== (alert.webhookId ?? '')) {
    body['webhookId'] = text('webhookId') || null;
  }
  const before = alert.expiresAt === undefined ? '' : fieldMoment(new Date(alert.expiresAt));
  if (text('expiresAt') !== before) body['expiresAt'] = momentField(form, 'expiresAt')?.toISOString() ?? null;
  for (const name of ['name', 'note'] as const) {
    if (isEdited(text(name), alert[name])) body[name] = linesOf(text(name)) || null;
  }
  return body;
}

/** The reasons of a rejection with the names of the form. */
export function atAlertFields(error: ApiError, form: URLSearchParams): ApiError {
  const condition = CONDITIONS.find((each) => each === form.get('condition'));
  const direction = condition && conditionOf(condition).direction ? directionName(condition) : 'direction';
  const details = error.details.map(({ path, message }) => ({
    path: path === 'direction' ? direction : atPick(path),
    message,
  }));
  return new ApiError(error.code as 'invalid_request', error.message, { details });
}

function inputOf(name: string, text: string): unknown {
  if (['direction', 'unit', 'side', 'sellTokenMint'].includes(name)) return text;
  return name === 'windowSeconds' ? secondsOf(text) : numberOf(withPoint(name, text));
}

/** The number of a field; null, which the API rejects with a message, for other text. */
function numberOf(text: string): number | null {
  return text === '' || !Number.isFinite(Number(text)) ? null : Number(text);
}
