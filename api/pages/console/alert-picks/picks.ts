import { invalidRequest } from '../../../errors.ts';
import { type Html, html } from '../../kit/html.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import { type Market, orNothing } from '../answers.ts';
import type { Event } from '../event.ts';
import { type Name, namesOf } from '../named-outcomes.ts';
import type { ConsoleRequest } from '../route.ts';
import { eventPath, marketPath, percent, titleOf, venueTitle } from '../values.ts';
import { idsOf, type Match, OUTCOME_PICKS, type OutcomePick, type Pick, type Picks, SCOPE_IDS } from './field.ts';

/** The shortest name of a token without a market that the search field takes as an id. */
const MIN_ID = 20;
const MAX_MATCHES = 12;
/** Outcomes of one market in a list of matches. */
const MAX_OUTCOMES = 6;

type PicksDeps = globalThis.Pick<PageDeps, 'db'>;

const wordsOf = (form: URLSearchParams, pick: Pick) => (form.get(`find.${pick}`) ?? '').trim();
const isChosen = (form: URLSearchParams, pick: Pick) => idsOf(pick).some((id) => (form.get(id) ?? '') !== '');

/** The form after its buttons: a chosen match and an entered id set the fields of a subject, and `rechoose` empties them. */
export async function settlePicks(
  deps: PicksDeps,
  request: ConsoleRequest,
  sent: URLSearchParams,
): Promise<URLSearchParams> {
  const form = new URLSearchParams(sent);
  const set = (fields: Readonly<Record<string, string>>) => {
    for (const [name, value] of Object.entries(fields)) form.set(name, value);
  };
  const changed = form.get('rechoose');
  for (const pick of ['tokenMint', 'sellTokenMint', 'scope'] as const) {
    if (changed === pick) for (const id of [...idsOf(pick), `pick.${pick}`]) form.delete(id);
    const picked = form.get(`pick.${pick}`) ?? '';
    if (picked !== '') set(Object.fromEntries(new URLSearchParams(picked)));
    else if (!isChosen(form, pick)) set((await ofId(deps, request, pick, wordsOf(form, pick)))?.fields ?? {});
    if (isChosen(form, pick)) form.delete(`find.${pick}`);
    form.delete(`pick.${pick}`);
  }
  form.delete('rechoose');
  return form;
}

/**
 * Rejects words without a chosen match: the API would take them as the id of a token.
 * @throws ApiError `invalid_request`
 */
export function requirePicks(form: URLSearchParams, body: Readonly<Record<string, unknown>>): void {
  const needed: Record<Pick, boolean> = {
    tokenMint: body['scope'] === undefined,
    sellTokenMint: body['condition'] === 'net_difference',
    scope: body['scope'] !== undefined,
  };
  const open = (Object.keys(needed) as Pick[]).filter(
    (pick) => needed[pick] && !isChosen(form, pick) && wordsOf(form, pick) !== '',
  );
  if (open.length === 0) return;
  throw invalidRequest(open.map((pick) => ({ path: pick, message: 'choose one of the matches' })));
}

/** The subject with an id; a token without a market has only its id. */
async function ofId(deps: PicksDeps, request: ConsoleRequest, pick: Pick, id: string): Promise<Match | undefined> {
  if (id === '') return undefined;
  if (pick === 'scope') return (await scopeMatches(request, { ids: id }))[0];
  const name = (await namesOf(deps, request, [id])).get(id);
  const isToken = id.length >= MIN_ID && !/\s/.test(id);
  return name || isToken
    ? { fields: { [pick]: id }, words: name ? outcomeWords(name) : html`<code>${id}</code>` }
    : undefined;
}

/** Reads the names of the chosen subjects and, with `search`, the matches of the words of the others. */
export async function readPicks(
  deps: PicksDeps,
  request: ConsoleRequest,
  form: URLSearchParams,
  { search }: { search: boolean },
): Promise<Picks> {
  const names = await namesOf(
    deps,
    request,
    OUTCOME_PICKS.map((pick) => form.get(pick) || undefined),
  );
  const picks: Partial<Record<Pick, { chosen?: Html; matches?: readonly Match[] }>> = {};
  for (const pick of OUTCOME_PICKS) {
    const id = form.get(pick) ?? '';
    const name = names.get(id);
    const words = wordsOf(form, pick);
    if (id !== '') picks[pick] = { chosen: name ? outcomeWords(name) : html`token <code class="long">${id}</code>` };
    else if (search && words !== '') picks[pick] = { matches: await outcomeMatches(deps, request, pick, words) };
  }
  const [market_id, event_id] = SCOPE_IDS.map((id) => form.get(id) || undefined);
  const words = wordsOf(form, 'scope');
  if (market_id !== undefined || event_id !== undefined) {
    const venue = form.get('scope.venue') || 'all';
    const [found] = await scopeMatches(request, { venue, market_id, event_id });
    picks.scope = {
      chosen:
        found?.words ?? html`${market_id ? 'market' : 'event'} <code class="long">${market_id ?? event_id}</code>`,
    };
  } else if (search && words !== '') picks.scope = { matches: await scopeMatches(request, { words }) };
  return picks;
}

async function findMarkets(request: ConsoleRequest, words: string): Promise<Market[]> {
  if (!request.session.caller.scopes.includes('markets:read')) return [];
  const query = { q: words, status: 'open', limit: MAX_MATCHES };
  const found = await orNothing(request.api<Market[]>({ operationId: 'listMarkets', params: { venue: 'all' }, query }));
  return found?.data ?? [];
}

async function outcomeMatches(
  deps: PicksDeps,
  request: ConsoleRequest,
  pick: OutcomePick,
  words: string,
): Promise<Match[]> {
  const markets = await findMarkets(request, words);
  const ids = markets.flatMap(({ outcomes }) => outcomes.slice(0, MAX_OUTCOMES).map(({ outcome_id }) => outcome_id));
  const names = await namesOf(deps, request, ids);
  return ids.flatMap((id) => {
    const name = names.get(id);
    return name ? [{ fields: { [pick]: id }, words: outcomeWords(name) }] : [];
  });
}

interface ScopeSearch {
  words?: string;
  /** The id of a market or an event. */
  ids?: string;
  venue?: string;
  market_id?: string | undefined;
  event_id?: string | undefined;
}

/** Markets and events by words, or one of them by its id. */
async function scopeMatches(request: ConsoleRequest, search: ScopeSearch): Promise<Match[]> {
  if (!request.session.caller.scopes.includes('markets:read')) return [];
  const { words, ids, venue = 'all', market_id = ids, event_id = market_id === ids ? ids : undefined } = search;
  const [event, market, markets] = await Promise.all([
    event_id === undefined || search.market_id !== undefined
      ? undefined
      : orNothing(request.api<Event>({ operationId: 'getEvent', params: { venue, event_id }, query: { limit: 1 } })),
    market_id === undefined || search.event_id !== undefined
      ? undefined
      : orNothing(request.api<Market>({ operationId: 'getMarket', params: { venue, market_id } })),
    words === undefined ? [] : findMarkets(request, words),
  ]);
  const events = new Map(
    markets.flatMap((each) => (each.event_id === undefined ? [] : [[each.event_id, each] as const])),
  );
  return [
    ...(event ? [eventMatch(event.data)] : []),
    ...[...events.values()].map(({ venue: of, event_id: id = '', event_title: title }) =>
      eventMatch({ venue: of, event_id: id, title: title ?? id }),
    ),
    ...[...(market ? [market.data] : []), ...markets].map(marketMatch),
  ];
}

function eventMatch({ venue, event_id, title = event_id }: { venue: string; event_id: string; title?: string }): Match {
  return {
    fields: { 'scope.venue': venue, 'scope.event_id': event_id },
    words: html`all markets of <a href="${eventPath(venue, event_id)}">${title}</a> ${where(venue)}`,
  };
}

function marketMatch(market: Market): Match {
  const { venue, market_id } = market;
  return {
    fields: { 'scope.venue': venue, 'scope.market_id': market_id },
    words: html`the market <a href="${marketPath(market)}">${titleOf(market)}</a> ${where(venue)}`,
  };
}

function where(venue: string, rest?: string): Html {
  return html`<span class="where">${venueTitle(venue)}${rest !== undefined && ` · ${rest}`}</span>`;
}

function outcomeWords(name: Name): Html {
  const { label, title, siblingLabel, venue, marketId, outcomeId, price } = name;
  const path = `${marketPath({ venue, market_id: marketId })}?${new URLSearchParams({ outcome: outcomeId }).toString()}`;
  const market = titleOf({ title, sibling_label: siblingLabel ?? undefined });
  const now = price === undefined ? undefined : `now ${percent(price) ?? 'without a price'}`;
  return html`<strong>${label || 'An outcome'}</strong> of <a href="${path}">${market}</a> ${where(venue, now)}`;
}
