import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addDecimals, type Decimal, decimal, subtractDecimals, ZERO } from '../../../../src/domain/values/decimal.ts';
import {
  type BalanceChange,
  type BalanceRead,
  compareBalances,
  type KnownBalance,
} from '../../../../src/domain/wallets/balance.ts';

type Holdings = Readonly<Record<string, string>>;

/** A wallet that is read repeatedly, as the store keeps it. */
function aWallet() {
  const known = new Map<string, KnownBalance>();
  let isBaseline = true;
  return {
    known,
    read(holdings: Holdings, unreadable: BalanceRead['unreadable'] = new Set()): BalanceChange[] {
      const balances = Object.entries(holdings).map(([tokenMint, amount]) => ({ tokenMint, amount: decimal(amount) }));
      const { rows, changes } = compareBalances(known, { balances, unreadable, isBaseline });
      isBaseline = false;
      for (const row of rows) known.set(row.tokenMint, row);
      return changes;
    },
  };
}
const summaryOf = (changes: BalanceChange[]) =>
  changes.map(({ tokenMint, previous, current }) => [tokenMint, previous, current]);

describe('compareBalances', () => {
  it('uses the first read as the baseline', () => {
    const wallet = aWallet();
    expect(wallet.read({ a: '5', b: '0.1' })).toEqual([]);
    expect(wallet.read({ a: '5', b: '0.1' })).toEqual([]);
  });

  it('reports new, larger, smaller and explicitly empty balances at once', () => {
    const wallet = aWallet();
    wallet.read({ a: '5', b: '2', c: '1' });
    expect(summaryOf(wallet.read({ a: '7', b: '1', c: '0', d: '3' }))).toEqual([
      ['a', '5', '7'],
      ['b', '2', '1'],
      ['c', '1', '0'],
      ['d', '0', '3'],
    ]);
  });

  it('reports a disappearance after two reads in a row without the token', () => {
    const wallet = aWallet();
    wallet.read({ a: '5', b: '1' });
    expect(wallet.read({ b: '1' })).toEqual([]);
    expect(wallet.read({ a: '5', b: '1' })).toEqual([]);
    expect(wallet.read({ b: '1' })).toEqual([]);
    expect(summaryOf(wallet.read({ b: '1' }))).toEqual([['a', '5', '0']]);
    expect(wallet.read({ b: '1' })).toEqual([]);
    expect(summaryOf(wallet.read({ a: '2', b: '1' }))).toEqual([['a', '0', '2']]);
  });

  it('does not treat an unreadable row as a disappearance', () => {
    const wallet = aWallet();
    wallet.read({ a: '5', b: '1' });
    for (const unreadable of [new Set(['a']), null, new Set(['a'])]) {
      expect(wallet.read({ b: '1' }, unreadable)).toEqual([]);
    }
    expect(summaryOf(wallet.read({ a: '4', b: '1' }))).toEqual([['a', '5', '4']]);
  });

  it('keeps a name that a later read omits', () => {
    const known = new Map<string, KnownBalance>([
      ['a', { tokenMint: 'a', amount: decimal('1'), version: 3n, symbol: 'Yes', marketId: '0xc', missed: 0 }],
    ]);
    const read = {
      balances: [{ tokenMint: 'a', amount: decimal('2') }],
      unreadable: new Set<string>(),
      isBaseline: false,
    };
    expect(compareBalances(known, read).changes).toEqual([
      { tokenMint: 'a', symbol: 'Yes', marketId: '0xc', previous: '1', current: '2', version: 4n },
    ]);
  });

  describe('rows to store', () => {
    const held = (tokenMint: string, amount: string, more: Partial<KnownBalance> = {}): KnownBalance => ({
      tokenMint,
      amount: decimal(amount),
      version: 7n,
      missed: 0,
      ...more,
    });
    const compare = (known: KnownBalance[], read: Partial<BalanceRead>) =>
      compareBalances(new Map(known.map((balance) => [balance.tokenMint, balance])), {
        balances: [],
        unreadable: new Set(),
        isBaseline: false,
        ...read,
      });
    const listed = (tokenMint: string, amount: string, more = {}) => ({ tokenMint, amount: decimal(amount), ...more });

    it('are empty without a change, and never include tokens that were never held', () => {
      const read = { balances: [listed('a', '5'), listed('gone', '0'), listed('never', '0')] };
      expect(compare([held('a', '5'), held('gone', '0')], read)).toEqual({ rows: [], changes: [] });
    });

    it('include the baseline at the first version, without changes', () => {
      const read = { balances: [listed('b', '2', { tokenSymbol: 'No' }), listed('a', '1')], isBaseline: true };
      const rows = [
        { tokenMint: 'a', amount: '1', version: 1n, missed: 0 },
        { tokenMint: 'b', amount: '2', version: 1n, symbol: 'No', missed: 0 },
      ];
      expect(compare([], read)).toStrictEqual({ rows, changes: [] });
    });

    it('include a token that was missed, and one that was seen again', () => {
      const missed = { ...held('a', '5'), missed: 1 };
      expect(compare([held('a', '5')], {})).toEqual({ rows: [missed], changes: [] });
      expect(compare([missed], { balances: [listed('a', '5')] })).toEqual({ rows: [held('a', '5')], changes: [] });
    });

    it('include a change with all known names, newer ones first', () => {
      const known = [held('b', '1', { symbol: 'Old', marketId: 'm' }), held('a', '1')];
      const read = { balances: [listed('b', '2', { tokenSymbol: 'New' }), listed('a', '3', { marketId: 'n' })] };
      expect(compare(known, read)).toStrictEqual({
        rows: [
          { tokenMint: 'a', amount: '3', version: 8n, marketId: 'n', missed: 0 },
          { tokenMint: 'b', amount: '2', version: 8n, symbol: 'New', marketId: 'm', missed: 0 },
        ],
        changes: [
          { tokenMint: 'a', marketId: 'n', previous: '1', current: '3', version: 8n },
          { tokenMint: 'b', symbol: 'New', marketId: 'm', previous: '1', current: '2', version: 8n },
        ],
      });
    });

    it('include a token that is gone as zero, under its known names', () => {
      const known = [
        held('b', '2', { missed: 1 }),
        held('a', '1', { missed: 1, symbol: 'Yes', marketId: 'm' }),
        held('c', '3', { missed: 1 }),
      ];
      expect(compare(known, { unreadable: new Set(['c']) })).toStrictEqual({
        rows: [
          { tokenMint: 'a', amount: '0', version: 8n, symbol: 'Yes', marketId: 'm', missed: 0 },
          { tokenMint: 'b', amount: '0', version: 8n, missed: 0 },
        ],
        changes: [
          { tokenMint: 'a', symbol: 'Yes', marketId: 'm', previous: '1', current: '0', version: 8n },
          { tokenMint: 'b', previous: '2', current: '0', version: 8n },
        ],
      });
      expect(compare(known, { unreadable: null })).toEqual({ rows: [], changes: [] });
    });
  });

  it('reports changes that add up to the balance, each with its own version, with any reads skipped', () => {
    const amounts = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('0', '0.1', '2', '3.000001'));
    fc.assert(
      fc.property(fc.array(amounts, { minLength: 1, maxLength: 12 }), (reads) => {
        const wallet = aWallet();
        wallet.read(reads[0] ?? {});
        const start = new Map([...wallet.known].map(([tokenMint, { amount }]) => [tokenMint, amount]));
        const changes = reads.slice(1).flatMap((read) => wallet.read(read));
        const last = reads.at(-1) ?? {};
        changes.push(...wallet.read(last), ...wallet.read(last));
        const sums = new Map<string, Decimal>(start);
        for (const { tokenMint, previous, current } of changes) {
          expect(previous).not.toBe(current);
          expect(sums.get(tokenMint) ?? ZERO).toBe(previous);
          sums.set(tokenMint, addDecimals(previous, subtractDecimals(current, previous)));
        }
        for (const tokenMint of ['a', 'b', 'c']) expect(sums.get(tokenMint) ?? ZERO).toBe(last[tokenMint] ?? '0');
        const versions = changes.map(({ tokenMint, version }) => `${tokenMint} ${version}`);
        expect(new Set(versions).size).toBe(versions.length);
      }),
      { numRuns: 100 },
    );
  });
});
