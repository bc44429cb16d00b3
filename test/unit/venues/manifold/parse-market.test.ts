import { describe, expect, it } from 'vitest';
import { parseMarkets } from '../../../../src/venues/manifold/parse-market.ts';

const NOW = 1_790_000_000_000;

function binary(more: object = {}): object {
  return {
    id: 'aB3',
    question: 'Will it rain?',
    outcomeType: 'BINARY',
    mechanism: 'cpmm-1',
    isResolved: false,
    createdTime: NOW - 1_000,
    closeTime: NOW + 1_000,
    volume: 205.5,
    volume24Hours: 100,
    totalLiquidity: 100,
    url: 'https://manifold.markets/me/will-it-rain',
    token: 'MANA',
    ...more,
  };
}

function multiple(more: object = {}): object {
  return binary({
    id: 'multi',
    outcomeType: 'MULTIPLE_CHOICE',
    mechanism: 'cpmm-multi-1',
    answers: [
      { id: 'a1', text: 'Red', probability: 0.5 },
      { id: 'a2', text: 'Blue', probability: 0.3 },
      { id: 'a3', text: 'Green', probability: 0.2 },
    ],
    ...more,
  });
}

function one(row: unknown) {
  const batch = parseMarkets([row], NOW);
  expect(batch.rejected).toEqual([]);
  const [record] = batch.records;
  if (!record) throw new Error(`no record: ${batch.skipped.join()}`);
  return record;
}

function reasonOf(row: unknown): string | undefined {
  return parseMarkets([row], NOW).rejected[0]?.reason;
}

describe('a market of a listing', () => {
  it('is a summary, because listings have no description, and a page has one, even if empty', () => {
    expect(one(binary())).toMatchObject({ isSummary: true, description: '', tags: [] });
    for (const more of [{ textDescription: '' }, { description: 'Old text.' }, { textDescription: 'How.' }]) {
      expect(one(binary(more)).isSummary).toBeUndefined();
    }
    expect(one(multiple({ textDescription: '' })).isSummary).toBeUndefined();
  });
});

describe('a binary market', () => {
  it('has every field', () => {
    expect(
      one(binary({ textDescription: 'How.', description: { type: 'doc' }, groupSlugs: ['weather', 'fun'] })),
    ).toEqual({
      marketId: 'aB3',
      title: 'Will it rain?',
      description: 'How.',
      resolutionCriteria: 'How.',
      category: 'weather',
      tags: ['weather', 'fun'],
      status: 'open',
      outcomes: [
        { outcomeId: 'aB3:YES', label: 'Yes' },
        { outcomeId: 'aB3:NO', label: 'No' },
      ],
      createdAtMs: NOW - 1_000,
      openAtMs: NOW - 1_000,
      closeAtMs: NOW + 1_000,
      volume: '205.5',
      volume24h: '100',
      liquidity: '100',
      fees: { periods: [{ rule: { model: 'none' } }], isPresentOnly: true },
      url: 'https://manifold.markets/me/will-it-rain',
      hasBook: false,
    });
  });

  it('is closed after its close, and open without a close', () => {
    expect(one(binary({ closeTime: NOW })).status).toBe('closed');
    expect(one(binary({ closeTime: undefined })).status).toBe('open');
  });

  it.each([
    ['YES', ['1', '0'], 'aB3:YES'],
    ['NO', ['0', '1'], 'aB3:NO'],
  ])('resolved %s pays its side', (resolution, payouts, winner) => {
    const record = one(binary({ isResolved: true, resolution, resolutionTime: NOW - 5 }));
    expect(record).toMatchObject({ status: 'settled', resolution: 'outcome', resolvedAtMs: NOW - 5 });
    expect(record.outcomes.map((each) => each.payout)).toEqual(payouts);
    expect(record.winningOutcomeId).toBe(winner);
  });

  it('resolved to a probability pays it exactly, without a winner', () => {
    const record = one(binary({ isResolved: true, resolution: 'MKT', resolutionProbability: 0.20000000000000004 }));
    expect(record).toMatchObject({ status: 'settled', resolution: 'outcome' });
    expect(record.outcomes.map((each) => each.payout)).toEqual(['0.20000000000000004', '0.79999999999999996']);
    expect(record.winningOutcomeId).toBeUndefined();
    const untold = one(binary({ isResolved: true, resolution: 'MKT' }));
    expect(untold.outcomes.map((each) => each.payout)).toEqual([undefined, undefined]);
  });

  it('is void when cancelled', () => {
    const record = one(binary({ isResolved: true, resolution: 'CANCEL' }));
    expect(record).toMatchObject({ status: 'settled', resolution: 'void' });
    expect(record.outcomes.every((each) => each.payout === undefined)).toBe(true);
  });

  it('is closed without an outcome when its resolution is unknown, which is reported', () => {
    const batch = parseMarkets([binary({ isResolved: true, resolution: 'MAYBE' })], NOW);
    expect(batch.records[0]).toMatchObject({
      status: 'closed',
      resolutionSteps: [{ state: 'unknown', facts: { rawState: 'MAYBE' } }],
    });
    expect(batch.records[0]?.resolution).toBeUndefined();
    expect(batch.unknowns).toEqual([{ field: 'resolution', value: 'MAYBE' }]);
  });

  it.each<[string, object, object[] | undefined]>([
    ['no step before its result', { isResolved: false, resolution: 'YES' }, undefined],
    [
      'the payouts of a probability',
      { resolution: 'MKT', resolutionProbability: 0.37 },
      [
        {
          state: 'settled',
          payouts: [
            { outcomeId: 'aB3:YES', payout: '0.37' },
            { outcomeId: 'aB3:NO', payout: '0.63' },
          ],
          atMs: NOW - 5,
        },
      ],
    ],
    [
      'no payouts without the probability',
      { resolution: 'MKT' },
      [{ state: 'settled', reason: 'not_stated', atMs: NOW - 5 }],
    ],
    [
      'the refund of a cancelled market',
      { resolution: 'CANCEL' },
      [{ state: 'voided', reason: 'refund', atMs: NOW - 5 }],
    ],
  ])('names %s', (_what, more, steps) => {
    const record = one(binary({ isResolved: true, resolutionTime: NOW - 5, ...more }));
    expect(record.resolutionSteps).toEqual(steps);
  });

  it('has no resolution after it is unresolved again', () => {
    const record = one(binary({ isResolved: false, resolution: 'YES', resolutionTime: NOW }));
    expect(record.status).toBe('open');
    expect(record.resolvedAtMs).toBeUndefined();
  });
});

describe('multiple-choice markets', () => {
  it('have an outcome per answer and are their own event', () => {
    const record = one(multiple());
    // The market is the event of its answers, and has no sibling.
    expect(record).toMatchObject({ eventId: 'multi', eventTitle: 'Will it rain?', eventUrl: record.url });
    expect(record).not.toHaveProperty('siblingLabel');
    expect(record.outcomes).toEqual([
      { outcomeId: 'multi:a1', label: 'Red' },
      { outcomeId: 'multi:a2', label: 'Blue' },
      { outcomeId: 'multi:a3', label: 'Green' },
    ]);
  });

  it('pay the answer to which they resolve', () => {
    const record = one(multiple({ isResolved: true, resolution: 'a2' }));
    expect(record.outcomes.map((each) => each.payout)).toEqual(['0', '1', '0']);
    expect(record.winningOutcomeId).toBe('multi:a2');
  });

  it('pay each answer by its own resolution when they resolve answer by answer', () => {
    const answers = [
      { id: 'a1', text: 'Red', resolution: 'YES' },
      { id: 'a2', text: 'Blue', resolution: 'MKT', resolutionProbability: 0.25 },
      { id: 'a3', text: 'Green', resolution: 'NO' },
      { id: 'a4', text: 'Grey', resolution: 'CANCEL' },
    ];
    const record = one(multiple({ isResolved: true, resolution: 'MKT', answers }));
    expect(record.outcomes.map((each) => each.payout)).toEqual(['1', '0.25', '0', undefined]);
    const paid = [['a1', '1'] as const, ['a2', '0.25'] as const, ['a3', '0'] as const];
    expect(record.resolutionSteps).toEqual([
      { state: 'settled', payouts: paid.map(([id, payout]) => ({ outcomeId: `multi:${id}`, payout })) },
    ]);
    expect(record.winningOutcomeId).toBeUndefined();
  });

  it('are skipped without answers, and rejected with an empty list or duplicate answers', () => {
    expect(parseMarkets([multiple({ answers: undefined })], NOW)).toMatchObject({
      records: [],
      rejected: [],
      skipped: ['needs_answers'],
    });
    expect(reasonOf(multiple({ answers: [] }))).toBe('invalid_field');
    const twice = { id: 'a1', text: 'Red' };
    expect(reasonOf(multiple({ answers: [twice, twice] }))).toBe('duplicate_outcome');
  });
});

describe('parseMarkets', () => {
  it.each([
    [{ outcomeType: 'POLL', mechanism: 'none' }, 'outcomeType', 'POLL'],
    [{ outcomeType: 'PSEUDO_NUMERIC' }, 'outcomeType', 'PSEUDO_NUMERIC'],
    [{ mechanism: 'dpm-2' }, 'mechanism', 'BINARY dpm-2'],
    [{ token: 'CASH' }, 'token', 'CASH'],
  ])('skips and reports %o', (more, field, value) => {
    const batch = parseMarkets([binary(more)], NOW);
    expect(batch).toEqual({ records: [], rejected: [], unknowns: [{ field, value }], skipped: [field] });
  });

  it.each([
    ['an id with a colon', { id: 'a:b' }, 'invalid_field'],
    ['no id', { id: undefined }, 'missing_field'],
    ['a flag of another type', { isResolved: 'false' }, 'invalid_field'],
    ['a close of another type', { closeTime: 'soon' }, 'invalid_field'],
    ['a close before all time', { closeTime: -5 }, 'timestamp_out_of_range'],
    ['a payout above 1', { isResolved: true, resolution: 'MKT', resolutionProbability: 1.5 }, 'price_out_of_range'],
    ['a text that cannot be stored', { question: 'a\u0000b' }, 'unstorable_text'],
  ])('rejects %s', (_, more, reason) => {
    expect(reasonOf(binary(more))).toBe(reason);
  });
});

describe('the time of a record', () => {
  it.each<[string, unknown, number | undefined]>([
    ['that of the last change', NOW - 5, NOW - 5],
    ['absent when it lies in the future', NOW + 86_400_000, undefined],
    ['absent when it is no number', 'soon', undefined],
  ])('is %s', (_what, lastUpdatedTime, expected) => {
    expect(parseMarkets([binary({ lastUpdatedTime })], NOW).records[0]?.statedAtMs).toBe(expected);
  });
});
