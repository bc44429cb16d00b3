import type { MarketTrend } from '../../../src/store/series/market-trends.ts';
import { lineChart } from '../kit/drawings.ts';
import { badge, facts, type Html, html } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import type { Decimal, Market } from './answers.ts';
import { readStars } from './find/star.ts';
import { marketTable, STATUS_TONES, trendsOf } from './markets.ts';
import { programExamples, quoted } from './program.ts';
import type { ConsoleRequest, ConsoleRouter } from './route.ts';
import { amount, currencyOf, fromSeconds, minute, percent, venueTitle } from './values.ts';

const MAX_MARKETS = 100;
/** As many lines as the sheet has colours. */
const MAX_LINES = 8;

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
  router.page({
    path: '/events/:venue/:event_id',
    section: 'markets',
    scope: 'markets:read',
    async load(request) {
      const [venue, event_id] = [request.params['venue'] ?? '', request.params['event_id'] ?? ''];
      const call = { operationId: 'getEvent', params: { venue, event_id }, query: { limit: 1 } };
      const { data: event, text } = await request.api<Event>(call);
      const list = {
        operationId: 'listMarkets',
        params: { venue: event.venue },
        query: { event_id: event.event_id, sort: 'volume_24h', limit: MAX_MARKETS },
      };
      const { data: markets } = await request.api<Market[]>(list);
      const [trends, starOf] = await Promise.all([
        trendsOf(deps, markets, request.nowMs),
        readStars(deps, request, markets),
      ]);
      const priced = markets.flatMap((market) => {
        const trend = trends.get(`${market.venue} ${market.market_id}`);
        return trend?.price == null ? [] : [{ market, trend }];
      });
      const leading = priced.sort((a, b) => Number(b.trend.price) - Number(a.trend.price)).slice(0, MAX_LINES);
      const currency = currencyOf(event.venue);
      const body = html`${facts([
        ['Markets', String(event.market_count)],
        [`Volume (${currency})`, amount(event.volume)],
        [`Volume, 24 h (${currency})`, amount(event.volume_24h)],
        ['Last market closes (UTC)', minute(fromSeconds(event.close_at))],
        ['Event id', html`<code>${event.event_id}</code>`],
      ])}
${newAlert(request, event)}
${leading.length > 0 && eventChart(leading)}
<div id="results" data-venues="${event.venue}" data-markets="${markets.map(({ market_id }) => market_id).join(',')}">
<div class="state-line"><p class="muted">${event.market_count > MAX_MARKETS && `The ${MAX_MARKETS} most traded markets`}</p>
<p class="live" data-live>As of ${new Date(request.nowMs).toISOString().slice(11, 19)} UTC; reload to update</p></div>
${marketTable(markets, trends, { starOf })}</div>
${programExamples(request, {
  calls: [
    ['the event', call],
    ['its markets', list],
  ],
  typescript: `for await (const market of client.markets.iterate({ venue: ${quoted(event.venue)}, event_id: ${quoted(event.event_id)} })) {
  console.log(market.title);
}`,
  json: text,
})}`;
      const above = html`<p class="crumbs"><a href="/markets?venue=${event.venue}">${venueTitle(event.venue)}</a>${
        event.category !== undefined && html` · ${event.category}`
      } ${badge(STATUS_TONES[event.status] ?? 'idle', event.status)}</p>`;
      return { title: event.title ?? `Event ${event.event_id}`, above, body, scripts: ['markets.js'] };
    },
  });
}

/** The last day of the leading markets, one line each, on an axis from 0 to 1. The legend holds the figures. */
function eventChart(leading: readonly { market: Market; trend: MarketTrend }[]): Html {
  const lines = leading.map(({ trend }) =>
    [...trend.points, trend.price].flatMap((price, x) => (price === null ? [] : [{ x, y: Number(price) }])),
  );
  return html`<figure class="card event-chart">
<figcaption class="muted">The last 24 hours of the leading markets, first outcome of each</figcaption>
<div class="plot"><div class="scale" aria-hidden="true"><span>1.0</span><span>0.5</span><span>0.0</span></div>
${lineChart(lines, 'Probabilities of the leading markets in the last 24 hours')}</div>
<ul class="chart-legend">${leading.map(
    ({ market, trend }, index) =>
      html`<li><span class="swatch series-${index}" aria-hidden="true"></span>${market.sibling_label ?? market.title}
<strong class="num">${percent(trend.price)}</strong></li>`,
  )}</ul></figure>`;
}

/** The form of an alert on the markets of the event. */
function newAlert({ session }: ConsoleRequest, { venue, event_id }: Event): Html {
  if (!session.caller.scopes.includes('alerts')) return html``;
  const fields = { condition: 'change', subject: 'scope', 'scope.venue': venue, 'scope.event_id': event_id };
  const query = new URLSearchParams(fields).toString();
  return html`<p><a class="button" data-new-alert href="/alerts/new?${query}">New alert on these markets</a></p>`;
}
