import { compareDecimals, type Decimal, parseDecimal } from '../../../../src/domain/values/decimal.ts';
import { invalidRequest } from '../../../errors.ts';
import { chosen, textField } from '../../kit/filters.ts';
import { badge, type Html, html } from '../../kit/html.ts';
import { type Market, orNothing, type Prices } from '../answers.ts';
import type { ApiAnswer, ApiCall } from '../api-calls.ts';
import type { ConsoleRequest } from '../route.ts';
import { CHART_KINDS, type ChartKind, RANGES, type Range } from '../series.ts';
import { change, percent } from '../values.ts';

/** The parts of a request that the reads of one market need. */
export type MarketRequest = Pick<ConsoleRequest, 'api' | 'params' | 'query' | 'nowMs'>;

/** The market of a page with the choices of its address. */
export interface View {
  market: Market;
  answer: ApiAnswer<Market>;
  outcome: { outcome_id: string; label: string } | undefined;
  range: Range;
  kind: ChartKind;
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
  return { market, answer, outcome, ...chartChoices(request) };
}

/** The range and the kind of a chart in the address of its page. */
export function chartChoices({ query }: Pick<ConsoleRequest, 'query'>): { range: Range; kind: ChartKind } {
  return { range: chosen(query, 'range', RANGES) ?? '1d', kind: chosen(query, 'chart', CHART_KINDS) ?? 'line' };
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

/** The parameters of the routes of one market. */
export const idsOf = ({ venue, market_id }: Pick<Market, 'venue' | 'market_id'>) => ({ venue, market_id });

/** Undefined before the first price. */
export async function pricesOf(
  { api }: Pick<ConsoleRequest, 'api'>,
  market: Pick<Market, 'venue' | 'market_id'>,
): Promise<ApiAnswer<Prices> | undefined> {
  return orNothing(api<Prices>({ operationId: 'getPrices', params: idsOf(market) }));
}

export function quoteOf(prices: ApiAnswer<Prices> | undefined, outcome: string | undefined) {
  return prices?.data.outcomes.find(({ outcome_id }) => outcome_id === outcome);
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
