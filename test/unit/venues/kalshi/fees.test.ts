import { describe, expect, it } from 'vitest';
import { feePeriodAt } from '../../../../src/domain/markets/fee.ts';
import { VenueError } from '../../../../src/venues/errors.ts';
import type { ListAnswer } from '../../../../src/venues/kalshi/client.ts';
import { createFeeChangeDirectory } from '../../../../src/venues/kalshi/fee-changes.ts';
import { parseMarkets } from '../../../../src/venues/kalshi/parse-market.ts';

const NOW = Date.UTC(2026, 10, 27);
const MINUTE = 60_000;
const at = (minutes: number) => new Date(NOW + minutes * MINUTE).toISOString();

const row = (over: { series?: object; event?: object; market?: object } = {}) => ({
  ticker: 'M',
  event_ticker: 'E',
  title: 'A market',
  status: 'active',
  event: { event_ticker: 'E', series_ticker: 'S', title: 'An event', ...over.event },
  series: { ticker: 'S', fee_type: 'quadratic', fee_multiplier: 1, ...over.series },
  ...over.market,
});

function setup() {
  const venue = { ofSeries: [] as unknown[], ofEvents: [] as unknown[], fault: undefined as VenueError | undefined };
  const calls: string[] = [];
  const failures: string[] = [];
  const answer = <T>(name: string, value: () => T): Promise<T> => {
    calls.push(name);
    return venue.fault ? Promise.reject(venue.fault) : Promise.resolve(value());
  };
  const directory = createFeeChangeDirectory(
    {
      listSeriesFeeChanges: () => answer('series', () => venue.ofSeries),
      listEventFeeChanges: () => answer('events', (): ListAnswer => ({ rows: venue.ofEvents })),
    },
    (detail) => failures.push(detail),
  );
  const statement = async (over: Parameters<typeof row>[0] = {}, nowMs = NOW) => {
    const rows = await directory.complete([row(over)], nowMs, AbortSignal.timeout(60_000));
    return parseMarkets(rows, nowMs).records[0]?.fees;
  };
  /** `taker maker` of the rule at a moment. */
  const ratesAt = async (minutes: number, over: Parameters<typeof row>[0] = {}) => {
    const stated = await statement(over);
    const rule = stated && feePeriodAt(stated, NOW + minutes * MINUTE)?.rule;
    return rule?.model === 'price_curve' ? `${rule.takerRate} ${rule.makerRate}` : rule;
  };
  return { venue, calls, failures, statement, ratesAt };
}

describe('the fee of a market of Kalshi', () => {
  it('is that of its series', async () => {
    const { ratesAt } = setup();
    expect(await ratesAt(0)).toBe('0.07 0');
    expect(await ratesAt(0, { series: { fee_type: 'quadratic_with_maker_fees', fee_multiplier: 0.5 } })).toBe(
      '0.035 0.00875',
    );
    expect(await ratesAt(0, { series: { fee_type: 'quadratic_with_combo_maker_fees' } })).toBe('0.07 0.035');
    expect(await ratesAt(0, { series: { fee_multiplier: 0 } })).toBe('0 0');
  });

  it('takes each value from the event when the event replaces it', async () => {
    const { ratesAt } = setup();
    const series = { fee_type: 'quadratic_with_maker_fees', fee_multiplier: 0.5 };
    expect(await ratesAt(0, { series, event: { fee_multiplier_override: 1 } })).toBe('0.07 0.0175');
    expect(await ratesAt(0, { series, event: { fee_type_override: 'quadratic' } })).toBe('0.035 0');
  });

  it('is not known for a type without a published formula', async () => {
    const { statement } = setup();
    expect(await statement({ series: { fee_type: 'flat' } })).toEqual({
      periods: [{ rule: null }],
      reason: 'unknown_rule',
      raw: 'flat',
    });
    expect(await statement({ series: { fee_type: null } })).toEqual({
      periods: [{ rule: null }],
      reason: 'not_stated',
    });
    expect(await statement({ series: { fee_multiplier: -1 } })).toMatchObject({ reason: 'unknown_rule' });
  });

  it('changes at the announced times, of the series and of the event', async () => {
    const { venue, ratesAt } = setup();
    venue.ofSeries = [{ series_ticker: 'S', fee_type: 'quadratic', fee_multiplier: 2, scheduled_ts: at(60) }];
    venue.ofEvents = [
      { event_ticker: 'E', fee_type_override: null, fee_multiplier_override: 0.5, scheduled_ts: at(30) },
      { event_ticker: 'E', fee_type_override: null, fee_multiplier_override: null, scheduled_ts: at(90) },
      { event_ticker: 'OTHER', fee_type_override: 'flat', fee_multiplier_override: null, scheduled_ts: at(10) },
    ];
    expect(await Promise.all([29, 30, 60, 89, 90].map((minutes) => ratesAt(minutes)))).toEqual([
      '0.07 0',
      '0.035 0',
      '0.035 0',
      '0.035 0',
      '0.14 0',
    ]);
  });

  it('is not known while a waiver lasts, whose effect the venue does not state', async () => {
    const { ratesAt } = setup();
    const market = { fee_waiver_expiration_time: at(15) };
    expect(await ratesAt(14, { market })).toBeNull();
    expect(await ratesAt(15, { market })).toBe('0.07 0');
  });

  it('is absent while the series is not known', () => {
    const { series: _, ...unread } = row();
    expect(parseMarkets([unread], NOW).records[0]?.fees).toBeUndefined();
  });
});

describe('the directory of changes of fees', () => {
  it('reads the announced changes once in half an hour', async () => {
    const { calls, statement } = setup();
    await Promise.all([statement(), statement()]);
    await statement({}, NOW + 29 * MINUTE);
    expect(calls).toEqual(['series', 'events']);
    await statement({}, NOW + 30 * MINUTE);
    expect(calls).toHaveLength(4);
  });

  it('says that changes may be missing when they could not be read', async () => {
    const { venue, failures, statement } = setup();
    venue.fault = new VenueError('kalshi', 'http_status', 'HTTP 500', { retryable: true, statusCode: 500 });
    expect(await statement()).toMatchObject({ isPresentOnly: true });
    expect(failures).toEqual(['changes of fees: HTTP 500']);
    venue.fault = undefined;
    expect(await statement({}, NOW + 5 * MINUTE)).not.toHaveProperty('isPresentOnly');
  });

  it('keeps known changes for a failed read, and drops them when they are old', async () => {
    const { venue, statement } = setup();
    venue.ofSeries = [{ series_ticker: 'S', fee_type: 'quadratic', fee_multiplier: 2, scheduled_ts: at(600) }];
    expect((await statement())?.periods).toHaveLength(2);
    venue.fault = new VenueError('kalshi', 'http_status', 'HTTP 500', { retryable: true, statusCode: 500 });
    expect((await statement({}, NOW + 31 * MINUTE))?.periods).toHaveLength(2);
    expect(await statement({}, NOW + 90 * MINUTE)).toMatchObject({ isPresentOnly: true, periods: [{}] });
  });

  it('does not take a list with an unreadable change for a complete one', async () => {
    const { venue, failures, statement } = setup();
    venue.ofSeries = [{ series_ticker: 'S', fee_type: 'quadratic', fee_multiplier: 2, scheduled_ts: 'soon' }];
    expect(await statement()).toMatchObject({ isPresentOnly: true });
    expect(failures).toEqual(['changes of fees: a change of a fee is not readable']);
  });
});
