import { compareDecimals, parseDecimal } from '../../../../src/domain/values/decimal.ts';
import { type NamedOutcome, nameOutcomes } from '../../../../src/store/catalog/outcome-names.ts';
import type { PageDeps } from '../../kit/page-deps.ts';
import type { Decimal, Market } from '../answers.ts';

/** A row of the list: an event with its markets, or a market without an event. */
export interface Question {
  venue: string;
  /** Absent for a market without an event. */
  eventId?: string;
  title: string;
  /** At least one, in the order of the list. */
  markets: [Market, ...Market[]];
}

/** The questions of these markets, in the order of their first markets. */
export function questionsOf(markets: readonly Market[]): Question[] {
  const questions = new Map<string, Question>();
  for (const market of markets) {
    const { venue, event_id: eventId, event_title, title } = market;
    const key = JSON.stringify(eventId === undefined ? [venue, null, market.market_id] : [venue, eventId]);
    const known = questions.get(key);
    if (known) known.markets.push(market);
    else {
      const isEvent = eventId !== undefined;
      questions.set(key, {
        venue,
        title: isEvent ? (event_title ?? title) : title,
        markets: [market],
        ...(isEvent && { eventId }),
      });
    }
  }
  return [...questions.values()];
}

/** An outcome of a market with its price; null before the first one. */
interface Quoted {
  outcomeId: string;
  label: string;
  price: Decimal | null;
}

/** The outcomes of a market with their prices: in the order of the venue, or of more than two the highest price first. */
export type QuotesOf = (market: Market) => Quoted[];

/** Reads the prices of all outcomes of these markets. */
export async function readQuotes({ db }: Pick<PageDeps, 'db'>, markets: readonly Market[]): Promise<QuotesOf> {
  const ids = markets.flatMap(({ outcomes }) => outcomes.map(({ outcome_id }) => outcome_id));
  const named: NamedOutcome[] = ids.length === 0 ? [] : await nameOutcomes(db, ids);
  const priceOf = new Map(named.map(({ outcomeId, price }) => [outcomeId, price]));
  return ({ outcomes }) => {
    const quoted = outcomes.map(({ outcome_id, label }) => ({
      outcomeId: outcome_id,
      label,
      price: priceOf.get(outcome_id) ?? null,
    }));
    return quoted.length > 2 ? quoted.sort(byPrice) : quoted;
  };
}

/** A market with the quotes of its outcomes. */
export interface QuotedMarket {
  market: Market;
  quotes: Quoted[];
}

/** The markets of a question, the highest price of a first or leading outcome first. */
export function leadersFirst({ markets }: Question, quotesOf: QuotesOf): QuotedMarket[] {
  const lead = ({ quotes: [first] }: QuotedMarket) => first ?? { price: null };
  return markets.map((market) => ({ market, quotes: quotesOf(market) })).sort((a, b) => byPrice(lead(a), lead(b)));
}

/** The highest price first; the unknown ones last. */
function byPrice(a: Pick<Quoted, 'price'>, b: Pick<Quoted, 'price'>): number {
  const [first, second] = [parseDecimal(a.price), parseDecimal(b.price)];
  if (first === null || second === null) return Number(first === null) - Number(second === null);
  return compareDecimals(second, first);
}

/** Whether the name of a market also names its outcome, so that its price needs no other name. */
export function isNamesake(label: string, siblingLabel: string | null | undefined, outcomes: number): boolean {
  return outcomes <= 2 && (/^yes$/i.test(label) || label === siblingLabel);
}
