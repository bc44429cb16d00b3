import { cut } from '../../../src/domain/webhooks/chat-values.ts';
import { type MarketTrend, readTrends } from '../../../src/store/series/market-trends.ts';
import { sparkline } from '../kit/drawings.ts';
import { badge, type Html, html, NONE, type Tone, table } from '../kit/html.ts';
import type { PageDeps } from '../kit/page-deps.ts';
import type { Decimal, Market } from './answers.ts';
import { isNamesake } from './find/questions.ts';
import type { StarOf } from './find/star.ts';
import {
  change,
  compact,
  currencyOf,
  fromSeconds,
  marketPath,
  minute,
  percent,
  titleOf,
  venueTitle,
} from './values.ts';

/** The categories of a filter. */
export const MAX_CATEGORIES = 200;
const MAX_LABEL = 28;

/** The trends of these markets by venue and id: of the named outcome, else of the first one or the leader. */
export async function trendsOf(
  { db }: Pick<PageDeps, 'db'>,
  markets: readonly (Pick<Market, 'venue' | 'market_id'> & { outcome_id?: string | undefined })[],
  nowMs: number,
): Promise<ReadonlyMap<string, MarketTrend>> {
  const asked = markets.map(({ venue, market_id, outcome_id }) => ({
    venue,
    marketId: market_id,
    outcomeId: outcome_id,
  }));
  const trends = asked.length === 0 ? [] : await readTrends(db, asked, nowMs);
  return new Map(trends.map((trend) => [`${trend.venue} ${trend.marketId}`, trend]));
}

export const STATUS_TONES: Readonly<Record<string, Tone>> = { open: 'good', halted: 'warn', created: 'idle' };

/** A table of markets with prices that a script keeps current. Markets of one event have their labels, unless `names` are titles. */
export function marketTable(
  markets: readonly Market[],
  trends: ReadonlyMap<string, MarketTrend>,
  { starOf, names = 'labels', empty }: { starOf?: StarOf; names?: 'labels' | 'titles'; empty?: Html } = {},
): Html {
  const rows = markets.map((market) => ({ market, trend: trends.get(`${market.venue} ${market.market_id}`) }));
  const nameOf = (market: Market) => (names === 'titles' ? titleOf(market) : (market.sibling_label ?? market.title));
  return html`<div class="market-table">${table<(typeof rows)[number]>({
    caption: 'Markets',
    columns: [
      { label: 'Market', cell: ({ market }) => nameCell(market, nameOf(market)) },
      {
        label: 'Probability',
        isNumeric: true,
        cell: ({ market, trend }) =>
          trend?.price == null
            ? NONE
            : html`<strong class="num" data-price="${trend.outcomeId}" title="${trend.label}">${percent(trend.price)}</strong>${outcomeName(trend, market)}`,
      },
      { label: '24 h', isNumeric: true, cell: ({ trend }) => trend && changeCell(trend) },
      { label: 'Last day', cell: ({ trend }) => trend && lineCell(trend) },
      { label: 'Volume, 24 h', isNumeric: true, cell: ({ market }) => volumeCell(market.volume_24h, market.venue) },
      { label: 'Closes (UTC)', isNumeric: true, cell: ({ market }) => minute(fromSeconds(market.close_at)) },
      ...(starOf
        ? [
            {
              label: 'Watch',
              cell: (row: (typeof rows)[number]) => starOf({ ...row.market, name: nameOf(row.market) }),
            },
          ]
        : []),
    ],
    rows,
    empty: empty ?? 'No market is stored.',
  })}</div>`;
}

/** The probability of "Yes" is that of the title, and some labels are in the title; any other outcome is named. */
function outcomeName({ label }: MarketTrend, { sibling_label, outcomes }: Market): Html | undefined {
  if (isNamesake(label, sibling_label, outcomes.length)) return undefined;
  return html` <span class="outcome-name muted" title="${label}">${cut(label, MAX_LABEL)}</span>`;
}

/** The change of the last day, which a script keeps current. */
export function changeCell({ outcomeId, points, price }: MarketTrend): Html {
  return html`<span data-change="${outcomeId}" data-from="${points[0] ?? ''}">${change(points[0], price)}</span>`;
}

export function lineCell({ points, price }: MarketTrend): Html {
  return sparkline([...points, price].map((each) => (each === null ? null : Number(each))));
}

export function volumeCell(volume: Decimal | null | undefined, venue: string): Html {
  if (volume === undefined || volume === null) return NONE;
  return html`${compact(volume)} <span class="muted unit">${currencyOf(venue)}</span>`;
}

function nameCell(market: Market, name: string): Html {
  return html`<a class="row-link" data-row href="${marketPath(market)}">${name}</a>${whereOf(market)}`;
}

/** Where a row belongs, and its state unless it is open. */
export function whereOf(
  { venue, category, status }: { venue: string; category?: string | null | undefined; status: string },
  more?: Html,
): Html {
  return html`<span class="where">${venueTitle(venue)}${category != null && html` · ${category}`}${more}${
    status !== 'open' && html` ${badge(STATUS_TONES[status] ?? 'idle', status)}`
  }</span>`;
}
