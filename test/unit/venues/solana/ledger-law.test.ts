import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Chain } from '../../../../sim/solana/chain.ts';
import { SOL_MINT, tokensOf } from '../../../../sim/solana/tokens.ts';
import { playSecond, populate } from '../../../../sim/solana/traffic.ts';
import { parsedTransaction } from '../../../../sim/solana/wire.ts';
import { addDecimals, type Decimal, decimal, subtractDecimals, ZERO } from '../../../../src/domain/values/decimal.ts';
import { parseTransaction } from '../../../../src/venues/solana/parse-transaction.ts';

const unitsOf = (raw: bigint, decimals: number) => decimal(`${raw}e-${decimals}`);

const FIRST_SECOND = 1_790_000_000;

function holdings(chain: Chain, owner: string): Map<string, Decimal> {
  const sums = new Map([[SOL_MINT, unitsOf(chain.balanceOf(owner), 9)]]);
  for (const { token, amount } of chain.accountsOf(owner)) {
    sums.set(token.mint, addDecimals(sums.get(token.mint) ?? ZERO, unitsOf(amount, token.decimals)));
  }
  return sums;
}

describe('parseTransaction over any ledger', () => {
  it('yields changes that add up to the change of the owned balances', () => {
    const kinds = new Set<string>();
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 31 }), fc.integer({ min: 1, max: 300 }), (seed, seconds) => {
        const tokens = tokensOf(seed);
        const chain = new Chain(seed);
        const population = populate(chain, tokens, seed);
        const before = new Map(population.people.map((person) => [person, holdings(chain, person)]));
        for (let no = 0; no < seconds; no += 1) playSecond(chain, population, tokens, seed, FIRST_SECOND + no);
        for (const person of population.people) {
          const sums = new Map(before.get(person));
          for (const transaction of chain.transactions) {
            const { signature } = transaction;
            const raw: unknown = JSON.parse(JSON.stringify(parsedTransaction(transaction)));
            const read = parseTransaction(raw, { address: person, signature, fallbackMs: 0 });
            if (!read.ok) throw new Error(read.rejection.detail);
            const { record } = read.value;
            kinds.add(`${record.type} ${record.status}`);
            for (const { tokenMint, change } of record.transfers) {
              sums.set(tokenMint, addDecimals(sums.get(tokenMint) ?? ZERO, change));
            }
          }
          const after = holdings(chain, person);
          for (const mint of new Set([...sums.keys(), ...after.keys()])) {
            expect(subtractDecimals(after.get(mint) ?? ZERO, sums.get(mint) ?? ZERO)).toBe(decimal(0));
          }
        }
      }),
      { numRuns: 40 },
    );
    expect([...kinds].sort()).toEqual(['other confirmed', 'other failed', 'swap confirmed', 'transfer confirmed']);
  });
});
