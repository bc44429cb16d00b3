import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addDecimals, compareDecimals, ZERO } from '../../../../src/domain/values/decimal.ts';
import { isStorableText } from '../../../../src/domain/values/text.ts';
import { parseActivity } from '../../../../src/venues/polymarket/wallet-activity.ts';
import { parsePositions } from '../../../../src/venues/polymarket/wallet-positions.ts';
import { inVersion2 } from '../../../support/data-api.ts';
import { readRecordedJson, venueDataFolder } from '../../../support/venue-data.ts';

const NOW = Date.UTC(2026, 8, 9);
const MARKET = `0x${'c'.repeat(64)}`;
const V2 = {
  proxy_wallet: '0x7c3db723f1d4d8cb9c550095203b686cb11e5c6b',
  timestamp: 1_788_886_609,
  condition_id: MARKET,
  type: 'TRADE',
  size: 14.285715,
  usdc_size: 13.285715,
  transaction_hash: '0xA661',
  price: 0.9300000035,
  token_id: '98255',
  side: 'BUY',
  outcome_index: 0,
  outcome: 'Yes',
};
/** The placeholder values of rows that are not trades. */
const NO_TRADE = { condition_id: '', token_id: '', side: '', outcome: '', outcome_index: 999, price: 0 };

const ids = (rows: readonly unknown[]) => parseActivity(rows, NOW).records.map(({ transactionId }) => transactionId);

describe('a row of activity', () => {
  it('is one transaction, under the same id as from version 1 of the API', () => {
    const { records, rejected, unknowns } = parseActivity([V2], NOW);
    expect([rejected, unknowns]).toEqual([[], []]);
    expect(records).toEqual([
      {
        transactionId: '0xa661:a28c20490c6ba780',
        type: 'trade',
        status: 'confirmed',
        atMs: 1_788_886_609_000,
        marketId: MARKET,
        side: 'buy',
        size: '14.285715',
        price: '0.9300000035',
        value: '13.285715',
        transfers: [
          { tokenMint: '98255', tokenSymbol: 'Yes', change: '14.285715' },
          { tokenMint: 'pUSD', tokenSymbol: 'pUSD', change: '-13.285715' },
        ],
      },
    ]);
  });

  it.each([
    [{ side: 'SELL' }, ['-14.285715 98255', '13.285715 pUSD']],
    [{ ...NO_TRADE, type: 'SPLIT' }, ['-13.285715 pUSD']],
    [{ ...NO_TRADE, type: 'MERGE', token_id: '98255' }, ['-14.285715 98255', '13.285715 pUSD']],
    [{ ...NO_TRADE, type: 'REDEEM', condition_id: MARKET }, ['13.285715 pUSD']],
    [{ ...NO_TRADE, type: 'REDEEM', usdc_size: 0 }, []],
    [{ ...NO_TRADE, type: 'CONVERSION' }, []],
    [{ ...NO_TRADE, type: 'MIGRATION' }, []],
    ...['REWARD', 'YIELD', 'MAKER_REBATE', 'TAKER_REBATE', 'REFERRAL_REWARD', 'DEPOSIT'].map(
      (type) => [{ ...NO_TRADE, type }, ['13.285715 pUSD']] as const,
    ),
    [{ ...NO_TRADE, type: 'WITHDRAWAL' }, ['-13.285715 pUSD']],
    [{ ...NO_TRADE, type: 'TIP', side: 'IN' }, ['13.285715 pUSD']],
    [{ ...NO_TRADE, type: 'TIP', side: 'OUT' }, ['-13.285715 pUSD']],
  ] as const)('%j moves %j', (change, moves) => {
    const { records, rejected, unknowns } = parseActivity([{ ...V2, ...change }], NOW);
    expect([rejected, unknowns]).toEqual([[], []]);
    const [row] = records;
    expect(row?.transfers.map(({ tokenMint, change: by }) => `${by} ${tokenMint}`)).toEqual(moves);
    expect(row?.marketId).toBe('condition_id' in change && change.condition_id === '' ? undefined : MARKET);
  });

  it('of an unknown type or side has no transfers, and is reported', () => {
    const rows = [
      { ...V2, ...NO_TRADE, type: 'AIRDROP' },
      { ...V2, side: 'HOLD' },
    ];
    const { records, unknowns } = parseActivity(rows, NOW);
    expect(records.map(({ type, side, transfers }) => [type, side, transfers])).toEqual([
      ['airdrop', undefined, []],
      ['trade', undefined, []],
    ]);
    expect(unknowns).toEqual([
      { field: 'activity type', value: 'AIRDROP' },
      { field: 'activity side', value: 'HOLD' },
    ]);
  });

  it('has an id by its number among equal rows, and by its content among rows of one transaction', () => {
    const rows = [V2, V2, { ...V2, size: 1 }, { ...V2, side: 'SELL' }, { ...V2, token_id: '1' }, V2];
    expect(new Set(ids(rows)).size).toBe(rows.length);
    expect(ids([...rows].reverse()).sort()).toEqual(ids(rows).sort());
    expect(ids([V2, V2])).toEqual(ids(rows).slice(0, 2));
  });

  it.each([
    [{ transaction_hash: undefined }, 'missing_field'],
    [{ type: '' }, 'invalid_field'],
    [{ timestamp: 1.5 }, 'invalid_field'],
    [{ timestamp: NOW / 1000 + 301 }, 'timestamp_in_future'],
    [{ size: -1 }, 'size_not_positive'],
    [{ size: 0 }, 'size_not_positive'],
    [{ size: '1e30' }, 'size_out_of_range'],
    [{ usdc_size: 'NaN' }, 'invalid_field'],
    [{ price: 1.01 }, 'price_out_of_range'],
    [{ token_id: '' }, 'missing_field'],
    [{ token_id: '\u0000' }, 'unstorable_text'],
    [{ outcome: '\ud800' }, 'unstorable_text'],
  ])('with %j is rejected as %s, without its neighbours', (change, reason) => {
    const { records, rejected } = parseActivity([V2, { ...V2, ...change }, { ...V2, size: 2 }], NOW);
    expect(records).toHaveLength(2);
    expect(rejected).toMatchObject([{ kind: 'wallets', reason }]);
  });
});

describe('a position', () => {
  it('is a number of tokens', () => {
    const row = { token_id: '9', condition_id: MARKET, current_size: 400_000.0, current_value: 1, outcome: 'No' };
    const records = [{ tokenMint: '9', amount: '400000', tokenSymbol: 'No', marketId: MARKET }];
    expect(parsePositions([row])).toEqual({ records, rejected: [] });
  });

  it('listed twice is one position, and rejected when the amounts differ', () => {
    const row = { token_id: '9', current_size: 5 };
    const other = { token_id: '8', current_size: 1 };
    expect(parsePositions([row, other, row]).records).toHaveLength(2);
    const torn = parsePositions([row, other, { ...row, current_size: 6 }]);
    expect(torn.records).toMatchObject([{ tokenMint: '8' }]);
    expect(torn.rejected).toMatchObject([{ recordId: '9', reason: 'conflicting_rows' }]);
  });
});

const folder = venueDataFolder('polymarket');
describe.skipIf(folder === undefined)('recorded wallets', () => {
  const read = (file: string) => readRecordedJson(`${folder}/${file}`) as Record<string, unknown>[];
  const activity = () => read('data_api_v2_2026-09/activity.json');
  const trades = (name: string) => read(`wallet_trades_2026-01/${name}.json`).map(asActivity);
  /** A trade is the activity row without these two fields. */
  const asActivity = (row: Record<string, unknown>) => ({
    ...inVersion2(row),
    type: 'TRADE',
    usdc_size: Number(row['size']) * Number(row['price']),
  });

  /** The fields of version 1 under the names of version 2, where the size is the current one. */
  const positionsOf = (file: string) =>
    read(file).map((row) => ('asset' in row ? { ...inVersion2(row), current_size: row['size'] } : row));

  it('are all readable as activity of version 2', () => {
    const { records, rejected, unknowns } = parseActivity(activity(), NOW);
    expect([records.length, rejected, unknowns]).toEqual([2, [], []]);
    expect(records[0]?.transfers[0]).toEqual({
      tokenMint: '98255364887669934733864645030488537034263699416357729920734267612805930214172',
      tokenSymbol: 'Yes',
      change: '14.285715',
    });
  });

  it('account for activity in its envelope and of every recorded type', () => {
    const page = readRecordedJson(`${folder}/../feeds/polymarket/data_v2_2026-09-14_activity.json`) as {
      data: unknown[];
    };
    const types = readRecordedJson(`${folder}/../feeds/polymarket/data_v2_2026-10-02_activity_rows.json`) as object;
    const rows = [...page.data, ...Object.values(types)];
    const { records, rejected, unknowns } = parseActivity(rows, Date.UTC(2026, 9, 3));
    expect([rows.length, records.length, rejected, unknowns]).toEqual([5, 5, [], []]);
    expect(records.map(({ type, value, transfers }) => [type, value, transfers.map(({ change }) => change)])).toEqual([
      // 22.84 x 0.52 plus the fee.
      ['trade', '12.16184', ['22.84', '-12.16184']],
      ['trade', '6.72948', ['7.44', '-6.72948']],
      ['taker_rebate', undefined, ['558.1579']],
      ['deposit', undefined, ['50389.755618']],
      ['merge', undefined, ['32']],
    ]);
  });

  it.each([
    ['baguette_10pm', 6],
    ['gabagool_10pm', 30],
    ['gabagool_945pm', 45],
  ])('in %s keep every row, exact duplicates and shared hashes included, in any order', (name, count) => {
    const rows = trades(name);
    const { records, rejected } = parseActivity(rows, NOW);
    expect([records.length, rejected]).toEqual([count, []]);
    expect(new Set(ids(rows)).size).toBe(count);
    fc.assert(
      fc.property(fc.shuffledSubarray(rows, { minLength: rows.length }), (shuffled) => {
        expect(ids(shuffled).sort()).toEqual(ids(rows).sort());
      }),
      { numRuns: 20 },
    );
  });

  it('are all readable as positions of both versions', () => {
    for (const [file, count] of [
      ['data_api_v2_2026-09/positions.json', 2],
      ['data_api_positions_2025/positions.json', 2],
      ['nautilus_rust/data_api_positions_response.json', 4],
    ] as const) {
      const { records, rejected } = parsePositions(positionsOf(file));
      expect([file, records.length, rejected]).toEqual([file, count, []]);
    }
  });

  it('when mutated, never throw and yield storable records only', () => {
    const samples = [...activity(), ...trades('gabagool_10pm').slice(0, 3)];
    const positions = [
      ...positionsOf('data_api_v2_2026-09/positions.json'),
      ...positionsOf('data_api_positions_2025/positions.json'),
    ];
    const poison = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom('\u0000', '\ud800', Number.NaN, Number.POSITIVE_INFINITY, -1, 1e300, '1e999', [], {}, undefined),
    );
    const mutated = (rows: Record<string, unknown>[]) =>
      fc.tuple(fc.constantFrom(...rows), fc.nat(), poison).map(([row, at, value]): unknown => {
        const names = Object.keys(row);
        return at % 20 === 0 ? value : { ...row, [names[at % names.length] ?? '']: value };
      });
    fc.assert(
      fc.property(mutated(samples), mutated(positions), (row, position) => {
        const { records, rejected } = parseActivity([row], NOW);
        expect(records.length + rejected.length).toBe(1);
        for (const { transfers, ...record } of records) {
          expect(Object.values(record).every((value) => typeof value !== 'string' || isStorableText(value))).toBe(true);
          expect(Number.isSafeInteger(record.atMs)).toBe(true);
          for (const { change } of transfers) expect(addDecimals(change, ZERO)).toBe(change);
        }
        const held = parsePositions([position]);
        expect(held.records.length + held.rejected.length).toBe(1);
        for (const { amount, tokenMint } of held.records) {
          expect(compareDecimals(amount, ZERO)).not.toBe(-1);
          expect(isStorableText(tokenMint)).toBe(true);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
