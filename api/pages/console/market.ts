import { MAX_STORED_LEVELS } from '../../../src/domain/markets/executable.ts';
import { compareDecimals, type Decimal, parseDecimal } from '../../../src/domain/values/decimal.ts';
import { isWebAddress } from '../../../src/domain/values/parse-url.ts';
import { invalidRequest } from '../../errors.ts';
import { lineChart } from '../kit/drawings.ts';
import { chosen, textField } from '../kit/filters.ts';
import { badge, duration, facts, type Html, html, table } from '../kit/html.ts';
import { withQuery } from '../kit/lists.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { shareText } from '../kit/shown-values.ts';
import { alertSection, readOutcomeAlerts } from './alert-form.ts';
import type { Book, Candle, Market, Prices, Resolution, Trade } from './answers.ts';
import { type ApiAnswer, type ApiCall, exactData, orNothing } from './api-calls.ts';
import { bookLadder, tradeTable } from './market-tape.ts';
import { marketTable, STATUS_TONES, trendsOf } from './markets.ts';
import { orderResult, orderSection, readOrder } from './order.ts';
import { programExamples, quoted } from './program.ts';
import { resultSection } from './resolutions/result.ts';
import type { ConsoleRequest, ConsoleRouter } from './route.ts';
import { candleCall, RANGES, type Range, readSeries, type Series, windowOf } from './series.ts';
import {
  amount,
  amountColumn,
  change,
  currencyOf,
  eventPath,
  fromSeconds,
  marketPath,
  minute,
  percent,
  priceColumn,
  titleOf,
  venueTitle,
} from './values.ts';

export { titleOf } from './values.ts';

const PATH = '/markets/:venue/:market_id';
const SHOWN_TRADES = 30;
const SHOWN_CANDLES = 30;
const SHOWN_SIBLINGS = 12;
const KINDS = ['line', 'candle'] as const;
type Kind = (typeof KINDS)[number];

type MarketDeps = Pick<PageDeps, 'db'>;

/** The parts of a request that the reads of one market need. */
export type MarketRequest = Pick<ConsoleRequest, 'api' | 'params' | 'query' | 'nowMs'>;

interface View {
  market: Market;
  answer: ApiAnswer<Market>;
  outcome: { outcome_id: string; label: string } | undefined;
  range: Range;
  kind: Kind;
}

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
      return readChart(request, await viewOf(request));
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
        trades: tradeTable(trades, market, currency).toString(),
        order: orderResult(market.venue, order, book).toString(),
      };
    },
  });
}

/** Without a named outcome the view has the first one, or the leader among more than two. */
export async function viewOf(request: MarketRequest): Promise<View> {
  const answer = await request.api<Market>(marketCall(request));
  const market = answer.data;
  const wanted = textField(request.query, 'outcome') ?? (await leaderOf(request, market));
  const outcome =
    wanted === undefined ? market.outcomes[0] : market.outcomes.find(({ outcome_id }) => outcome_id === wanted);
  if (wanted !== undefined && !outcome) {
    throw invalidRequest([{ path: 'outcome', message: 'must be an outcome of this market' }]);
  }
  return {
    market,
    answer,
    outcome,
    range: chosen(request.query, 'range', RANGES) ?? '1d',
    kind: chosen(request.query, 'chart', KINDS) ?? 'line',
  };
}

/** The outcome with the highest price of more than two; undefined before the first price. */
async function leaderOf(request: MarketRequest, market: Market): Promise<string | undefined> {
  if (market.outcomes.length <= 2) return undefined;
  const priced = (await pricesOf(request, market))?.data.outcomes ?? [];
  let leader: { id: string; price: Decimal } | undefined;
  for (const { outcome_id: id, price: shown } of priced) {
    const price = parseDecimal(shown);
    if (price !== null && (leader === undefined || compareDecimals(price, leader.price) > 0)) leader = { id, price };
  }
  return leader?.id;
}

function marketCall({ params }: Pick<ConsoleRequest, 'params'>): ApiCall {
  return { operationId: 'getMarket', params: { venue: params['venue'] ?? '', market_id: params['market_id'] ?? '' } };
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

const idsOf = ({ venue, market_id }: Market) => ({ venue, market_id });

/** Undefined before the first price. */
export async function pricesOf(
  { api }: Pick<ConsoleRequest, 'api'>,
  market: Market,
): Promise<ApiAnswer<Prices> | undefined> {
  return orNothing(api<Prices>({ operationId: 'getPrices', params: idsOf(market) }));
}

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

export function quoteOf(prices: ApiAnswer<Prices> | undefined, outcome: string | undefined) {
  return prices?.data.outcomes.find(({ outcome_id }) => outcome_id === outcome);
}

/** The line and the candles of the chart, which end with the present price. */
export async function readChart(
  request: MarketRequest,
  { market, outcome, range }: View,
  known?: ApiAnswer<Prices>,
): Promise<Series> {
  if (!outcome) return { interval: '1h', line: [], candles: [], history: undefined };
  const prices = known ?? (await pricesOf(request, market));
  const window = windowOf(range, market, request.nowMs);
  return readSeries(request, market, outcome.outcome_id, window, quoteOf(prices, outcome.outcome_id)?.price);
}

async function page(request: ConsoleRequest, deps: MarketDeps, view: View) {
  const { market, outcome, range } = view;
  const { nowMs } = request;
  const window = windowOf(range, market, nowMs);
  const prices = await pricesOf(request, market);
  const quote = quoteOf(prices, outcome?.outcome_id);
  const [series, book, trades, trends, siblings, alerts, result, order] = await Promise.all([
    readChart(request, view, prices),
    bookOf(request, market, outcome?.outcome_id),
    tradesOf(request, market),
    trendsOf(deps, [{ ...market, outcome_id: outcome?.outcome_id }], nowMs),
    siblingsOf(request, market),
    readOutcomeAlerts(request, outcome?.outcome_id),
    resultOf(request, market),
    readOrder(request, market, outcome?.outcome_id),
  ]);
  const trend = trends.get(`${market.venue} ${market.market_id}`);
  const before = trend?.points[0];
  const currency = currencyOf(market.venue);
  const siblingTrends = await trendsOf(deps, siblings, nowMs);
  const body = html`<div class="market" data-market="${market.market_id}" data-venue="${market.venue}"
 data-outcome="${outcome?.outcome_id}" data-source="/console/data${marketPath(market)}" data-stream="${streamOf(market)}">
<div class="market-grid">
<section class="card market-chart" aria-label="Price">
${headline(view, quote?.price, before)}
${switches(request, view)}
${chart(view, series)}
<div class="state-line"><p class="live" data-live>As of ${new Date(nowMs).toISOString().slice(11, 19)} UTC; reload to update</p>
<p class="muted">${completeness(market, series)}</p></div>
</section>
<div class="tape">
<input type="radio" name="tape" id="show-book" checked><label for="show-book">Book</label>
<input type="radio" name="tape" id="show-trades"><label for="show-trades">Trades</label>
<section class="card book-card" aria-labelledby="book-title"><h2 id="book-title">Book of ${outcome?.label}</h2>
<div data-part="book" data-is-cold="${book === null ? '1' : ''}">${bookLadder(book, currency)}</div></section>
<section class="card trades-card" aria-labelledby="trades-title"><h2 id="trades-title">Trades</h2>
<div data-part="trades">${tradeTable(trades, market, currency)}</div></section>
</div></div>
${outcome && orderSection(market, outcome, order, book, choicesOf(request))}
${outcome && alerts && (await alertSection(deps, request, view, outcome, alerts, quote?.price))}
${candleTable(series.candles, series.interval)}
${resultSection(market, result)}
${
  siblings.length > 0 &&
  html`<h2>Other markets of <a href="${eventPath(market.venue, market.event_id ?? '')}">this event</a></h2>
${marketTable(siblings, siblingTrends, { hasHeadings: false })}`
}
<h2>About</h2>
${about(view, prices, nowMs)}
${outcome && examples(request, view, prices, candleCall(market, outcome.outcome_id, window), window.interval)}
</div>`;
  return { title: titleOf(market), above: crumbs(market, nowMs), body, scripts: ['market.js'] };
}

/** The choices of the page that its form of an order keeps. */
function choicesOf({ query }: ConsoleRequest): (readonly [string, string])[] {
  return ['outcome', 'range', 'chart'].flatMap((name) => {
    const value = query.get(name);
    return value ? [[name, value] as const] : [];
  });
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

export function headline(
  { market, outcome }: View,
  now: Prices['outcomes'][number]['price'],
  before: string | null | undefined,
): Html {
  const isOver = market.winning_outcome_id !== undefined;
  const winner = market.outcomes.find(({ outcome_id }) => outcome_id === market.winning_outcome_id);
  return html`<p class="headline"><span class="headline-label">${outcome?.label ?? 'No outcome'}</span>
<strong data-price="${outcome?.outcome_id}">${percent(now) ?? '–'}</strong>
<span data-change="${outcome?.outcome_id}" data-from="${before ?? ''}">${before != null && change(before, now)}</span>${
    before != null && html` <span class="muted">24 h</span>`
  }${isOver && html` ${badge('idle', `resolved: ${winner?.label ?? 'unknown outcome'}`)}`}</p>`;
}

function switches(request: ConsoleRequest, { market, outcome, range, kind }: View): Html {
  const link = (label: string, isCurrent: boolean, to: Record<string, string>, data: string) =>
    html`<a href="${withQuery(request, to)}" data-switch="${data}"${
      isCurrent && html` aria-current="true"`
    }>${label}</a>`;
  return html`<div class="switches">
<nav class="switch" aria-label="Range">${RANGES.map((each) => link(each, each === range, { range: each }, 'range'))}</nav>
<nav class="switch" aria-label="Chart">${KINDS.map((each) => link(each, each === kind, { chart: each }, 'chart'))}</nav>${
    market.outcomes.length > 1 &&
    html`<nav class="switch" aria-label="Outcome">${market.outcomes.map((each) =>
      link(each.label || each.outcome_id, each.outcome_id === outcome?.outcome_id, { outcome: each.outcome_id }, ''),
    )}</nav>`
  }<button type="button" class="zoom" data-zoom aria-pressed="false" hidden>Zoom the axis</button></div>`;
}

export function chart({ outcome, range, kind }: View, { line }: Series): Html {
  const label = `Price of ${outcome?.label ?? 'the outcome'}, ${range}`;
  return html`<p class="legend muted" data-legend aria-hidden="true"></p>
<div class="chart" id="market-chart" data-range="${range}" data-kind="${kind}" role="img"
 aria-label="${label}. The table of candles below has the figures.">${
   line.length > 1
     ? html`<div class="fallback">${lineChart([line.map(({ time, value }) => ({ x: time, y: value }))], label)}</div>`
     : html`<p class="empty fallback">No price of this range is stored yet. Choose a longer range.</p>`
 }</div>`;
}

export function completeness({ coverage }: Market, series: Series): Html {
  const { status = '', covered_to: to } = series.history ?? {};
  const stored = { complete: 'complete', backfilling: 'being loaded', partial: 'partial' }[status];
  const until = to !== undefined && html`, trades read up to ${minute(fromSeconds(to))} UTC`;
  if (coverage === undefined) return stored === undefined ? html`` : html`history ${stored}${until}`;
  return html`history ${status !== 'complete' && html`${stored}: `}${shareText(coverage.share)} of the venue’s volume since ${minute(
    fromSeconds(coverage.since),
  )}${until}`;
}

export function candleTable(candles: readonly Candle[], interval: string): Html {
  if (candles.length === 0) return html``;
  const rows = candles.slice(-SHOWN_CANDLES).reverse();
  const price = priceColumn(rows.flatMap(({ open, high, low, close }) => [open, high, low, close]));
  const amount = amountColumn(rows.map(({ volume }) => volume));
  return html`<details class="more"><summary>The last ${rows.length} candles of ${interval} as a table</summary>${table<Candle>(
    {
      caption: 'Candles, newest first',
      columns: [
        { label: 'From (UTC)', cell: ({ timestamp }) => minute(fromSeconds(timestamp)) },
        { label: 'Open', isNumeric: true, cell: ({ open }) => price(open) },
        { label: 'High', isNumeric: true, cell: ({ high }) => price(high) },
        { label: 'Low', isNumeric: true, cell: ({ low }) => price(low) },
        { label: 'Close', isNumeric: true, cell: ({ close }) => price(close) },
        { label: 'Volume', isNumeric: true, cell: ({ volume }) => amount(volume) },
        { label: 'Trades', isNumeric: true, cell: ({ trades }) => String(trades) },
      ],
      rows,
      empty: 'No candle is stored.',
    },
  )}</details>`;
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
  ])}
${
  market.description !== '' &&
  html`<details class="more"><summary>Description and rules</summary><p class="long prose">${market.description}</p>${
    market.resolution_criteria !== undefined && html`<p class="long prose">${market.resolution_criteria}</p>`
  }</details>`
}`;
}

function examples(
  request: ConsoleRequest,
  { market, answer, outcome }: View,
  prices: ApiAnswer<Prices> | undefined,
  candles: ApiCall,
  interval: string,
): Html {
  const { venue, market_id } = market;
  const ids = `venue: ${quoted(venue)}, market_id: ${quoted(market_id)}`;
  return programExamples(request, {
    calls: [
      ['the present prices', { operationId: 'getPrices', params: idsOf(market) }],
      ['the candles of the chart', candles],
      ['the result and its timeline', resultCall(market)],
      [
        'every change, live',
        { operationId: 'streamMarkets', params: { venue }, query: { market_ids: market_id, snapshot: 'true' } },
      ],
    ],
    typescript: `const market = { ${ids} };
const { data: prices } = await client.markets.prices(market);
const outcome_id = ${quoted(outcome?.outcome_id ?? '')};
const { data: candles } = await client.candles.list({ ...market, outcome_id, interval: ${quoted(interval)} });
const stream = client.stream({ venue: market.venue, market_ids: [market.market_id], snapshot: true });
for await (const message of stream) console.log(message);`,
    json: (prices ?? answer).text,
  });
}
