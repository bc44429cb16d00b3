import { describe, expect, it } from 'vitest';
import { parseMarkets } from '../../../../src/venues/polymarket/parse-market.ts';

const NOW = Date.UTC(2026, 6, 1);
const CONDITION = `0x${'ab'.repeat(32)}`;

const open = {
  id: '2774056',
  conditionId: CONDITION,
  question: 'Will it rain?',
  description: 'Rain falls.',
  resolutionSource: '',
  slug: 'will-it-rain',
  outcomes: '["Yes", "No"]',
  outcomePrices: '["0.065", "0.935"]',
  clobTokenIds: '["111", "222"]',
  active: true,
  closed: false,
  archived: false,
  acceptingOrders: true,
  enableOrderBook: true,
  createdAt: '2026-05-01T00:00:00.375208Z',
  startDate: '2026-05-02T00:00:00Z',
  acceptingOrdersTimestamp: '2026-05-03T00:00:00Z',
  endDate: '2026-08-31T00:00:00Z',
  volume: '10590001.951022005',
  volumeNum: 10590001.95,
  volume24hr: 1137484.0848760004,
  liquidity: '1194422.9263',
  groupItemTitle: ' Rain ',
  feesEnabled: false,
  events: [{ id: '9', slug: 'rain', title: 'Weather in May', tags: [{ label: 'Weather', slug: 'weather' }] }],
};
const closed = { ...open, closed: true, acceptingOrders: false, closedTime: '2026-06-24 00:00:16+00' };
const resolved = { ...closed, umaResolutionStatus: 'resolved', umaEndDate: '2026-06-24T01:00:00Z' };

function one(raw: unknown) {
  const batch = parseMarkets([raw], NOW);
  const [record] = batch.records;
  if (!record) throw new Error(`rejected: ${batch.rejected[0]?.reason} ${batch.rejected[0]?.detail}`);
  return { ...record, unknowns: batch.unknowns };
}

function rejectionReason(raw: unknown) {
  const { records, rejected } = parseMarkets([raw], NOW);
  expect(records).toEqual([]);
  return rejected[0]?.reason;
}

describe('parseMarkets', () => {
  it('reads every field of an open market', () => {
    expect(parseMarkets([open], NOW)).toEqual({
      rejected: [],
      unknowns: [],
      skipped: [],
      records: [
        {
          marketId: CONDITION,
          eventId: '9',
          eventTitle: 'Weather in May',
          eventUrl: 'https://polymarket.com/event/rain',
          siblingLabel: 'Rain',
          title: 'Will it rain?',
          description: 'Rain falls.',
          category: 'Weather',
          tags: ['weather'],
          status: 'open',
          outcomes: [
            { outcomeId: '111', label: 'Yes' },
            { outcomeId: '222', label: 'No' },
          ],
          createdAtMs: Date.UTC(2026, 4, 1, 0, 0, 0, 375),
          openAtMs: Date.UTC(2026, 4, 3),
          closeAtMs: Date.UTC(2026, 7, 31),
          resolutionCriteria: 'Rain falls.',
          url: 'https://polymarket.com/event/rain/will-it-rain',
          volume: '10590001.951022005',
          volume24h: '1137484.0848760004',
          liquidity: '1194422.9263',
          fees: { periods: [{ rule: { model: 'none' } }], isPresentOnly: true },
          hasBook: true,
        },
      ],
    });
  });

  it('has its source within the criteria and apart when the venue states one', () => {
    const source = 'https://example.com/rain';
    expect(one({ ...open, resolutionSource: source })).toMatchObject({
      resolutionCriteria: `Rain falls.\n${source}`,
      settlementSource: source,
    });
  });

  it.each([undefined, null, '', '  ', 'Will it rain?', 7, 'a\u0000b'])(
    'has no label when groupItemTitle is %j',
    (groupItemTitle) => {
      expect(one({ ...open, groupItemTitle })).not.toHaveProperty('siblingLabel');
    },
  );

  it.each([undefined, '', 7, 'a\ud800'])('has no event title when the event has the title %j', (title) => {
    const record = one({ ...open, events: [{ id: '9', title }] });
    expect(record).toMatchObject({ eventId: '9' });
    expect(record).not.toHaveProperty('eventTitle');
    expect(record).not.toHaveProperty('eventUrl');
  });

  it.each<[string, object, object]>([
    ['past its end date yet trading', { ...open, endDate: '2026-06-01T00:00:00Z' }, { status: 'open' }],
    ['proposed while it still trades', { ...open, umaResolutionStatus: 'proposed' }, { status: 'open' }],
    [
      'proposed after trading stopped',
      { ...open, acceptingOrders: false, umaResolutionStatus: 'proposed' },
      { status: 'closed' },
    ],
    ['disputed', { ...closed, umaResolutionStatus: 'disputed' }, { status: 'closed' }],
    [
      'resolved with a winner',
      { ...resolved, outcomePrices: '["0", "1"]' },
      { status: 'resolved', resolution: 'outcome', winningOutcomeId: '222' },
    ],
    [
      'closed at 1 and 0 while accepting orders, without a UMA status',
      { ...closed, acceptingOrders: true, outcomePrices: '["1", "0"]' },
      { status: 'resolved', resolution: 'outcome', winningOutcomeId: '111' },
    ],
    [
      'split in half by UMA',
      { ...resolved, outcomePrices: '["0.5", "0.5"]' },
      { status: 'resolved', resolution: 'void' },
    ],
    ['closed at all zeros', { ...closed, outcomePrices: '["0", "0"]' }, { status: 'resolved', resolution: 'void' }],
    ['closed in half without UMA', { ...closed, outcomePrices: '["0.5", "0.5"]' }, { status: 'closed' }],
    ['closed without prices', { ...closed, outcomePrices: undefined }, { status: 'closed' }],
    ['closed at odd prices', { ...closed, outcomePrices: '["0.58", "0.42"]' }, { status: 'closed' }],
    [
      'resolved by UMA at prices that are not final',
      { ...resolved, outcomePrices: '["0.9995", "0.0005"]' },
      { status: 'resolved' },
    ],
    ['archived', { ...open, archived: true }, { status: 'closed' }],
    ['not accepting orders', { ...open, acceptingOrders: false }, { status: 'halted' }],
    ['without its orderbook', { ...open, enableOrderBook: false }, { status: 'halted' }],
    [
      'not accepting orders before its start',
      { ...open, acceptingOrders: false, acceptingOrdersTimestamp: '2026-07-02T00:00:00Z' },
      { status: 'created' },
    ],
  ])('a market %s', (_, raw, expected) => {
    const market = one(raw);
    expect(market).toMatchObject(expected);
    if (!('resolution' in expected)) expect(market).not.toHaveProperty('resolution');
    if (!('winningOutcomeId' in expected)) expect(market).not.toHaveProperty('winningOutcomeId');
  });

  it.each<[string, object]>([
    ['archived', { archived: true }],
    ['inactive', { active: false }],
    ['not accepting orders', { acceptingOrders: false }],
    ['without its orderbook', { enableOrderBook: false }],
    ['closed', { closed: true }],
    ['archived while UMA decides', { archived: true, umaResolutionStatus: 'proposed' }],
  ])('parseMarkets reports no book when the market is %s', (_, change) => {
    expect(one(open).hasBook).toBe(true);
    expect(one({ ...open, ...change }).hasBook).toBe(false);
  });

  const paid = (first: string, second: string) => ({
    payouts: [
      { outcomeId: '111', payout: first },
      { outcomeId: '222', payout: second },
    ],
  });
  const atMs = Date.UTC(2026, 5, 24, 1);
  const rounds = (...words: string[]) => JSON.stringify(words);

  it.each<[string, object, object[] | undefined]>([
    ['no step of an open market', { ...open, umaResolutionStatuses: '[]' }, undefined],
    [
      'a proposal of the first round',
      { ...open, umaResolutionStatus: 'proposed', umaResolutionStatuses: rounds('proposed') },
      [{ state: 'proposed', round: 1 }],
    ],
    [
      'a proposal of the second round',
      { ...open, umaResolutionStatus: 'proposed', umaResolutionStatuses: rounds('proposed', 'disputed', 'proposed') },
      [
        { state: 'proposed', round: 1 },
        { state: 'disputed', round: 1 },
        { state: 'proposed', round: 2 },
      ],
    ],
    ['a proposal without a round', { ...open, umaResolutionStatus: 'proposed' }, [{ state: 'proposed' }]],
    [
      'a proposal without a round when the list has another type',
      { ...open, umaResolutionStatus: 'Proposed', umaResolutionStatuses: { last: 'proposed' } },
      [{ state: 'proposed' }],
    ],
    [
      'the dispute that the list lacks',
      { ...open, umaResolutionStatus: 'disputed', umaResolutionStatuses: rounds('proposed') },
      [
        { state: 'proposed', round: 1 },
        { state: 'disputed', round: 1 },
      ],
    ],
    [
      'no dispute that the present word does not confirm',
      { ...open, umaResolutionStatus: 'proposed', umaResolutionStatuses: rounds('proposed', 'disputed') },
      [{ state: 'proposed', round: 1 }],
    ],
    [
      'the last entry of the list when no word is present',
      { ...open, umaResolutionStatuses: rounds('proposed') },
      [{ state: 'proposed', round: 1 }],
    ],
    [
      'a dispute of a closed market with final prices when no word is present',
      {
        ...resolved,
        umaResolutionStatus: '',
        outcomePrices: '["1", "0"]',
        umaResolutionStatuses: rounds('proposed', 'disputed'),
      },
      [
        { state: 'proposed', round: 1 },
        { state: 'disputed', round: 1 },
      ],
    ],
    [
      'a result behind the last entry of the list',
      { ...resolved, outcomePrices: '["0", "1"]', umaResolutionStatuses: rounds('proposed') },
      [
        { state: 'proposed', round: 1 },
        { state: 'resolved', round: 1, ...paid('0', '1'), atMs },
      ],
    ],
    [
      'a result that the list names too',
      { ...resolved, outcomePrices: '["1", "0"]', umaResolutionStatuses: rounds('proposed', 'resolved') },
      [
        { state: 'proposed', round: 1 },
        { state: 'resolved', round: 1, ...paid('1', '0'), atMs },
      ],
    ],
    [
      'a split in half as a result',
      { ...resolved, outcomePrices: '["0.5", "0.5"]' },
      [{ state: 'resolved', ...paid('0.5', '0.5'), atMs }],
    ],
    [
      'a result without final prices',
      { ...resolved, outcomePrices: '["0.9995", "0.0005"]' },
      [{ state: 'resolved', reason: 'not_stated', atMs }],
    ],
    [
      'a result by prices alone, without a time',
      { ...closed, outcomePrices: '["1", "0"]' },
      [{ state: 'resolved', ...paid('1', '0') }],
    ],
    [
      'the end without a result at all zeros',
      { ...closed, outcomePrices: '["0", "0"]' },
      [{ state: 'voided', reason: 'not_stated' }],
    ],
    [
      'a word that is not known',
      { ...closed, umaResolutionStatus: 'Escalated', umaResolutionStatuses: rounds('proposed') },
      [
        { state: 'proposed', round: 1 },
        { state: 'unknown', facts: { rawState: 'Escalated' } },
      ],
    ],
  ])('names %s', (_, raw, steps) => {
    expect(one(raw).resolutionSteps).toEqual(steps);
  });

  it('sets payouts only when they are final', () => {
    const payouts = (raw: object) => one(raw).outcomes.map((outcome) => outcome.payout);
    expect(payouts({ ...resolved, outcomePrices: '["0", "1"]' })).toEqual(['0', '1']);
    expect(payouts({ ...resolved, outcomePrices: '["0.5", "0.5"]' })).toEqual(['0.5', '0.5']);
    expect(payouts({ ...closed, outcomePrices: '["0", "0"]' })).toEqual([undefined, undefined]);
    expect(payouts(open)).toEqual([undefined, undefined]);
  });

  it('reads the times of close and resolution', () => {
    const market = one({ ...resolved, outcomePrices: '["0", "1"]' });
    expect(market).toMatchObject({
      closeAtMs: Date.UTC(2026, 5, 24, 0, 0, 16),
      resolvedAtMs: Date.UTC(2026, 5, 24, 1),
      hasBook: false,
    });
    expect(one({ ...closed, outcomePrices: '["0.58", "0.42"]' })).not.toHaveProperty('resolvedAtMs');
  });

  it('maps an unknown state to the nearest safe one and reports it', () => {
    const market = one({ ...closed, umaResolutionStatus: 'escalated', outcomePrices: '["1", "0"]' });
    expect(market.status).toBe('closed');
    expect(market.unknowns).toEqual([{ field: 'umaResolutionStatus', value: 'escalated' }]);
    expect(one({ ...open, version: 'v9' }).unknowns).toEqual([{ field: 'version', value: 'v9' }]);
    expect(one({ ...open, createdAt: 'long ago' }).unknowns).toEqual([{ field: 'createdAt', value: 'long ago' }]);
  });

  it('uses position ids in protocol v2 only', () => {
    const ids = (raw: object) => one(raw).outcomes.map((outcome) => outcome.outcomeId);
    expect(ids({ ...open, version: 'v2', positionIds: ['333', '444'] })).toEqual(['333', '444']);
    expect(ids({ ...open, version: 'v1', positionIds: ['333', '444'] })).toEqual(['111', '222']);
    expect(rejectionReason({ ...open, version: 'v2' })).toBe('missing_field');
  });

  it('reads a market of the AMM era, without a book', () => {
    const market = one({ ...closed, clobTokenIds: undefined, enableOrderBook: undefined });
    expect(market.outcomes.map((outcome) => outcome.outcomeId)).toEqual([`${CONDITION}:0`, `${CONDITION}:1`]);
    expect(market.hasBook).toBe(false);
  });

  it.each<[string, object, string]>([
    ['without a condition id', { ...open, conditionId: undefined }, 'missing_field'],
    ['with an empty condition id', { ...open, conditionId: '' }, 'invalid_field'],
    ['without the closed flag', { ...open, closed: undefined }, 'missing_field'],
    ['with a flag of another type', { ...open, acceptingOrders: 'true' }, 'invalid_field'],
    ['without a title', { ...open, question: undefined }, 'missing_field'],
    ['with outcomes that are no JSON', { ...open, outcomes: '[Yes, No]' }, 'invalid_field'],
    ['without outcomes', { ...open, outcomes: '[]' }, 'invalid_field'],
    ['with fewer tokens than outcomes', { ...open, clobTokenIds: '["111"]' }, 'length_mismatch'],
    ['without tokens but with a book', { ...open, clobTokenIds: undefined }, 'missing_field'],
    ['with the same token twice', { ...open, clobTokenIds: '["111", "111"]' }, 'duplicate_outcome'],
    ['with a token id that is no number', { ...open, clobTokenIds: '["111", "0xab"]' }, 'invalid_field'],
    ['with U+0000 in its title', { ...open, question: 'a\u0000b' }, 'unstorable_text'],
    ['with a lone surrogate in a label', { ...open, outcomes: '["Yes", "\\ud800"]' }, 'unstorable_text'],
  ])('rejects a market %s', (_, raw, reason) => {
    expect(rejectionReason(raw)).toBe(reason);
  });

  it('rejects the second of two markets with one id, and keeps the neighbours', () => {
    const other = { ...open, conditionId: `${CONDITION}0`, clobTokenIds: '["5", "6"]' };
    const batch = parseMarkets([open, open, null, other], NOW);
    expect(batch.records.map((market) => market.marketId)).toEqual([CONDITION, `${CONDITION}0`]);
    expect(batch.rejected.map((rejected) => rejected.reason)).toEqual(['duplicate_record', 'not_an_object']);
    expect(batch.rejected[0]?.recordId).toBe(CONDITION);
  });

  it('drops invalid amounts', () => {
    const market = one({ ...open, volume: 'NaN', volumeNum: -3, volume24hr: null, liquidity: {}, liquidityNum: 5 });
    expect(market).not.toHaveProperty('volume');
    expect(market).not.toHaveProperty('volume24h');
    expect(market.liquidity).toBe('5');
  });
});
