import { describe, expect, it } from 'vitest';
import { parseMarkets } from '../../../../src/venues/kalshi/parse-market.ts';

function market(more: object = {}): object {
  return {
    ticker: 'KXA-1',
    event_ticker: 'KXA',
    title: 'Will it rain?',
    yes_sub_title: 'Rain',
    no_sub_title: 'Rain',
    market_type: 'binary',
    status: 'active',
    result: '',
    created_time: '2026-05-20T19:06:01.154369Z',
    open_time: '2026-05-20T20:00:00Z',
    close_time: '2026-09-21T23:30:00.5Z',
    rules_primary: 'If it rains.',
    rules_secondary: 'As measured.',
    volume_fp: '2985.50',
    volume_24h_fp: '3.14',
    event: {
      title: 'Weather today',
      category: 'Climate',
      series_ticker: 'KXRAIN',
      product_metadata: { scope: 'Day', flag: true },
    },
    ...more,
  };
}

function parseOne(more: object = {}) {
  const { records, rejected, unknowns } = parseMarkets([market(more)]);
  return { record: records[0], reason: rejected[0]?.reason, unknowns };
}

describe('a Kalshi market', () => {
  it.each([
    ['the category of its series', { category: 'Sports', categories: ['Sports'] }, 'Sports', ['Day']],
    [
      'further categories as tags',
      { category: 'Sports', categories: ['Politics', 'Sports', 7, ''] },
      'Sports',
      ['Politics', 'Day'],
    ],
    [
      'the first category of the list without the single one',
      { categories: ['Crypto', 'Financials'] },
      'Crypto',
      ['Financials', 'Day'],
    ],
    ['the category of its event without a readable list', { categories: 'Crypto' }, 'Climate', ['Day']],
    [
      'each tag once',
      { category: 'Sports', categories: ['Sports', 'Golf'], tags: ['Golf'] },
      'Sports',
      ['Golf', 'Day'],
    ],
  ])('has %s', (_what, series, category, tags) => {
    expect(parseOne({ series: { ticker: 'KXRAIN', ...series } }).record).toMatchObject({ category, tags });
  });

  it('becomes a record with both outcomes, its event, and exact amounts', () => {
    expect(parseOne().record).toEqual({
      marketId: 'KXA-1',
      eventId: 'KXA',
      eventTitle: 'Weather today',
      eventUrl: 'https://kalshi.com/markets/kxrain',
      siblingLabel: 'Rain',
      title: 'Will it rain?',
      description: 'If it rains.',
      category: 'Climate',
      tags: ['Day'],
      status: 'open',
      outcomes: [
        { outcomeId: 'KXA-1:yes', label: 'Rain' },
        { outcomeId: 'KXA-1:no', label: 'No' },
      ],
      createdAtMs: Date.UTC(2026, 4, 20, 19, 6, 1, 154),
      openAtMs: Date.UTC(2026, 4, 20, 20),
      closeAtMs: Date.UTC(2026, 8, 21, 23, 30, 0, 500),
      resolutionCriteria: 'If it rains.\nAs measured.',
      url: 'https://kalshi.com/markets/kxrain',
      volume: '2985.5',
      volume24h: '3.14',
      hasBook: true,
    });
  });

  it.each<[string, object, string | undefined]>([
    [
      'those of its event, a line each',
      { event: { settlement_sources: [{ name: 'Office', url: 'https://a.example' }, { name: 'Gauge' }] } },
      'Office (https://a.example)\nGauge',
    ],
    [
      'those of its series when the event has none',
      { series: { ticker: 'KXRAIN', settlement_sources: [{ name: 'Office', url: '' }] } },
      'Office',
    ],
    ['the readable ones', { event: { settlement_sources: [7, { name: 'a\u0000b' }, { name: 'Gauge' }] } }, 'Gauge'],
    ['none when the list is of another form', { event: { settlement_sources: 'Office' } }, undefined],
    ['none when both lists are empty or absent', { event: { settlement_sources: [] } }, undefined],
  ])('has as settlement source %s', (_name, more, source) => {
    expect(parseOne(more).record?.settlementSource).toBe(source);
  });

  it.each<[string, object, string | undefined]>([
    ['what YES stands for', {}, 'Rain'],
    ['the subtitle of the earlier shape', { yes_sub_title: undefined, subtitle: ' 40 mm or more ' }, '40 mm or more'],
    ['the subtitle when the newer field is empty', { yes_sub_title: '', subtitle: 'Rain' }, 'Rain'],
    ['none when it repeats the title', { yes_sub_title: 'Will it rain?' }, undefined],
    ['none when it names an outcome', { yes_sub_title: 'Yes' }, undefined],
    ['none when both are absent', { yes_sub_title: null }, undefined],
    ['none when Postgres cannot store it', { yes_sub_title: null, subtitle: 'a\u0000b' }, undefined],
  ])('has as sibling label %s', (_name, more, label) => {
    expect(parseOne(more).record?.siblingLabel).toBe(label);
  });

  it('has no event title when only the ticker of the event is known', () => {
    const { record } = parseOne({ event: undefined });
    expect(record).toMatchObject({ eventId: 'KXA' });
    expect(record).not.toHaveProperty('eventTitle');
  });

  it.each([
    ['initialized', 'created'],
    ['active', 'open'],
    ['inactive', 'halted'],
    ['closed', 'closed'],
    ['determined', 'resolved'],
    ['disputed', 'closed'],
    ['amended', 'resolved'],
    ['finalized', 'settled'],
  ])('of status %s is %s', (status, normalized) => {
    const { record, unknowns } = parseOne({ status });
    expect(record?.status).toBe(normalized);
    expect(unknowns).toEqual([]);
  });

  it('of an unknown status counts as closed, and the status is reported', () => {
    const { record, unknowns } = parseOne({ status: 'hibernating' });
    expect(record?.status).toBe('closed');
    expect(record?.resolutionSteps).toEqual([{ state: 'unknown', facts: { rawState: 'hibernating' } }]);
    expect(unknowns).toEqual([{ field: 'status', value: 'hibernating' }]);
  });

  const paid = (yes: string, no: string) => ({
    payouts: [
      { outcomeId: 'KXA-1:yes', payout: yes },
      { outcomeId: 'KXA-1:no', payout: no },
    ],
  });
  const atMs = Date.UTC(2026, 7, 8, 22, 57, 45);

  it.each<[string, object, object[] | undefined]>([
    ['no step', { status: 'closed', result: 'yes', expiration_value: '7' }, undefined],
    ['one step', { status: 'determined', result: 'yes' }, [{ state: 'resolved', ...paid('1', '0') }]],
    [
      'one step with other payouts',
      { status: 'amended', result: 'no', expiration_value: '7 mm' },
      [{ state: 'resolved', ...paid('0', '1'), facts: { observedValue: '7 mm' } }],
    ],
    [
      'the disputed result',
      { status: 'disputed', result: 'yes' },
      [{ state: 'resolved', ...paid('1', '0') }, { state: 'disputed' }],
    ],
    [
      'a disputed result that is not stated',
      { status: 'disputed', expiration_value: '7 mm' },
      [
        { state: 'resolved', reason: 'not_stated' },
        { state: 'disputed', facts: { observedValue: '7 mm' } },
      ],
    ],
    [
      'the settlement with its time',
      { status: 'finalized', result: 'no', expiration_value: '' },
      [
        { state: 'resolved', ...paid('0', '1') },
        { state: 'settled', ...paid('0', '1'), atMs },
      ],
    ],
    [
      'the exact fraction of a scalar settlement',
      { status: 'settled', result: 'scalar', market_type: 'scalar', settlement_value_dollars: '0.3333' },
      [
        { state: 'resolved', ...paid('0.3333', '0.6667') },
        { state: 'settled', ...paid('0.3333', '0.6667'), atMs },
      ],
    ],
    [
      'a void market with its payouts',
      { status: 'finalized', result: 'void', settlement_value_dollars: '0.42' },
      [{ state: 'voided', ...paid('0.42', '0.58'), atMs }],
    ],
    [
      'a void market without payouts',
      { status: 'finalized', result: 'void' },
      [{ state: 'voided', reason: 'not_stated', atMs }],
    ],
    [
      'a result that is not known',
      { status: 'finalized', result: 'maybe' },
      [
        { state: 'resolved', reason: 'unknown_value' },
        { state: 'settled', reason: 'unknown_value', atMs },
      ],
    ],
  ])('names %s', (_what, more, steps) => {
    const { record } = parseOne({ settlement_ts: '2026-08-08T22:57:45Z', ...more });
    expect(record?.resolutionSteps).toEqual(steps);
  });

  it('has no winner and no payouts when its result is disputed', () => {
    const { record } = parseOne({ status: 'disputed', result: 'yes', settlement_value_dollars: '1.0000' });
    expect(record?.outcomes.map((each) => each.payout)).toEqual([undefined, undefined]);
    expect(record).not.toHaveProperty('resolution');
    expect(record).not.toHaveProperty('winningOutcomeId');
  });

  it.each<[string, object, string | undefined]>([
    ['a bound', { strike_type: 'greater', floor_strike: 3.5 }, 'greater 3.5'],
    ['two bounds', { strike_type: 'between', floor_strike: '10', cap_strike: 20 }, 'between 10 20'],
    ['a bound of zero without a type', { floor_strike: 0 }, '0'],
    ['no bound', { strike_type: 'structured', custom_strike: {} }, undefined],
    [
      'a custom strike',
      { strike_type: 'custom', custom_strike: { Holder: 'Petr Pavel' } },
      'custom {"Holder":"Petr Pavel"}',
    ],
    [
      'several keys in any order',
      { strike_type: 'structured', custom_strike: { team: ['b', 'a'], city: 7 } },
      'structured {"city":7,"team":["b","a"]}',
    ],
    ['a custom strike beside a bound', { floor_strike: 2, custom_strike: { team: 'a' } }, '2 {"team":"a"}'],
    ['a custom strike of another form', { strike_type: 'custom', custom_strike: 'a' }, undefined],
    ['a custom strike that is too long', { custom_strike: { legs: 'x'.repeat(1_000) } }, undefined],
  ])('states the strike of a result with %s', (_name, fields, strike) => {
    const { record } = parseOne({ status: 'determined', result: 'yes', expiration_value: '4', ...fields });
    const facts = { observedValue: '4', ...(strike !== undefined && { strike }) };
    expect(record?.resolutionSteps?.at(-1)?.facts).toEqual(facts);
  });

  it.each<[string, unknown, number | undefined]>([
    ['the time of the last change', '2026-08-08T22:57:45.5Z', Date.UTC(2026, 7, 8, 22, 57, 45, 500)],
    ['none in the future', '2026-08-10T00:00:00Z', undefined],
    ['none of another form', 7, undefined],
  ])('has as time of its record %s', (_what, updated_time, expected) => {
    const { records } = parseMarkets([market({ updated_time })], Date.UTC(2026, 7, 9));
    expect(records[0]?.statedAtMs).toBe(expected);
  });

  it('has no observed value when Postgres cannot store it', () => {
    const { record } = parseOne({ status: 'determined', result: 'yes', expiration_value: 'a\u0000b' });
    expect(record?.resolutionSteps?.[0]).not.toHaveProperty('facts');
  });

  it.each([
    ['yes', '1.0000', 'outcome', 'KXA-1:yes', ['1', '0']],
    ['no', '0.0000', 'outcome', 'KXA-1:no', ['0', '1']],
    ['yes', undefined, 'outcome', 'KXA-1:yes', ['1', '0']],
    ['', '1.0000', 'outcome', 'KXA-1:yes', ['1', '0']],
    ['scalar', '0.3700', 'void', undefined, ['0.37', '0.63']],
    ['', '0.5000', 'void', undefined, ['0.5', '0.5']],
    ['void', undefined, 'void', undefined, [undefined, undefined]],
    ['', undefined, undefined, undefined, [undefined, undefined]],
  ])('finalized with result %j and value %s is %s of %s', (result, value, resolution, winner, payouts) => {
    const { record } = parseOne({
      status: 'finalized',
      result,
      settlement_value_dollars: value,
      settlement_ts: '2026-08-08T22:57:45.764968Z',
    });
    expect(record?.resolution).toBe(resolution);
    expect(record?.winningOutcomeId).toBe(winner);
    expect(record?.outcomes.map((each) => each.payout)).toEqual(payouts);
    expect(record?.resolvedAtMs).toBe(Date.UTC(2026, 7, 8, 22, 57, 45, 764));
    expect(record?.hasBook).toBe(false);
  });

  it('of the scalar type resolves to a fraction without a winner', () => {
    const scalar = { market_type: 'scalar', status: 'finalized', result: 'scalar', settlement_value_dollars: '0.2500' };
    const { record } = parseOne(scalar);
    expect(record).toMatchObject({ resolution: 'outcome', outcomes: [{ payout: '0.25' }, { payout: '0.75' }] });
    expect(record?.winningOutcomeId).toBeUndefined();
  });

  it('names the new winner when it is amended', () => {
    expect(parseOne({ status: 'determined', result: 'yes' }).record?.winningOutcomeId).toBe('KXA-1:yes');
    expect(parseOne({ status: 'amended', result: 'no' }).record?.winningOutcomeId).toBe('KXA-1:no');
  });

  it('has no result before determination', () => {
    const { record } = parseOne({ status: 'closed', result: 'yes', settlement_ts: '2026-08-08T22:57:45Z' });
    expect(record?.resolution).toBeUndefined();
    expect(record?.resolvedAtMs).toBeUndefined();
  });

  it('takes the title of its event and the label of YES when it has no title', () => {
    expect(parseOne({ title: '', event: { title: 'Weather' } }).record?.title).toBe('Weather: Rain');
    expect(parseOne({ title: null, event: undefined, yes_sub_title: '' }).reason).toBe('missing_field');
  });

  it("has no creation time at Go's zero time, and reports invalid times", () => {
    const { record, unknowns } = parseOne({ created_time: '0001-01-01T00:00:00Z', open_time: 'soon' });
    expect(record?.createdAtMs).toBeUndefined();
    expect(unknowns).toEqual([{ field: 'open_time', value: 'soon' }]);
  });

  it('is rejected when its payout, its ticker or its status is invalid', () => {
    expect(parseOne({ status: 'finalized', settlement_value_dollars: '100.0' }).reason).toBe('price_out_of_range');
    expect(parseOne({ ticker: 'A,B' }).reason).toBe('invalid_field');
    expect(parseOne({ ticker: 'A:yes' }).reason).toBe('invalid_field');
    expect(parseOne({ status: undefined }).reason).toBe('missing_field');
  });
});
