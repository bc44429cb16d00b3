import {
  type Condition,
  isMarketCondition,
  isOfNewMarkets,
  OUTCOME_CONDITIONS,
} from '../../../src/domain/alerts/conditions.ts';
import { VENUES } from '../../../src/domain/markets/venue.ts';
import { decimal } from '../../../src/domain/values/decimal.ts';
import { span } from '../../../src/domain/values/durations.ts';
import { type Html, html } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { destinationOf } from './alert-webhooks.ts';
import { clauseOf, targetOf } from './alert-words.ts';
import { type Alert, type Market, orNothing, type Webhook } from './answers.ts';
import type { Event } from './event.ts';
import { type Name, type Names, namesOf } from './named-outcomes.ts';
import type { ConsoleRequest } from './route.ts';
import { exactHundredfold, minute, titleOf, venueTitle } from './values.ts';

/** The markets of a scope by their names, where they are known. */
interface ScopeNames {
  market?: string | undefined;
  event?: string | undefined;
}

const MAX_TOKEN = 18;

/** The names behind the ids of an alert. */
interface AlertNames {
  outcomes: Names;
  scope: ScopeNames;
}

/** Reads the names of the outcomes of an alert. With the scope of market data it also reads the names of its market and event. */
export async function readAlertNames(
  deps: Pick<PageDeps, 'db'>,
  request: ConsoleRequest,
  { tokenMint, sellTokenMint, scope }: Pick<Alert, 'tokenMint' | 'sellTokenMint' | 'scope'>,
): Promise<AlertNames> {
  const mayRead = request.session.caller.scopes.includes('markets:read');
  const { venue = 'all', market_id, event_id } = scope ?? {};
  const [outcomes, market, event] = await Promise.all([
    namesOf(deps, request, [tokenMint, sellTokenMint]),
    mayRead && market_id !== undefined
      ? orNothing(request.api<Market>({ operationId: 'getMarket', params: { venue, market_id } }))
      : undefined,
    mayRead && event_id !== undefined
      ? orNothing(request.api<Event>({ operationId: 'getEvent', params: { venue, event_id }, query: { limit: 1 } }))
      : undefined,
  ]);
  return { outcomes, scope: { market: market?.data.title, event: event?.data.title } };
}

/** The currency in which alerts of a venue compare. */
function currencyOfAlerts(venue: string): string {
  return Object.hasOwn(VENUES, venue) ? VENUES[venue as keyof typeof VENUES].currency : '';
}

/** An alert of a form has the currency of its venue. */
function withCurrency(alert: Alert, { outcomes }: AlertNames): Alert {
  const venue = outcomes.get(alert.tokenMint ?? '')?.venue ?? alert.scope?.venue;
  return alert.currency !== undefined || venue === undefined ? alert : { ...alert, currency: currencyOfAlerts(venue) };
}

/** When an alert fires, with the names of everything that it watches, in words that continue "when". */
export function fullClause(alert: Alert, names: AlertNames): string {
  const { condition, tokenMint, sellTokenMint } = alert;
  const nameOf = (token: string | undefined) => {
    if (token === undefined) return '…';
    const name = names.outcomes.get(token);
    return name === undefined ? tokenSubject(token) : outcomeSubject(name, condition);
  };
  const isOfScope = alert.scope !== undefined;
  return clauseOf(withCurrency(alert, names), {
    subject: isOfScope ? scopeSubject(alert, names.scope) : nameOf(tokenMint),
    other: nameOf(sellTokenMint),
    isProbability: isOfScope || tokenMint === undefined || names.outcomes.has(tokenMint),
  });
}

const ENDED: Readonly<Record<string, string>> = {
  paused: 'The alert is paused: nothing happens until it is resumed.',
  triggered: 'The alert has fired, and has ended.',
  expired: 'The alert has expired.',
};

/** One sentence for the effect of an alert, and its distance to the target. `webhooks` is undefined for a key that must not read them. */
export function alertSentence(alert: Alert, names: AlertNames, webhooks: readonly Webhook[] | undefined): Html {
  const destination = destinationOf(webhooks, alert.webhookId);
  const { each, limit } = timesOf(alert);
  const does = destination === undefined ? html`oddswire stores ${each}` : html`oddswire sends ${each} ${destination}`;
  const state = ENDED[alert.status ?? ''] ?? distanceWords(alert, names);
  return html`<p class="sentence">When ${fullClause(alert, names)}, ${does}${limit}.${state !== '' && ` ${state}`}${
    alert.expiresAt !== undefined && html` The alert ends on ${minute(new Date(alert.expiresAt))} UTC.`
  }</p>${destination === undefined && noWebhook()}`;
}

/** How often an alert fires: the events, and words that end the sentence. */
function timesOf({ condition, scope, repeat, cooldownSeconds }: Alert): { each: string; limit: string } {
  const subject = scope === undefined ? '' : ` for each ${isMarketCondition(condition) ? 'market' : 'outcome'}`;
  if (repeat === undefined && cooldownSeconds === undefined) return { each: `one event${subject}`, limit: '' };
  const every = cooldownSeconds === undefined || cooldownSeconds === null ? '…' : span(cooldownSeconds);
  return { each: 'an event each time', limit: `, at most once in ${every}${subject}` };
}

/** The distance of the present price from the target. A state that is met fires the alert at once. */
function distanceWords(alert: Alert, { outcomes }: AlertNames): string {
  const target = targetOf(alert);
  const name = outcomes.get(alert.tokenMint ?? '');
  if (target === undefined || target === null || name?.price == null) return '';
  const now = `It is ${exactHundredfold(name.price)} % now`;
  const price = decimal(name.price);
  const definition = OUTCOME_CONDITIONS[alert.condition as keyof typeof OUTCOME_CONDITIONS];
  const seen = { n: 0n, atMs: 0, price, bid: null, ask: null, size: null };
  const isMet = definition.isState && definition.evaluation({ threshold: decimal(target) }).measure(seen, undefined);
  return isMet ? `${now}, so the alert fires at once.` : `${now}.`;
}

/** The markets or outcomes of a scope as the subject of a sentence. */
function scopeSubject({ condition, scope = {} }: Pick<Alert, 'condition' | 'scope'>, names: ScopeNames = {}): string {
  const { market_id, event_id, venue, category, q } = scope;
  const parts = [
    event_id !== undefined && `of the event ${quoted(names.event) ?? event_id}`,
    venue !== undefined && `on ${venueTitle(venue)}`,
    category !== undefined && `in the category ${category}`,
    q !== undefined && `with “${q}” in the title`,
  ].filter((part) => part !== false);
  const tail = parts.map((part) => ` ${part}`).join('');
  if (isOfNewMarkets(condition)) return `a new market${tail}`;
  const one = `the market ${quoted(names.market) ?? market_id ?? ''}`.trim();
  if (isMarketCondition(condition)) return market_id === undefined ? `any market${tail}` : `${one}${tail}`;
  return `any outcome of ${market_id === undefined ? 'a market' : one}${tail}`;
}

/** An outcome with its market as the subject of a sentence, or the market alone. */
function outcomeSubject({ title, label, siblingLabel }: Name, condition: Condition): string {
  const market = titleOf({ title, sibling_label: siblingLabel ?? undefined });
  return isMarketCondition(condition) ? `“${market}”` : `${label || 'an outcome'} of “${market}”`;
}

function quoted(text: string | undefined): string | undefined {
  return text === undefined ? undefined : `“${text}”`;
}

/** A token without a market, as the subject of a sentence. */
function tokenSubject(token: string): string {
  return `the token ${token.length <= MAX_TOKEN ? token : `${token.slice(0, 6)}…${token.slice(-4)}`}`;
}

/** The way of an event when no webhook gets it. */
function noWebhook(): Html {
  return html`<p class="note">No active webhook lists <code>price_alert</code>, so the event is stored and sent nowhere.
<a href="/webhooks/new">Make a webhook</a>, or receive events on this machine with <code>oddswire-cli listen</code>.</p>`;
}
