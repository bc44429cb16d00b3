import { beforeAll, describe, expect, it } from 'vitest';
import { type ListedQuestion, listQuestions, QUESTION_SORTS } from '../../../../src/store/series/market-questions.ts';
import { aStoredMarket, type StoredMarketFields } from '../../../factories/stored-market.ts';
import { aStoredPrice, storedSnapshots } from '../../../factories/stored-series.ts';
import { useTestDatabase } from '../../../support/postgres/database.ts';

const HOUR = 3_600_000;
const NOW_MS = Date.UTC(2026, 0, 5, 12, 30);
const VENUES = ['polymarket', 'kalshi'];
const OPEN = ['open'] as const;
/** The markets of an event in a list. */
const MAX_LISTED_MARKETS = 20;

const test = useTestDatabase();

interface Known {
  id: string;
  question: string;
  venue: string;
  status: 'open' | 'closed';
  category: string;
  volume: number | null;
  closeAt: number | null;
  createdAt: number | null;
  price: number;
  move: number;
  /** The place in the order of insertion. */
  n: number;
}
const known: Known[] = [];

/** Markets of few events, whose keys are often equal or unknown. */
beforeAll(async () => {
  for (let n = 0; n < 120; n++) {
    const event = n % 5 === 0 ? undefined : `e${(n * 7) % 11}`;
    const venue = VENUES[n % 2] ?? '';
    const market: Known = {
      id: `m${n}`,
      question: `${venue} ${event ?? `m${n}`}`,
      venue,
      status: n % 9 === 4 ? 'closed' : 'open',
      category: `c${n % 3}`,
      volume: n % 4 === 0 ? null : (n * 13) % 17,
      closeAt: n % 7 === 0 ? null : NOW_MS + ((n * 5) % 9) * HOUR,
      createdAt: n % 8 === 0 ? null : NOW_MS - ((n * 11) % 13) * HOUR,
      price: ((n * 37) % 100) / 100,
      move: Math.abs(((n * 37) % 100) - 50) / 100,
      n,
    };
    known.push(market);
    const fields: StoredMarketFields = {
      venue,
      marketId: market.id,
      title: `Title ${n}`,
      status: market.status,
      category: market.category,
      stats: ['1', market.volume === null ? null : String(market.volume), '1'],
      ...(event !== undefined && { eventId: event, eventTitle: `Event ${event}`, siblingLabel: `Label ${n}` }),
      ...(market.closeAt !== null && { closeAt: new Date(market.closeAt) }),
      ...(market.createdAt !== null && { createdAt: new Date(market.createdAt) }),
    };
    const { outcomes } = await aStoredMarket(test.db, fields);
    const tokenId = outcomes[0]?.tokenId ?? 0n;
    await aStoredPrice(test.db, tokenId, { price: String(market.price), asOf: new Date(NOW_MS) });
    await storedSnapshots(test.db, tokenId, [{ ts: NOW_MS / 1_000 - 26 * 3_600, price: '0.5' }]);
  }
});

/** The order of markets as a list of keys, the first market smallest. */
const KEYS: Record<(typeof QUESTION_SORTS)[number], (market: Known) => number[]> = {
  volume_24h: ({ volume, createdAt, n }) =>
    volume === null || volume === 0 ? [1, -(createdAt ?? 0), -n] : [0, -volume, -n],
  move: ({ move, n }) => [-move, -n],
  close_at: ({ closeAt, n }) => [closeAt ?? Number.MAX_SAFE_INTEGER, n],
  created: ({ createdAt, n }) => [-(createdAt ?? 0), -n],
};

function compare(a: number[], b: number[]): number {
  for (const [at, value] of a.entries()) if (value !== b[at]) return value - (b[at] ?? 0);
  return 0;
}

/** The markets that stand for the questions of an order, computed from the known markets. */
function expected(sort: keyof typeof KEYS, filter: (market: Known) => boolean): string[] {
  const isCandidate = (market: Known) => sort !== 'move' || (market.volume ?? 0) > 0;
  const sorted = known
    .filter((market) => filter(market) && isCandidate(market))
    .sort((a, b) => compare(KEYS[sort](a), KEYS[sort](b)));
  return sorted
    .filter(({ question }, at) => sorted.findIndex((each) => each.question === question) === at)
    .map(({ id }) => id);
}

async function walked(query: Omit<Parameters<typeof listQuestions>[1], 'after'>): Promise<ListedQuestion[]> {
  const found: ListedQuestion[] = [];
  let after: readonly string[] | undefined;
  do {
    const page = await listQuestions(test.db, { ...query, ...(after && { after }) }, NOW_MS);
    expect(page.questions.length).toBeLessThanOrEqual(query.limit);
    found.push(...page.questions);
    after = page.next;
  } while (after);
  return found;
}

describe.each(QUESTION_SORTS)('listQuestions in the order %s', (sort) => {
  it.each([1, 4, 200])('returns each question once at the place of its first market, %s per page', async (limit) => {
    const questions = await walked({ venues: VENUES, statuses: OPEN, sort, limit });
    expect(questions.map(({ place }) => place.marketId)).toEqual(expected(sort, ({ status }) => status === 'open'));
  });

  it('applies the filters to all markets of an event', async () => {
    const query = { venues: ['kalshi'], statuses: ['open', 'closed'] as const, category: 'c1', sort, limit: 5 };
    const questions = await walked(query);
    const matches = ({ venue, category }: Known) => venue === 'kalshi' && category === 'c1';
    expect(questions.map(({ place }) => place.marketId)).toEqual(expected(sort, matches));
    for (const { markets, marketCount, eventId, place } of questions) {
      const ids = known
        .filter(
          (market) =>
            matches(market) &&
            (eventId === null ? market.id === place.marketId : market.question === `kalshi ${eventId}`),
        )
        .sort((a, b) => b.price - a.price)
        .map(({ id }) => id);
      expect([marketCount, new Set(markets.map(({ marketId }) => marketId))]).toEqual([ids.length, new Set(ids)]);
    }
  });
});

describe('the markets of a question', () => {
  it('have the highest price first, each with its first outcome or its leader', async () => {
    const event = { category: 'leaders', eventId: 'cup', eventTitle: 'Who wins the cup?' };
    const priced = async (fields: StoredMarketFields, ...prices: string[]) => {
      const { outcomes } = await aStoredMarket(test.db, { ...event, ...fields });
      for (const [at, price] of prices.entries())
        await aStoredPrice(test.db, outcomes[at]?.tokenId ?? 0n, { price, asOf: new Date(NOW_MS) });
    };
    await priced({ siblingLabel: 'Anna', stats: ['1', '7', '1'] }, '0.2', '0.8');
    await priced({ siblingLabel: 'Group', labels: ['Lions', 'Tigers', 'Bears'] }, '0.1', '0.6', '0.3');
    await priced({ siblingLabel: 'Unpriced' });
    const query = { venues: VENUES, statuses: OPEN, category: 'leaders', sort: 'volume_24h', limit: 5 } as const;
    const { questions } = await listQuestions(test.db, query, NOW_MS);
    expect(questions).toHaveLength(1);
    expect(questions[0]).toMatchObject({
      title: 'Who wins the cup?',
      eventId: 'cup',
      venue: 'polymarket',
      marketCount: 3,
    });
    expect(questions[0]?.place).toMatchObject({ siblingLabel: 'Anna', volume24h: '7' });
    expect(
      questions[0]?.markets.map(({ siblingLabel, label, price, outcomes }) => [siblingLabel, label, price, outcomes]),
    ).toEqual([
      ['Group', 'Tigers', '0.6', 3],
      ['Anna', 'Yes', '0.2', 2],
      ['Unpriced', 'Yes', null, 2],
    ]);
  });

  it('are cut, and counted in full', async () => {
    for (let n = 0; n < MAX_LISTED_MARKETS + 3; n++)
      await aStoredMarket(test.db, { category: 'many', eventId: 'many', siblingLabel: `${n}` });
    const query = { venues: VENUES, statuses: OPEN, category: 'many', sort: 'created', limit: 5 } as const;
    const [question] = (await listQuestions(test.db, query, NOW_MS)).questions;
    expect(question?.markets).toHaveLength(MAX_LISTED_MARKETS);
    expect(question?.marketCount).toBe(MAX_LISTED_MARKETS + 3);
  });

  it('stand alone without an event, and with an event id that no index holds', async () => {
    const title = 'The title of a market';
    await aStoredMarket(test.db, { category: 'alone', title });
    await aStoredMarket(test.db, { category: 'alone', title, eventId: 'e'.repeat(201) });
    await aStoredMarket(test.db, { category: 'alone', title, eventId: 'e'.repeat(201) });
    const query = { venues: VENUES, statuses: OPEN, category: 'alone', sort: 'created', limit: 5 } as const;
    const { questions } = await listQuestions(test.db, query, NOW_MS);
    expect(questions.map((question) => [question.title, question.marketCount])).toEqual(Array(3).fill([title, 1]));
  });
});
