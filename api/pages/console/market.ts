import { MAX_STORED_LEVELS } from '../../../src/domain/markets/executable.ts';
import { isWebAddress } from '../../../src/domain/values/parse-url.ts';
import { badge, duration, facts, type Html, html } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { alertSection, readOutcomeAlerts } from './alert-form.ts';
import { type Book, type Market, orNothing, type Prices, type Resolution, type Trade } from './answers.ts';
import { type ApiAnswer, type ApiCall, exactData } from './api-calls.ts';
import {
  candleTable,
  chart,
  chartData,
  chartNotes,
  chartSwitches,
  completeness,
  marketCompare,
  priceLabel,
  readChart,
} from './chart/chart.ts';
import { headline, idsOf, pricesOf, quoteOf, type View, viewOf } from './chart/view.ts';
import { readStars } from './find/star.ts';
import { bookDepth, bookLadder, tradeTable } from './market-tape.ts';
import { marketTable, STATUS_TONES, trendsOf } from './markets.ts';
import { orderResult, orderSection, readOrder } from './order.ts';
import { programExamples, quoted, quotedForPython } from './program.ts';
import { resultSection } from './resolutions/result.ts';
import { readRules, rulesSection } from './resolutions/rules.ts';
import type { ConsoleRequest, ConsoleRouter } from './route.ts';
import { type ChartWindow, candleCall, windowOf } from './series.ts';
import { amount, currencyOf, eventPath, fromSeconds, marketPath, minute, titleOf, venueTitle } from './values.ts';

const PATH = '/markets/:venue/:market_id';
const SHOWN_TRADES = 30;
const SHOWN_SIBLINGS = 12;

type MarketDeps = Pick<PageDeps, 'db'>;

/** /markets/{venue}/{id}: one market, and the data of its script. */
export function marketPage(router: ConsoleRouter, deps: MarketDeps): void {
  const scope = 'markets:read';
  router.page({
    path: PATH,
    section: 'markets',
    scope,
    load: async (request) => page(request, deps, await viewOf(request)),
  });

  router.data({
    path: `/console/data${PATH}/series.json`,
    scope,
    async load(request) {
      const view = await viewOf(request);
      const siblings = request.query.has('compare') ? await siblingsOf(request, view.market) : [];
      return chartData(await readChart(request, view, siblings));
    },
  });

  router.data({
    path: `/console/data${PATH}/tape.json`,
    scope,
    async load(request) {
      const { market, outcome } = await viewOf(request);
      const [book, trades, order] = await Promise.all([
        bookOf(request, market, outcome?.outcome_id),
        tradesOf(request, market),
        readOrder(request, market, outcome?.outcome_id),
      ]);
      const currency = currencyOf(market.venue);
      return {
        book: bookLadder(book, currency).toString(),
        depth: bookDepth(book, currency).toString(),
        trades: tradeTable(trades, market, currency).toString(),
        order: orderResult(market.venue, order, book).toString(),
      };
    },
  });
}

/** The stream of the page of a market. */
function streamOf({ venue, market_id }: Market): string {
  const query = new URLSearchParams({
    channels: 'prices,trades,books,candles',
    snapshot: 'true',
    market_ids: market_id,
  });
  return `/console/stream/${encodeURIComponent(venue)}?${query.toString()}`;
}

const resultCall = (market: Market): ApiCall => ({ operationId: 'getResolution', params: idsOf(market) });

async function bookOf({ api }: ConsoleRequest, market: Market, outcome: string | undefined): Promise<Book | null> {
  const query = { depth: MAX_STORED_LEVELS, outcome_id: outcome };
  const found = await orNothing(api<Book>({ operationId: 'getOrderbook', params: idsOf(market), query }));
  return found?.data ?? null;
}

async function tradesOf({ api }: ConsoleRequest, market: Market): Promise<Trade[]> {
  const query = { limit: SHOWN_TRADES };
  return (await api<Trade[]>({ operationId: 'listTrades', params: idsOf(market), query })).data;
}

async function resultOf({ api }: ConsoleRequest, market: Market): Promise<Resolution> {
  return exactData(await api<Resolution>(resultCall(market)));
}

async function page(request: ConsoleRequest, deps: MarketDeps, view: View) {
  const { market, outcome, range, kind } = view;
  const { nowMs } = request;
  const window = windowOf(range, market, nowMs, kind);
  const [prices, siblings] = await Promise.all([pricesOf(request, market), siblingsOf(request, market)]);
  const quote = quoteOf(prices, outcome?.outcome_id);
  const [drawn, book, trades, trends, siblingTrends, alerts, result, order, starOf, rules] = await Promise.all([
    readChart(request, view, siblings),
    bookOf(request, market, outcome?.outcome_id),
    tradesOf(request, market),
    trendsOf(deps, [{ ...market, outcome_id: outcome?.outcome_id }], nowMs),
    trendsOf(deps, siblings, nowMs),
    readOutcomeAlerts(request, outcome?.outcome_id),
    resultOf(request, market),
    readOrder(request, market, outcome?.outcome_id),
    readStars(deps, request, [market]),
    readRules(request, market),
  ]);
  const trend = trends.get(`${market.venue} ${market.market_id}`);
  const before = trend?.points[0];
  const currency = currencyOf(market.venue);
  const body = html`<div class="market" data-market="${market.market_id}" data-venue="${market.venue}"
 data-outcome="${outcome?.outcome_id}" data-source="/console/data${marketPath(market)}" data-stream="${streamOf(market)}">
<div class="market-grid">
<section class="card market-chart" aria-label="Price">
${starOf({ ...market, name: titleOf(market) }, { isPage: true })}
${headline(view, quote?.price, before)}
${chartSwitches(request, { range, kind, outcomes: market.outcomes, outcome: outcome?.outcome_id })}
${chart({ range, kind, label: priceLabel(view) }, drawn)}
${marketCompare(request, view, siblings, choicesOf(request, ['outcome', 'range', 'chart', 'side', 'size']))}
<div class="state-line"><p class="live" data-live>As of ${new Date(nowMs).toISOString().slice(11, 19)} UTC; reload to update</p>
<p class="muted">${completeness(market, drawn)}</p></div>
${chartNotes(drawn)}
</section>
<div class="tape">
<input type="radio" name="tape" id="show-book" checked><label for="show-book">Book</label>
<input type="radio" name="tape" id="show-trades"><label for="show-trades">Trades</label>
<section class="card book-card" aria-labelledby="book-title"><h2 id="book-title">Book of ${outcome?.label}</h2>
<div data-part="book" data-is-cold="${book === null ? '1' : ''}">${bookLadder(book, currency)}</div></section>
<section class="card trades-card" aria-labelledby="trades-title"><h2 id="trades-title">Trades</h2>
<div data-part="trades">${tradeTable(trades, market, currency)}</div></section>
</div></div>
<div class="depth-grid">
<section class="card depth-card" aria-labelledby="depth-title"><h2 id="depth-title">Depth of ${outcome?.label}</h2>
<p class="legend muted" role="status" data-depth></p><div data-part="depth">${bookDepth(book, currency)}</div></section>
${outcome && orderSection(market, outcome, order, book, choicesOf(request, ['outcome', 'range', 'chart', 'compare']))}</div>
${outcome && alerts && (await alertSection(deps, request, view, outcome, alerts, quote?.price))}
${candleTable(drawn.candles, drawn.interval)}
${resultSection(market, result)}
${rulesSection(request, market, rules)}
${
  siblings.length > 0 &&
  html`<h2>Other markets of <a href="${eventPath(market.venue, market.event_id ?? '')}">this event</a></h2>
${marketTable(siblings, siblingTrends)}`
}
<h2>About</h2>
${about(view, prices, nowMs)}
${outcome && examples(request, view, prices, window)}
</div>`;
  return { title: titleOf(market), above: crumbs(market, nowMs), body, scripts: ['market.js'] };
}

/** The choices of the page that a form keeps. */
function choicesOf({ query }: ConsoleRequest, names: readonly string[]): (readonly [string, string])[] {
  return names.flatMap((name) => query.getAll(name).flatMap((value) => (value ? [[name, value] as const] : [])));
}

function crumbs(market: Market, nowMs: number): Html {
  const closes = fromSeconds(market.close_at);
  const leftMs = closes && closes.getTime() - nowMs;
  return html`<p class="crumbs"><a href="/markets?venue=${market.venue}">${venueTitle(market.venue)}</a>${
    market.category !== undefined &&
    html` · <a href="/markets?${new URLSearchParams({ category: market.category }).toString()}">${market.category}</a>`
  }${closes && html` · closes ${minute(closes)} UTC${leftMs !== undefined && leftMs > 0 && html` (${duration(leftMs)})`}`} ${badge(
    STATUS_TONES[market.status] ?? 'idle',
    market.status,
  )}<span class="crumb-actions"><button type="button" data-copy="${market.market_id}">Copy id</button>${
    market.outcomes.length > 0 && html`<a class="button" href="#program-curl">curl</a>`
  }${
    isWebAddress(market.url) && html`<a class="button" href="${market.url}" rel="noreferrer noopener">Open at venue</a>`
  }</span></p>`;
}

/** The other markets of the event, the most traded first. */
async function siblingsOf({ api }: ConsoleRequest, market: Market): Promise<Market[]> {
  if (market.event_id === undefined) return [];
  const query = { event_id: market.event_id, sort: 'volume_24h', limit: SHOWN_SIBLINGS + 1 };
  const { data } = await api<Market[]>({ operationId: 'listMarkets', params: { venue: market.venue }, query });
  return data.filter(({ market_id }) => market_id !== market.market_id).slice(0, SHOWN_SIBLINGS);
}

function about({ market }: View, prices: ApiAnswer<Prices> | undefined, nowMs: number): Html {
  const currency = currencyOf(market.venue);
  const asOf = prices && fromSeconds(prices.data.as_of);
  return html`${facts([
    [`Volume (${currency})`, amount(market.volume)],
    [`Volume, 24 h (${currency})`, amount(market.volume_24h)],
    [`Liquidity (${currency})`, amount(market.liquidity)],
    ['Opened (UTC)', minute(fromSeconds(market.open_at ?? market.created_at))],
    ['Closes (UTC)', minute(fromSeconds(market.close_at))],
    ['Price of', asOf ? html`${minute(asOf)} (${duration(Math.max(0, nowMs - asOf.getTime()))} ago)` : '–'],
    ['Market id', html`<code>${market.market_id}</code>`],
    ...market.outcomes.map(
      ({ outcome_id, label }) =>
        [
          `Outcome id, ${label}`,
          html`<code>${outcome_id}</code>
<button type="button" class="quiet" data-copy="${outcome_id}">Copy<span class="visually-hidden"> the id of ${label}</span></button>`,
        ] as const,
    ),
  ])}`;
}

function examples(
  request: ConsoleRequest,
  { market, answer, outcome }: View,
  prices: ApiAnswer<Prices> | undefined,
  window: ChartWindow,
): Html {
  const { venue, market_id } = market;
  const { interval, start, end } = window;
  const outcomeId = outcome?.outcome_id ?? '';
  const python = [venue, market_id, outcomeId, interval].map(quotedForPython);
  const ids = `venue: ${quoted(venue)}, market_id: ${quoted(market_id)}`;
  return programExamples(request, {
    calls: [
      ['the present prices', { operationId: 'getPrices', params: idsOf(market) }],
      ['the candles of the chart', candleCall(market, outcomeId, window)],
      ['the result and its timeline', resultCall(market)],
      [
        'every change, live',
        { operationId: 'streamMarkets', params: { venue }, query: { market_ids: market_id, snapshot: 'true' } },
      ],
    ],
    typescript: `const market = { ${ids} };
const { data: prices } = await client.markets.prices(market);
const outcome_id = ${quoted(outcomeId)};
const { data: candles } = await client.candles.list({ ...market, outcome_id, interval: ${quoted(interval)}, start: ${start}, end: ${end} });
const { data: result } = await client.markets.resolution(market);
const stream = client.stream({ venue: market.venue, market_ids: [market.market_id], snapshot: true });
for await (const message of stream) console.log(message);`,
    python: `market = {"venue": ${python[0]}, "market_id": ${python[1]}}
prices = client.markets.prices(**market)
candles = client.candles.list(**market, outcome_id=${python[2]}, interval=${python[3]}, start=${start}, end=${end})
result = client.markets.resolution(**market)
with client.stream(venue=${python[0]}, market_ids=[${python[1]}], snapshot=True) as stream:
    for message in stream:
        print(message)`,
    json: (prices ?? answer).text,
  });
}
