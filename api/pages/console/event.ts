import { badge, facts, type Html, html } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import type { Decimal, Market } from './answers.ts';
import { type Chart, chart, chartData, chartNotes, chartSwitches } from './chart/chart.ts';
import { chosenOf, compareForm, MAX_LINES, type Member, memberOf, readLines } from './chart/compare.ts';
import { chartChoices } from './chart/view.ts';
import { readStars } from './find/star.ts';
import { marketTable, STATUS_TONES, trendsOf } from './markets.ts';
import { programExamples, quoted, quotedForPython } from './program.ts';
import type { ConsoleRequest, ConsoleRouter } from './route.ts';
import { type Range, windowOf } from './series.ts';
import { amount, currencyOf, eventPath, fromSeconds, minute, venueTitle } from './values.ts';

const PATH = '/events/:venue/:event_id';
const MAX_MARKETS = 100;
const LABEL = 'Probabilities of markets of this event in percent';

export interface Event {
  event_id: string;
  venue: string;
  title?: string;
  category?: string;
  status: string;
  market_count: number;
  close_at?: number;
  volume?: Decimal;
  volume_24h?: Decimal;
}

/** /events/{venue}/{id}: the markets of an event on one chart and in one table. */
export function eventPage(router: ConsoleRouter, deps: Pick<PageDeps, 'db'>): void {
  const scope = 'markets:read';
  router.page({ path: PATH, section: 'markets', scope, load: (request) => page(request, deps) });

  router.data({
    path: `/console/data${PATH}/series.json`,
    scope,
    async load(request) {
      const { data: markets } = await request.api<Market[]>(marketsCall(request));
      const { leading, members } = await membersOf(request, deps, markets);
      return chartData(await readEventChart(request, linesOf(request, members, leading)));
    },
  });
}

function eventCall({ params }: ConsoleRequest) {
  const { venue = '', event_id = '' } = params;
  return { operationId: 'getEvent', params: { venue, event_id }, query: { limit: 1 } };
}

/** The most traded markets of the event. */
function marketsCall({ params }: ConsoleRequest) {
  const { venue = '', event_id } = params;
  return {
    operationId: 'listMarkets',
    params: { venue },
    query: { event_id, sort: 'volume_24h', limit: MAX_MARKETS },
  };
}

/** The markets with a price, each with its first outcome or its leader, and those with the highest prices. */
async function membersOf({ nowMs }: ConsoleRequest, deps: Pick<PageDeps, 'db'>, markets: readonly Market[]) {
  const trends = await trendsOf(deps, markets, nowMs);
  const priced = markets.flatMap((market) => {
    const trend = trends.get(`${market.venue} ${market.market_id}`);
    if (trend?.price == null) return [];
    const member = memberOf(market, { outcome_id: trend.outcomeId, label: trend.label });
    return [{ price: Number(trend.price), member }];
  });
  const leading = priced.toSorted((a, b) => b.price - a.price).slice(0, MAX_LINES);
  return { trends, members: priced.map(({ member }) => member), leading: leading.map(({ member }) => member) };
}

/** The lines that the address names, else the lines of the leading markets. */
function linesOf(request: ConsoleRequest, members: readonly Member[], leading: readonly Member[]): Member[] {
  const named = chosenOf(request, members, MAX_LINES);
  return named.length > 0 ? named : [...leading];
}

async function readEventChart(request: ConsoleRequest, shown: readonly Member[]): Promise<Chart> {
  const begun = shown.flatMap(({ market }) => market.open_at ?? market.created_at ?? []);
  const of = begun.length === 0 ? {} : { open_at: Math.min(...begun) };
  const { range } = chartChoices(request);
  const window = windowOf(range, of, request.nowMs);
  const lines = await readLines(request, shown, window);
  const { interval, start } = window;
  const firings = { shown: [], isCut: false };
  return { interval, start, lines, candles: [], tradeGaps: [], history: undefined, firings };
}

async function page(request: ConsoleRequest, deps: Pick<PageDeps, 'db'>) {
  const { data: event, text } = await request.api<Event>(eventCall(request));
  const { data: markets } = await request.api<Market[]>(marketsCall(request));
  const [{ trends, members, leading }, starOf] = await Promise.all([
    membersOf(request, deps, markets),
    readStars(deps, request, markets),
  ]);
  const lines = linesOf(request, members, leading);
  const { range } = chartChoices(request);
  const drawn = lines.length > 0 ? await readEventChart(request, lines) : undefined;
  const currency = currencyOf(event.venue);
  const body = html`${facts([
    ['Markets', String(event.market_count)],
    [`Volume (${currency})`, amount(event.volume)],
    [`Volume, 24 h (${currency})`, amount(event.volume_24h)],
    ['Last market closes (UTC)', minute(fromSeconds(event.close_at))],
    ['Event id', html`<code>${event.event_id}</code>`],
  ])}
${newAlert(request, event)}
${drawn && eventChart(request, event, { drawn, range, members, leading, lines })}
<div id="results" data-venues="${event.venue}" data-markets="${markets.map(({ market_id }) => market_id).join(',')}">
<div class="state-line"><p class="muted">${event.market_count > MAX_MARKETS && `The ${MAX_MARKETS} most traded markets`}</p>
<p class="live" data-live>As of ${new Date(request.nowMs).toISOString().slice(11, 19)} UTC; reload to update</p></div>
${marketTable(markets, trends, { starOf })}</div>
${programExamples(request, {
  calls: [
    ['the event', eventCall(request)],
    ['its markets', marketsCall(request)],
  ],
  typescript: `for await (const market of client.markets.iterate({ venue: ${quoted(event.venue)}, event_id: ${quoted(event.event_id)} })) {
  console.log(market.title);
}`,
  python: `for market in client.markets.iterate(venue=${quotedForPython(event.venue)}, event_id=${quotedForPython(event.event_id)}):
    print(market.title)`,
  json: text,
})}`;
  const above = html`<p class="crumbs"><a href="/markets?venue=${event.venue}">${venueTitle(event.venue)}</a>${
    event.category !== undefined && html` · ${event.category}`
  } ${badge(STATUS_TONES[event.status] ?? 'idle', event.status)}</p>`;
  const scripts = ['markets.js', ...(drawn ? ['event.js'] : [])];
  return { title: event.title ?? `Event ${event.event_id}`, above, body, scripts };
}

/** The chart with its ranges and the choice of its lines. */
function eventChart(
  request: ConsoleRequest,
  { venue, event_id }: Event,
  {
    drawn,
    range,
    members,
    leading,
    lines,
  }: { drawn: Chart; range: Range; members: readonly Member[]; leading: readonly Member[]; lines: readonly Member[] },
): Html {
  const hidden = request.query.has('range') ? [['range', range] as const] : [];
  return html`<section class="card market-chart event-chart" aria-label="Probabilities" data-event-id="${event_id}"
 data-source="/console/data${eventPath(venue, event_id)}">
${chartSwitches(request, { range })}
${chart({ range, kind: 'line', label: LABEL }, drawn)}
${compareForm(members, lines, { hidden, most: MAX_LINES, standard: leading })}
${chartNotes(drawn)}</section>`;
}

/** The form of an alert on the markets of the event. */
function newAlert({ session }: ConsoleRequest, { venue, event_id }: Event): Html {
  if (!session.caller.scopes.includes('alerts')) return html``;
  const fields = { condition: 'change', subject: 'scope', 'scope.venue': venue, 'scope.event_id': event_id };
  const query = new URLSearchParams(fields).toString();
  return html`<p><a class="button" data-new-alert href="/alerts/new?${query}">New alert on these markets</a></p>`;
}
