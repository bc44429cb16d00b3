import { describe, expect, it } from 'vitest';
import type { MarketRecord } from '../../../../src/domain/markets/market.ts';
import type { ResolutionStep } from '../../../../src/domain/markets/resolution.ts';
import { VenueError } from '../../../../src/venues/errors.ts';
import { createResolutionReader } from '../../../../src/venues/polymarket/fetch-resolutions.ts';
import { readRecordedJson, venueDataFolder } from '../../../support/venue-data.ts';

const ID = `0x${'ab'.repeat(32)}`;
const TRANSACTION = `0x${'cd'.repeat(32)}`;
const NOW = Date.UTC(2026, 8, 29, 18);
const ONE = '1000000000000000000';
const HALF = '500000000000000000';

const proposed: ResolutionStep = { state: 'proposed', round: 1 };
const disputed: ResolutionStep = { state: 'disputed', round: 1 };
const reproposed: ResolutionStep = { state: 'proposed', round: 2 };

function market(steps: ResolutionStep[], marketId = ID): MarketRecord {
  const outcomes = ['1', '2'].map((outcomeId) => ({ outcomeId, label: outcomeId }));
  const texts = { title: 'Rain?', description: '', tags: [] };
  return { marketId, ...texts, status: 'closed', hasBook: false, outcomes, resolutionSteps: steps };
}

function row(more: object = {}): object {
  const prices = { proposed_price: ONE, reproposed_price: '69', price: '69' };
  const place = { transaction_hash: TRANSACTION, last_update_timestamp: String(NOW / 1000 - 60) };
  return { condition_id: ID, status: 'proposed', ...prices, ...place, ...more };
}

function paid(first: string, second: string) {
  return {
    payouts: [
      { outcomeId: '1', payout: first },
      { outcomeId: '2', payout: second },
    ],
  };
}

const present = { atMs: NOW - 60_000, facts: { transaction: TRANSACTION } };

/** A reader over answers that a test replaces. */
function reader() {
  const venue = { rows: [row()] as unknown[] | VenueError, asked: [] as (readonly string[])[], nowMs: NOW };
  const truncated: (string | undefined)[] = [];
  const read = createResolutionReader(
    {
      async listResolutions(conditionIds) {
        venue.asked.push(conditionIds);
        if (venue.rows instanceof VenueError) throw venue.rows;
        return venue.rows;
      },
    },
    { truncated: (_kind, detail) => truncated.push(detail) },
  );
  const context = { signal: new AbortController().signal, now: () => venue.nowMs };
  const steps = async (...given: ResolutionStep[]) => (await read([market(given)], context))[0]?.resolutionSteps;
  return { venue, truncated, steps, read: (records: MarketRecord[]) => read(records, context) };
}

describe('the reader of proposed results', () => {
  it.each<[string, object, ResolutionStep[], object[]]>([
    [
      'the proposed payouts, the transaction and the time',
      {},
      [proposed],
      [{ ...proposed, ...paid('1', '0'), ...present }],
    ],
    [
      'the payouts of each round, and the present of the last step',
      { status: 'reproposed', proposed_price: '0', reproposed_price: HALF },
      [proposed, disputed, reproposed],
      [{ ...proposed, ...paid('0', '1') }, disputed, { ...reproposed, ...paid('0.5', '0.5'), ...present }],
    ],
    [
      'the present of a dispute',
      { status: 'challenged' },
      [proposed, disputed],
      [
        { ...proposed, ...paid('1', '0') },
        { ...disputed, ...present },
      ],
    ],
    [
      'the later proposal when the round is not known',
      { reproposed_price: '0.5' },
      [{ state: 'proposed' }],
      [{ state: 'proposed', ...paid('0.5', '0.5'), ...present }],
    ],
    ['no payouts when the price is unset', { proposed_price: '69' }, [proposed], [{ ...proposed, ...present }]],
    [
      'the reason when the price is not known',
      { proposed_price: '300000000000000000' },
      [proposed],
      [{ ...proposed, reason: 'unknown_value', ...present }],
    ],
    [
      'a time in ISO format',
      { last_update_timestamp: '2026-09-29T17:59:00Z', transaction_hash: 7 },
      [proposed],
      [{ ...proposed, ...paid('1', '0'), atMs: NOW - 60_000 }],
    ],
    [
      'no time in the future, and none that it cannot read',
      { last_update_timestamp: '2026-10-29T17:59:00Z', transaction_hash: '0x12' },
      [proposed],
      [{ ...proposed, ...paid('1', '0') }],
    ],
    ['no present of another state', { status: 'resolved' }, [proposed], [{ ...proposed, ...paid('1', '0') }]],
    [
      'no present and no payouts of an earlier round',
      {},
      [proposed, disputed, reproposed],
      [{ ...proposed, ...paid('1', '0') }, disputed, reproposed],
    ],
    [
      'no present of an earlier dispute',
      { status: 'challenged', reproposed_price: HALF },
      [reproposed, { ...disputed, round: 2 }],
      [
        { ...reproposed, ...paid('0.5', '0.5') },
        { ...disputed, round: 2 },
      ],
    ],
    [
      'the present of a third round, which has the words of the second',
      { status: 'reproposed' },
      [{ ...proposed, round: 3 }],
      [{ ...proposed, round: 3, ...present }],
    ],
    ['nothing from a row without a status', { status: undefined }, [proposed], [proposed]],
  ])('adds %s', async (_what, more, given, expected) => {
    const { venue, steps } = reader();
    venue.rows = [row(more)];
    expect(await steps(...given)).toEqual(expected);
  });

  it('asks once per market and state, and adds the facts to every answer', async () => {
    const { venue, steps } = reader();
    const first = await steps(proposed);
    expect(await steps(proposed)).toEqual(first);
    expect(venue.asked).toHaveLength(1);
    venue.rows = [row({ status: 'challenged' })];
    await steps(proposed, disputed);
    expect(venue.asked).toHaveLength(2);
  });

  it('asks again when the market was open since', async () => {
    const { venue, steps } = reader();
    await steps(proposed);
    await steps();
    venue.rows = [row({ proposed_price: '0' })];
    expect(await steps(proposed)).toEqual([{ ...proposed, ...paid('0', '1'), ...present }]);
  });

  it('asks again when the row is of an earlier round', async () => {
    const { venue, steps } = reader();
    expect(await steps(proposed, disputed, reproposed)).toEqual([
      { ...proposed, ...paid('1', '0') },
      disputed,
      reproposed,
    ]);
    venue.rows = [row({ status: 'reproposed', reproposed_price: '0' })];
    expect((await steps(proposed, disputed, reproposed))?.at(-1)).toEqual({
      ...reproposed,
      ...paid('0', '1'),
      ...present,
    });
  });

  it('asks again when the row is of another state', async () => {
    const { venue, steps } = reader();
    venue.rows = [row({ status: 'posed' })];
    expect(await steps(proposed)).toEqual([{ ...proposed, ...paid('1', '0') }]);
    venue.rows = [row()];
    expect(await steps(proposed)).toEqual([{ ...proposed, ...paid('1', '0'), ...present }]);
  });

  it('asks for 20 markets at once, and for none without a pending result', async () => {
    const { venue, read } = reader();
    const ids = Array.from({ length: 25 }, (_, at) => `0x${String(at).padStart(64, '0')}`);
    await read([...ids.map((id) => market([proposed], id)), market([{ state: 'resolved' }]), market([])]);
    expect(venue.asked.map(({ length }) => length)).toEqual([20, 5]);
  });

  it('keeps the steps, reports the failure and pauses for a minute when the request fails', async () => {
    const { venue, truncated, steps } = reader();
    venue.rows = new VenueError('polymarket', 'http_status', 'HTTP 500', { retryable: true });
    expect(await steps(proposed)).toEqual([proposed]);
    expect(truncated).toEqual(['facts about proposed results: HTTP 500']);
    venue.rows = [row()];
    expect(await steps(proposed)).toEqual([proposed]);
    expect(venue.asked).toHaveLength(1);
    venue.nowMs += 60_000;
    expect((await steps(proposed))?.[0]).toMatchObject(paid('1', '0'));
  });
});

const folder = venueDataFolder('feeds/polymarket');

it.skipIf(folder === undefined)('the reader of proposed results reads the recorded rows', async () => {
  const { data } = readRecordedJson(`${folder}/data_v2_2026-09-29_resolutions_pending.json`) as {
    data: { condition_id: string }[];
  };
  const { venue, read } = reader();
  venue.rows = data;
  const [first, second] = data.map((each) => each.condition_id);
  const records = await read([
    market([proposed, disputed, reproposed, { ...disputed, round: 2 }], first),
    market([proposed], second),
  ]);
  expect(records.map((record) => record.resolutionSteps)).toEqual([
    [
      { ...proposed, ...paid('1', '0') },
      disputed,
      { ...reproposed, ...paid('0.5', '0.5') },
      {
        ...disputed,
        round: 2,
        atMs: 1_790_649_809_000,
        facts: { transaction: '0x11253feec1158557eff665f10d7936ba6c7e3658c79de461af5446861ca6fc54' },
      },
    ],
    [
      {
        ...proposed,
        ...paid('1', '0'),
        atMs: 1_790_704_227_000,
        facts: { transaction: '0x660975bf27fdce0efc650088488b9ed13e899815e5e0dafb6678eb2d9baa4e41' },
      },
    ],
  ]);
});
