import { CONDITIONS, type Condition, DEFAULT_COOLDOWN_SECONDS } from '../../../src/domain/alerts/alert.ts';
import { span } from '../../../src/domain/values/durations.ts';
import { CONDITION_FIELDS, FIELDS_OF } from '../../contract/alert-conditions.ts';
import { ApiError } from '../../errors.ts';
import { type Html, html } from '../../ops/html.ts';
import { fieldMoment, momentField } from '../../ops/pages/filters.ts';
import { shownUrl } from '../../ops/pages/shown-values.ts';
import type { Alert, Webhook } from '../answers.ts';
import { type FormView, isEdited, linesOf, withPoint } from '../form-view.ts';
import { plain, venueTitle } from '../values.ts';
import { secondsOf } from './alert-words.ts';

const CONDITION_LABELS: Readonly<Record<Condition, string>> = {
  above: 'Price: at a target or above',
  below: 'Price: at a target or below',
  crosses_above: 'Price: rises to a target',
  crosses_below: 'Price: falls to a target',
  change: 'Price: moves within a window',
  spread: 'Spread of bid and ask',
  trade: 'A large trade',
  volume: 'Volume within a window',
  status: 'The market halts, closes or gets its result',
  new_market: 'A new market',
};
const SCOPE_FIELDS = ['market_id', 'event_id', 'venue', 'category', 'q'] as const;

/** Fields of the form whose name in the API depends on the condition. */
const DIRECTION_FIELDS: Partial<Record<Condition, string>> = { spread: 'spreadDirection', change: 'changeDirection' };

interface Choices {
  /** The active webhooks that list `price_alert`. */
  webhooks: readonly Webhook[];
  venues: readonly string[];
  /** The name of the outcome that the form names. */
  outcome?: Html | undefined;
}

/** All fields of a new alert. The style sheet shows those of the chosen condition; the body has only those, with every browser. */
export function alertFields(view: FormView, { webhooks, venues, outcome }: Choices): Html {
  const isScope = view.value('subject') === 'scope';
  return html`${view.choice({
    label: 'Condition',
    name: 'condition',
    value: 'above',
    options: CONDITIONS.map((each) => [each, CONDITION_LABELS[each]] as const),
  })}
<fieldset><legend>Watches</legend>
<div class="radios"><label class="check"><input type="radio" name="subject" value="token" id="subject-token"${!isScope && html` checked`}>one outcome</label>
<label class="check"><input type="radio" name="subject" value="scope" id="subject-scope"${isScope && html` checked`}>all outcomes of markets</label></div>
<div class="for-token">${view.field({
    label: 'Outcome',
    name: 'tokenMint',
    hint: outcome ? undefined : 'The id of an outcome, as a market page copies it, or of a token.',
  })}${outcome && html`<p class="hint">${outcome}</p>`}</div>
<div class="for-scope"><p class="hint" id="field-scope">At least one field. All given ones must fit, also for markets that appear later.</p>${view.problem('scope', 'All outcomes of markets')}
<div class="pair"><div class="for-market">${view.field({ label: 'Id of a market', name: 'scope.market_id' })}</div>
${view.field({ label: 'Id of an event', name: 'scope.event_id' })}
${view.choice({
  label: 'Venue',
  name: 'scope.venue',
  value: '',
  options: [['', 'any'], ...venues.map((venue) => [venue, venueTitle(venue)] as const)],
})}
${view.field({ label: 'Category', name: 'scope.category', hint: 'In the spelling of the venue.' })}
${view.field({ label: 'Words', name: 'scope.q', hint: 'Each one is in the title of the market or of its event.' })}</div></div></fieldset>
<div class="when-price">${view.field({
    label: html`<span class="for-price">Price</span> <span class="for-spread">Spread</span>`,
    called: view.value('condition') === 'spread' ? 'Spread' : 'Price',
    name: 'price',
    hint: 'In the currency of the outcome: 0.25 is 25 %. For other tokens the price itself.',
  })}</div>
<div class="when-spread">${spreadDirection(view, 'spreadDirection')}</div>
<div class="when-change"><div class="pair">${view.field({ label: 'Move', name: 'change', hint: 'At least this: 0.05 is 5 points.' })}
${unitField(view)}
${changeDirection(view, 'changeDirection')}</div></div>
<div class="when-notional">${view.field({
    label: 'Amount',
    name: 'notional',
    hint: 'Price times size, in the currency of the outcome. For a volume: the sum of the trades of the window.',
  })}</div>
<div class="when-volume"><div class="pair">${view.field({ label: 'Or multiple', name: 'times', hint: 'Of the mean of the windows before, such as 3.' })}
${view.field({ label: 'Windows for the mean', name: 'windows' })}</div></div>
<div class="when-window">${view.field({ label: 'Window', name: 'windowSeconds', hint: 'Such as 90 s, 15 min or 1 h; at most 24 h.' })}</div>
<fieldset><legend>Then</legend>
<label class="check"><input type="checkbox" name="repeat" id="field-repeat" value="true"${view.isChecked('repeat') && html` checked`}>fire again after a cool-down</label>
<div class="with-repeat">${cooldownField(view, span(DEFAULT_COOLDOWN_SECONDS))}</div>
${webhookField(view, webhooks)}
${endField(view)}</fieldset>
${nameFields(view)}`;
}

/** The fields that an alert can change. Without `webhooks`, the key must not read them. */
export function editFields(view: FormView, alert: Alert, webhooks: readonly Webhook[] | undefined): Html {
  const threshold = thresholdOf(alert);
  const repeats = alert.cooldownSeconds !== undefined;
  return html`${
    threshold !== undefined &&
    view.field({ label: THRESHOLD_LABELS[threshold], name: threshold, value: plain(alert[threshold] ?? '') })
  }
${alert.condition === 'spread' && spreadDirection(view, 'direction', alert.direction)}
${alert.condition === 'change' && html`${unitField(view, alert.unit)}${changeDirection(view, 'direction', alert.direction)}`}
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

function spreadDirection(view: FormView, name: string, value = 'at_most'): Html {
  return view.choice({
    label: 'Fires when the spread is',
    name,
    value,
    options: [
      ['at_most', 'at most this'],
      ['at_least', 'at least this'],
    ],
  });
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

function changeDirection(view: FormView, name: string, value = ''): Html {
  return view.choice({
    label: 'Direction',
    name,
    value,
    options: [
      ['', 'up or down'],
      ['up', 'up'],
      ['down', 'down'],
    ],
  });
}

function webhookField(view: FormView, webhooks: readonly Webhook[], value = ''): Html {
  const named = webhooks.map(({ id, url }) => [id, shownUrl(url)] as const);
  const isListed = value === '' || named.some(([id]) => id === value);
  return view.choice({
    label: 'Webhook',
    name: 'webhookId',
    value,
    options: [['', 'the default webhook'], ...named, ...(isListed ? [] : [[value, value] as const])],
  });
}

const THRESHOLD_LABELS = {
  price: 'Price',
  change: 'Move',
  notional: 'Amount',
  times: 'Multiple',
} as const;

function thresholdOf(alert: Alert): keyof typeof THRESHOLD_LABELS | undefined {
  return (['price', 'change', 'notional', 'times'] as const).find((each) => alert[each] !== undefined);
}

function cooldownField(view: FormView, value: string): Html {
  return view.field({
    label: 'Cool-down',
    name: 'cooldownSeconds',
    value,
    hint: 'The least time between two firings on one outcome, such as 15 min or 1 d.',
  });
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
  const { required = [], optional = [] } = condition === undefined ? {} : FIELDS_OF[condition];
  const body: Record<string, unknown> = { condition: condition ?? text('condition') };
  if (condition === 'new_market' || text('subject') === 'scope') {
    body['scope'] = Object.fromEntries(
      SCOPE_FIELDS.filter((each) => condition !== 'new_market' || each !== 'market_id')
        .map((each) => [each, text(`scope.${each}`)] as const)
        .filter(([, value]) => value !== ''),
    );
  } else if (text('tokenMint') !== '') body['tokenMint'] = text('tokenMint');
  for (const name of CONDITION_FIELDS) {
    if (![...required, ...optional].includes(name)) continue;
    const value = text(name === 'direction' && condition ? (DIRECTION_FIELDS[condition] ?? name) : name);
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
  for (const name of ['direction', 'unit', 'windows'] as const) {
    if (form.has(name) && text(name) !== String(alert[name] ?? '')) body[name] = inputOf(name, text(name)) || null;
  }
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
  const direction = (condition && DIRECTION_FIELDS[condition]) ?? 'direction';
  const details = error.details.map(({ path, message }) => ({
    path: path === 'direction' ? direction : path,
    message,
  }));
  return new ApiError(error.code as 'invalid_request', error.message, { details });
}

function inputOf(name: string, text: string): unknown {
  if (name === 'direction' || name === 'unit') return text;
  return name === 'windowSeconds' ? secondsOf(text) : numberOf(withPoint(name, text));
}

/** The number of a field; null, which the API rejects with a message, for other text. */
function numberOf(text: string): number | null {
  return text === '' || !Number.isFinite(Number(text)) ? null : Number(text);
}
