import { cut } from '../../../../src/domain/webhooks/chat-values.ts';
import type { ListedQuestion, QuestionMarket } from '../../../../src/store/series/market-questions.ts';
import type { MarketTrend } from '../../../../src/store/series/market-trends.ts';
import { type Html, type HtmlValue, html, table } from '../../kit/html.ts';
import { changeCell, lineCell, volumeCell, whereOf } from '../markets.ts';
import { eventPath, marketPath, minute, percent, titleOf } from '../values.ts';
import { isNamesake } from './questions.ts';
import type { StarOf } from './star.ts';

/** The markets of an event that a row names. */
export const SHOWN_LEADERS = 3;
const MAX_NAME = 60;

/** The parts of a page that questions need besides their markets. */
interface Parts {
  trends: ReadonlyMap<string, MarketTrend>;
  starOf: StarOf;
  /** Names the table for screen readers. */
  caption: string;
  empty: HtmlValue;
}

/** A table with one row per question: its leaders by name and price, and all of its markets on request. A script keeps the prices current. */
export function questionTable(questions: readonly ListedQuestion[], { trends, starOf, caption, empty }: Parts): Html {
  const rows = questions.map((question) => {
    const [lead] = question.markets;
    return { ...question, trend: lead && trends.get(`${lead.venue} ${lead.marketId}`) };
  });
  return html`<div class="market-table question-table">${table<(typeof rows)[number]>({
    caption,
    columns: [
      { label: 'Question', cell: (question) => titleCell(question, starOf) },
      { label: 'Leaders', isNumeric: true, cell: leadersCell },
      { label: '24 h', isNumeric: true, cell: ({ trend }) => trend && changeCell(trend) },
      { label: 'Last day', cell: ({ trend }) => trend && lineCell(trend) },
      { label: 'Volume, 24 h', isNumeric: true, cell: questionVolume },
      { label: 'Closes (UTC)', isNumeric: true, cell: ({ place }) => minute(place.closeAt) },
      {
        label: 'Watch',
        cell: (question) => (isAlone(question) ? starOf(starred(question.place, aloneName(question))) : undefined),
      },
    ],
    rows,
    empty,
  })}</div>`;
}

/** Whether a question is one market: without an event, or the only one of an event of the same title. */
function isAlone({ eventId, title, marketCount, place }: ListedQuestion): boolean {
  return eventId === null || (marketCount === 1 && place.title === title);
}

/** The name of a question that is one market, as the page of the market has it. */
function aloneName({ title, place: { siblingLabel } }: ListedQuestion): string {
  return titleOf({ title, ...(siblingLabel !== null && { sibling_label: siblingLabel }) });
}

function titleCell(question: ListedQuestion, starOf: StarOf): Html {
  const { venue, eventId, title, place, markets, marketCount } = question;
  if (eventId === null || isAlone(question)) {
    return html`<a class="row-link" data-row href="${pathOf(place)}">${title}</a>${whereOf(place)}`;
  }
  return html`<a class="row-link" data-row href="${eventPath(venue, eventId)}">${title}</a>${whereOf(place, html` · ${marketCount} markets`)}${members(
    venue,
    eventId,
    { markets, marketCount, starOf },
  )}`;
}

/** All listed markets of an event, folded. */
function members(
  venue: string,
  eventId: string,
  { markets, marketCount, starOf }: { markets: readonly QuestionMarket[]; marketCount: number; starOf: StarOf },
): Html {
  const isCut = marketCount > markets.length;
  return html`<details class="members" data-members="${markets.map(({ marketId }) => marketId).join(',')}"><summary>${
    isCut ? `The ${markets.length} most likely` : 'All markets'
  }</summary><ul>${markets.map(
    (market) =>
      html`<li>${starOf(starred(market, memberTitle(market)))}<a href="${pathOf(market)}">${memberTitle(market)}</a> ${price(market)}
<span class="member-volume">${volumeCell(market.volume24h, market.venue)}</span></li>`,
  )}</ul>${isCut && html`<p><a href="${eventPath(venue, eventId)}">All ${marketCount} markets</a></p>`}</details>`;
}

function leadersCell(question: ListedQuestion): Html {
  return html`<ol class="leaders">${question.markets.slice(0, SHOWN_LEADERS).map((market) => {
    const name = isAlone(question) && market.siblingLabel === null ? (market.label ?? '–') : memberTitle(market);
    return html`<li><span class="leader" title="${name}">${cut(name, MAX_NAME)}</span> ${price(market)}</li>`;
  })}</ol>`;
}

/** The volume that gives the question its place in the order. */
function questionVolume({ place, marketCount }: ListedQuestion): Html {
  const volume = volumeCell(place.volume24h, place.venue);
  if (marketCount === 1 || place.volume24h === null) return volume;
  return html`${volume}<span class="where">largest of ${marketCount}</span>`;
}

/** The label of a market among others of its event, and its leader where the price is not that of the label. */
function memberTitle({ siblingLabel, title, label, outcomes }: QuestionMarket): string {
  const name = siblingLabel ?? title;
  return label === null || isNamesake(label, siblingLabel, outcomes) ? name : `${name} · ${label}`;
}

function price({ price: value, outcomeId }: QuestionMarket): Html {
  if (value === null || outcomeId === null) return html`<span class="none">no price</span>`;
  return html`<strong class="num" data-price="${outcomeId}">${percent(value)}</strong>`;
}

function starred({ venue, marketId }: QuestionMarket, name: string) {
  return { venue, market_id: marketId, name };
}

function pathOf({ venue, marketId }: QuestionMarket): string {
  return marketPath({ venue, market_id: marketId });
}
