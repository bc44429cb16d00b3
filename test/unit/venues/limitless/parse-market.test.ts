import { describe, expect, it } from 'vitest';
import { textOfHtml } from '../../../../src/venues/limitless/html-text.ts';
import { flattenGroups } from '../../../../src/venues/limitless/listing.ts';
import { outcomeIdsOf, slugOfOutcomeId } from '../../../../src/venues/limitless/outcome-ids.ts';
import { parseMarkets } from '../../../../src/venues/limitless/parse-market.ts';
import { partsOfOutcomeId } from '../../../../src/venues/manifold/outcome-ids.ts';

const NOW_MS = Date.UTC(2026, 10, 1);
const market = (fields: object = {}) => ({
  slug: 'btc-up',
  title: 'BTC up?',
  status: 'FUNDED',
  expired: false,
  expirationTimestamp: NOW_MS + 60_000,
  tradeType: 'clob',
  tokens: { yes: '10', no: '11' },
  ...fields,
});
const parse = (...rows: unknown[]) => parseMarkets(flattenGroups(rows), NOW_MS);
const only = (row: unknown) => parse(row).records[0];

describe('parseMarkets', () => {
  it.each([
    ['CREATED', {}, 'created'],
    ['FUNDED', {}, 'open'],
    ['LOCKED', {}, 'halted'],
    ['CLOSED', {}, 'closed'],
    ['FUNDED', { expired: true }, 'closed'],
    ['FUNDED', { expirationTimestamp: NOW_MS }, 'closed'],
    ['LOCKED', { expirationTimestamp: NOW_MS - 1 }, 'closed'],
    ['RESOLVED', { winningOutcomeIndex: 1 }, 'resolved'],
    ['FUNDED', { winningOutcomeIndex: 0 }, 'resolved'],
    ['RESOLVED', { winningOutcomeIndex: null }, 'resolved'],
    ['SUSPENDED', {}, 'closed'],
  ])('maps %s with %o to %s', (status, fields, expected) => {
    expect(only(market({ status, ...fields }))?.status).toBe(expected);
  });

  it('reports a status and a result that it does not know', () => {
    expect(parse(market({ status: 'SUSPENDED' })).unknowns).toEqual([{ field: 'status', value: 'SUSPENDED' }]);
    const unknowns = parse(market({ status: 'RESOLVED', winningOutcomeIndex: 2 })).unknowns;
    expect(unknowns).toEqual([{ field: 'winningOutcomeIndex', value: '2' }]);
  });

  it.each<[string, object, object[] | undefined]>([
    ['no step of a closed market', { status: 'CLOSED' }, undefined],
    [
      'the payouts of a winner',
      { status: 'FUNDED', winningOutcomeIndex: 0 },
      [
        {
          state: 'resolved',
          payouts: [
            { outcomeId: '10', payout: '1' },
            { outcomeId: '11', payout: '0' },
          ],
        },
      ],
    ],
    ['a result without a winner', { status: 'RESOLVED' }, [{ state: 'resolved', reason: 'not_stated' }]],
    [
      'a winner that is no outcome',
      { status: 'RESOLVED', winningOutcomeIndex: 2 },
      [{ state: 'resolved', reason: 'unknown_value' }],
    ],
    ['a status that is not known', { status: 'SUSPENDED' }, [{ state: 'unknown', facts: { rawState: 'SUSPENDED' } }]],
  ])('names %s', (_what, fields, steps) => {
    expect(only(market(fields))?.resolutionSteps).toEqual(steps);
  });

  it('pays the winner and names it', () => {
    expect(only(market({ status: 'RESOLVED', winningOutcomeIndex: 1 }))).toMatchObject({
      resolution: 'outcome',
      winningOutcomeId: '11',
      outcomes: [
        { outcomeId: '10', label: 'Yes', payout: '0' },
        { outcomeId: '11', label: 'No', payout: '1' },
      ],
    });
    expect(only(market({ status: 'RESOLVED' }))?.winningOutcomeId).toBeUndefined();
  });

  it('reads amounts in millionths, and none of another collateral', () => {
    expect(only(market({ volume: '12500001', liquidity: 2_000_000 }))).toMatchObject({
      volume: '12.500001',
      liquidity: '2',
    });
    const weth = market({ volume: '1', collateralToken: { symbol: 'WETH', decimals: 18 } });
    expect(only(weth)).not.toHaveProperty('volume');
    expect(parse(weth).unknowns).toEqual([{ field: 'collateralToken', value: 'WETH' }]);
  });

  it('makes each option of a group a market of its event', () => {
    const group = {
      slug: 'fed',
      title: 'Fed in June?',
      marketType: 'group',
      categories: ['Economy'],
      tags: ['Rates'],
      markets: [
        market({ slug: 'cut', title: 'Cut' }),
        market({ slug: 'hold', title: 'Hold', tokens: { yes: '20', no: '21' } }),
      ],
    };
    const { records, skipped } = parse(group);
    expect(skipped).toEqual([]);
    expect(records.map(({ marketId, title, siblingLabel }) => [marketId, title, siblingLabel])).toEqual([
      ['cut', 'Fed in June?: Cut', 'Cut'],
      ['hold', 'Fed in June?: Hold', 'Hold'],
    ]);
    expect(records[0]).toMatchObject({
      eventId: 'fed',
      eventTitle: 'Fed in June?',
      eventUrl: 'https://limitless.exchange/markets/fed',
      category: 'Economy',
      tags: ['Economy', 'Rates'],
    });
  });

  it('skips a group without options, and keeps an option that says group of itself', () => {
    expect(parse({ slug: 'fed', title: 'Fed?', marketType: 'group', markets: [], tokens: null }).skipped).toEqual([
      'group',
    ]);
    expect(only(market({ marketType: 'group' }))?.marketId).toBe('btc-up');
  });

  it('makes outcome ids of the slug when a market has no tokens, unlike those of any other venue', () => {
    const { outcomes, hasBook } = only(market({ tokens: null, tradeType: 'amm' })) ?? { outcomes: [] };
    expect(outcomes.map(({ outcomeId }) => outcomeId)).toEqual(['limitless:btc-up:YES', 'limitless:btc-up:NO']);
    expect(hasBook).toBe(false);
    for (const { outcomeId } of outcomes) {
      expect(slugOfOutcomeId(outcomeId)).toBe('btc-up');
      expect(partsOfOutcomeId(outcomeId)).toBeUndefined();
    }
    expect(outcomeIdsOf('btc-up', { yes: '10', no: '11' })).toEqual(['10', '11']);
  });

  it.each([
    ['a slug that would change the path', { slug: '../admin' }, 'invalid_field'],
    ['two equal tokens', { tokens: { yes: '10', no: '10' } }, 'duplicate_outcome'],
    ['an expiration in seconds', { expirationTimestamp: 1_782_066_600 }, 'timestamp_out_of_range'],
    ['a title with U+0000', { title: 'a\u0000' }, 'unstorable_text'],
  ])('rejects %s', (_what, fields, reason) => {
    expect(parse(market(fields)).rejected.map((each) => each.reason)).toEqual([reason]);
  });
});

describe('textOfHtml', () => {
  it('keeps the words of the editor', () => {
    const html = '<p>Resolves to &quot;Up&quot; if <a href="https://x.y">it</a> rises.</p><p><br></p><p>A &lt; B</p>';
    expect(textOfHtml(html)).toBe('Resolves to "Up" if it rises.\n\nA < B');
  });

  it('keeps a comparison that is not a tag', () => {
    expect(textOfHtml('1 < 2 and 3 > 2')).toBe('1 < 2 and 3 > 2');
  });
});
