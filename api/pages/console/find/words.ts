import type { MarketStatus } from '../../../../src/domain/markets/market.ts';
import { toJsonText } from '../../../../src/domain/values/api-json.ts';
import { searchMarkets } from '../../../../src/store/catalog/market-search.ts';
import type { ListedQuestion, QuestionMarket } from '../../../../src/store/series/market-questions.ts';
import { presentMarket, toPlace, toPosition } from '../../../reads/market-search.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import type { Market } from '../answers.ts';
import { fromSeconds, plain } from '../values.ts';
import { leadersFirst, type Question, type QuotesOf, questionsOf, readQuotes } from './questions.ts';

export const MAX_WORDS = 200;
/** The matches of a page. */
const PAGE_MARKETS = 50;

interface WordsQuery {
  venues: readonly string[];
  statuses: readonly MarketStatus[];
  category?: string;
  /** At most MAX_WORDS characters. */
  text: string;
}

/**
 * A page of the markets that match a text, grouped by question, the best match first. A question has its matching markets of the page, so an
 * event with many of them may continue on the next page.
 */
export async function findByWords(
  deps: Pick<PageDeps, 'db'>,
  query: WordsQuery,
  cursor: readonly string[] | undefined,
): Promise<{ questions: ListedQuestion[]; next?: readonly string[]; isSimilar: boolean }> {
  const after = cursor && toPlace(cursor);
  const found = await searchMarkets(deps.db, { ...query, limit: PAGE_MARKETS, ...(after && { after }) });
  const markets = JSON.parse(toJsonText(found.markets.map(presentMarket), 'number')) as Market[];
  const quotesOf = await readQuotes(deps, markets);
  const { next } = found;
  return {
    questions: questionsOf(markets).map((question) => listed(question, quotesOf)),
    ...(next && { next: toPosition(next) }),
    isSimilar: found.matched === 'similar',
  };
}

function listed(question: Question, quotesOf: QuotesOf): ListedQuestion {
  const [place] = question.markets;
  return {
    venue: question.venue,
    eventId: question.eventId ?? null,
    title: question.title,
    place: listedMarket(place, quotesOf),
    markets: leadersFirst(question, quotesOf).map(({ market }) => listedMarket(market, quotesOf)),
    marketCount: question.markets.length,
  };
}

function listedMarket(market: Market, quotesOf: QuotesOf): QuestionMarket {
  const [quote] = quotesOf(market);
  return {
    venue: market.venue,
    marketId: market.market_id,
    title: market.title,
    siblingLabel: market.sibling_label ?? null,
    category: market.category ?? null,
    status: market.status,
    closeAt: fromSeconds(market.close_at) ?? null,
    volume24h: market.volume_24h === undefined ? null : plain(market.volume_24h),
    outcomes: market.outcomes.length,
    outcomeId: quote?.outcomeId ?? null,
    label: quote?.label ?? null,
    price: quote?.price == null ? null : plain(quote.price),
  };
}
