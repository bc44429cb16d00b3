import { INTERVAL_SECONDS, INTERVALS, type Interval } from '../../../src/domain/markets/candle.ts';
import { coveredShare } from '../../../src/domain/markets/volume-witness.ts';
import { isWebAddress } from '../../../src/domain/values/parse-url.ts';
import { findMarket } from '../../../src/store/catalog/market-reads.ts';
import {
  MAX_COUNTED_ALERTS,
  type OpsOutcome,
  readLastCandles,
  readObservations,
  readOpsMarket,
} from '../../../src/store/ops/markets.ts';
import { readBook } from '../../../src/store/series/book-reads.ts';
import { readVenueCompleteness, type VenueCompleteness } from '../../../src/store/series/completeness.ts';
import { readTrades, type StoredCandle } from '../../../src/store/series/reads.ts';
import { type MarketCompleteness, readMarketCompleteness } from '../../../src/store/series/trade-repairs.ts';
import { ApiError, invalidRequest } from '../../errors.ts';
import { comparingOf } from '../../reads/completeness.ts';
import { chosen, textField } from '../kit/filters.ts';
import { ago, badge, code, facts, type Html, html, longText, NONE, number, table, time } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import { amountText, decimalColumn, decimalText, shareText } from '../kit/shown-values.ts';
import type { OpsRequest, OpsRouter } from './actions.ts';
import { bookView, chart, type MarketView, observationTable, tradeTable, viewPath } from './market-parts.ts';
import { MARKETS_PATH, marketName, marketState } from './markets.ts';

const PATH = `${MARKETS_PATH}/:venue/:market_id`;
const DATA_PATH = '/ops/data/markets/:venue/:market_id/candles.json';
const DEFAULT_INTERVAL: Interval = '1h';
const CHARTED_CANDLES = 500;
const SHOWN_TRADES = 30;
const SHOWN_OBSERVATIONS = 30;

type MarketDeps = Pick<PageDeps, 'db' | 'venues'>;

/** /ops/markets/{venue}/{id}: one market with chart, book and tape, and the data of its chart. */
export function marketPage(router: OpsRouter, deps: MarketDeps): void {
  router.page({
    path: PATH,
    section: 'markets',
    async load(request) {
      const view = await viewOf(deps, request);
      const body = await marketBody(deps, view, request.nowMs);
      const { market } = view;
      return { title: marketName(market), body, ...(view.outcome && { scripts: ['candle-chart.js'] }) };
    },
  });

  router.data({
    path: DATA_PATH,
    async load(request) {
      const { outcome, interval } = await viewOf(deps, request);
      const candles = outcome ? await lastCandles(deps, outcome, interval) : [];
      return {
        interval,
        outcome: outcome?.label,
        candles: candles.map(({ bucket, open, high, low, close, volume }) => {
          return { time: bucket, open, high, low, close, volume };
        }),
      };
    },
  });
}

async function viewOf({ db }: MarketDeps, { params, query }: OpsRequest): Promise<MarketView> {
  const interval = chosen(query, 'interval', INTERVALS) ?? DEFAULT_INTERVAL;
  const market = await findMarket(db, [params['venue'] ?? ''], params['market_id'] ?? '');
  const state = market && (await readOpsMarket(db, market.pk));
  if (!market || !state) throw new ApiError('market_not_found', 'the market does not exist');
  const wanted = textField(query, 'outcome');
  const outcome = wanted === undefined ? state.outcomes[0] : state.outcomes.find((each) => each.outcomeId === wanted);
  if (wanted !== undefined && !outcome)
    throw invalidRequest([{ path: 'outcome', message: 'must be an outcome of this market' }]);
  return { market, state, outcome, interval };
}

function lastCandles({ db }: MarketDeps, { tokenId }: OpsOutcome, interval: Interval): Promise<StoredCandle[]> {
  return readLastCandles(db, tokenId, INTERVAL_SECONDS[interval], CHARTED_CANDLES);
}

async function marketBody(deps: MarketDeps, view: MarketView, nowMs: number): Promise<Html> {
  const { market, state, outcome } = view;
  const tokenIds = state.outcomes.map(({ tokenId }) => tokenId);
  const [completeness, ofVenues, candles, book, { trades }, observations] = await Promise.all([
    readMarketCompleteness(deps.db, market.pk),
    readVenueCompleteness(deps.db, [market.venue]),
    outcome ? lastCandles(deps, outcome, view.interval) : [],
    outcome ? readBook(deps.db, outcome.tokenId) : null,
    readTrades(deps.db, { tokenIds, range: {}, direction: 'desc', limit: SHOWN_TRADES }),
    outcome ? readObservations(deps.db, outcome.tokenId, SHOWN_OBSERVATIONS) : [],
  ]);
  return html`<p class="state">${marketState(market.status)}${state.goneAt !== null && badge('bad', 'removed by the venue')}${
    state.goneAt === null && state.missingSince !== null && badge('warn', 'missing from the listing')
  }${completeness?.missingSince && badge('bad', 'missing trades')}</p>
${marketFacts(view, currencyOf(deps, market.venue), completeness, pausedText(deps, ofVenues.get(market.venue), nowMs), nowMs)}
<h2>Outcomes</h2>
<p class="hint">Prices in ${currencyOf(deps, market.venue)} per unit.</p>
${outcomeTable(view, nowMs)}
${
  outcome &&
  html`${chart(view, outcome, candles, nowMs)}
<h2 id="book">Book of ${outcome.label}</h2>
${bookView(book, state.hasBook, nowMs)}`
}
<div class="columns"><section class="trades"><h2>Latest trades</h2>
${tradeTable(trades, state.outcomes, nowMs)}</section>
${
  outcome &&
  html`<section class="observed"><h2>Observed prices of ${outcome.label}</h2>
${observationTable(observations)}</section>`
}</div>`;
}

/** The currency of the venue's prices and volumes; empty for a venue that is off. */
function currencyOf({ venues }: MarketDeps, venue: string): string {
  return venues.find((each) => each.venue === venue)?.currency ?? '';
}

function marketFacts(
  { market, state }: MarketView,
  currency: string,
  completeness: MarketCompleteness | null,
  paused: Html,
  nowMs: number,
): Html {
  const { history } = state;
  const winner = state.outcomes.find(({ outcomeId }) => outcomeId === market.winningOutcomeId);
  return html`${facts([
    ['Venue', market.venue],
    ['Id', code(market.marketId)],
    ['Event', html`${code(market.eventId)} ${market.eventTitle !== null && longText(market.eventTitle)}`],
    ['Category', longText(market.category)],
    ['Volume', amountText(market.volume, currency)],
    ['Volume, 24 h', amountText(market.volume24h, currency)],
    ['Liquidity', amountText(market.liquidity, currency)],
    ['Opened', time(market.openAt ?? market.createdAt)],
    ['Closes', time(market.closeAt)],
    ['Resolved', time(market.resolvedAt)],
    ['Result', market.resolutionState],
    ['Winning outcome', winner ? winner.label : code(market.winningOutcomeId)],
    ['Last seen in listing', ago(state.seenAt, nowMs)],
    [
      'Last changed',
      html`${ago(market.updatedAt, nowMs)} <span class="muted">(${number(state.versions)} earlier versions)</span>`,
    ],
    [
      'Backfill',
      history === null
        ? html`<span class="muted">not requested</span>`
        : html`${history.status}, ${number(history.trades)} stored${history.lastError !== null && html`: ${longText(history.lastError)}`}`,
    ],
    ['Completeness', html`${completenessText(completeness, nowMs)}${paused}`],
    ['Repair', repairText(completeness, nowMs)],
    ['Alerts', html`<a href="/ops/alerts?market=${encodeURIComponent(market.marketId)}">of this market</a>`],
    ...(isWebAddress(market.url)
      ? [['Venue page', html`<a href="${market.url}" rel="noreferrer noopener">open</a>`] as const]
      : []),
  ])}
${market.description !== '' && html`<details><summary>Description</summary><p class="long prose">${market.description}</p></details>`}`;
}

function completenessText(completeness: MarketCompleteness | null, nowMs: number): Html {
  if (completeness === null) return html`<span class="muted">not compared yet</span>`;
  const { since, storedVolume, venueVolume, missingVolume, missingSince } = completeness;
  return html`${shareText(coveredShare(storedVolume, venueVolume))} of the volume since ${time(since)} stored${
    missingSince !== null && html`; ${decimalText(missingVolume)} missing since ${ago(missingSince, nowMs)}`
  }`;
}

/** Empty while the witness of the venue compares new volumes. */
function pausedText({ venues }: MarketDeps, venue: VenueCompleteness | undefined, nowMs: number): Html {
  if (venue === undefined) return html``;
  const profile = venues.find((each) => each.venue === venue.venue);
  if (comparingOf(venue, nowMs, profile?.pollMs.trades).isComparing) return html``;
  const { caughtUpMs } = venue;
  return html`; ${badge('warn', 'not compared now')} trades of the venue read up to ${
    caughtUpMs === null ? 'no time' : ago(new Date(caughtUpMs), nowMs)
  }`;
}

function repairText(completeness: MarketCompleteness | null, nowMs: number): Html {
  const repair = completeness?.repair ?? null;
  if (repair === null) return html`<span class="muted">none</span>`;
  const { status, trades, finishedMs, missingAfter, lastError } = repair;
  return html`${status}, ${number(trades)} trades found${finishedMs !== null && html` ${ago(new Date(finishedMs), nowMs)}`}${
    missingAfter !== null && html`, ${decimalText(missingAfter)} still missing`
  }${lastError !== null && html`: ${longText(lastError)}`}`;
}

function outcomeTable({ market, state, outcome, interval }: MarketView, nowMs: number): Html {
  const priceText = decimalColumn(state.outcomes.flatMap(({ price, bid, ask }) => [price, bid, ask]));
  return table<OpsOutcome>({
    caption: 'Outcomes with their latest prices',
    columns: [
      {
        label: 'Outcome',
        cell: ({ label, outcomeId }) =>
          html`<a href="${viewPath(market, outcomeId, interval)}"${outcomeId === outcome?.outcomeId && html` aria-current="true"`}>${longText(label || outcomeId)}</a>`,
      },
      { label: 'Price', cell: ({ price }) => priceText(price), isNumeric: true },
      { label: 'Bid', cell: ({ bid }) => priceText(bid), isNumeric: true },
      { label: 'Ask', cell: ({ ask }) => priceText(ask), isNumeric: true },
      { label: 'Received', cell: ({ receivedAt }) => ago(receivedAt, nowMs) },
      { label: 'Last seen', cell: ({ asOf }) => ago(asOf, nowMs) },
      { label: 'Payout', cell: ({ payout }) => decimalText(payout), isNumeric: true },
      {
        label: 'Active alerts',
        cell: ({ activeAlerts, outcomeId }) =>
          activeAlerts === 0
            ? NONE
            : html`<a href="/ops/alerts?status=active&amp;token=${encodeURIComponent(outcomeId)}">${number(activeAlerts)}${activeAlerts >= MAX_COUNTED_ALERTS && ' or more'}</a>`,
        isNumeric: true,
      },
    ],
    rows: state.outcomes,
    empty: 'No outcome is stored.',
  });
}
