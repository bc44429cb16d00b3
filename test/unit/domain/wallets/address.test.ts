import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeBase58 } from '../../../../src/domain/values/base58.ts';
import { readWalletAddress } from '../../../../src/domain/wallets/address.ts';

const HEX = '0x6031b6eed1c97e853c6e0f03ad3ce3529351f96d';
const OWNER = 'DezXAZ8z7PnrnRJjz3wXBoRgixCa6xjnB7YaB1pPB263';

describe('readWalletAddress', () => {
  it('returns one spelling of a Polymarket wallet', () => {
    expect(readWalletAddress('polymarket', HEX)).toEqual({ ok: true, address: HEX });
    const shouted = `0x${HEX.slice(2).toUpperCase()}`;
    expect(readWalletAddress('polymarket', shouted)).toEqual({ ok: true, address: HEX });
  });

  it.each(['', '0x', HEX.slice(0, -1), `${HEX}0`, HEX.slice(2), `${HEX.slice(0, -1)}g`, ` ${HEX}`, `${HEX}\n`, OWNER])(
    'rejects %j on Polymarket',
    (text) => {
      expect(readWalletAddress('polymarket', text)).toMatchObject({
        ok: false,
        problem: expect.stringContaining('0x'),
      });
    },
  );

  it('keeps the case of a Solana wallet, and requires exactly 32 bytes', () => {
    expect(readWalletAddress('solana', OWNER)).toEqual({ ok: true, address: OWNER });
    expect(readWalletAddress('solana', '1'.repeat(32))).toEqual({ ok: true, address: '1'.repeat(32) });
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 0, maxLength: 40 }), (bytes) => {
        expect(readWalletAddress('solana', encodeBase58(bytes)).ok).toBe(bytes.length === 32);
      }),
      { numRuns: 300 },
    );
  });

  it.each(['', HEX, OWNER.replace('D', '0'), `${OWNER}1`, `${OWNER} `, 'l'.repeat(43), '1'.repeat(100_000)])(
    'rejects %j on Solana',
    (text) => {
      expect(readWalletAddress('solana', text)).toMatchObject({ ok: false });
    },
  );

  it.each(['kalshi', 'constructor', '__proto__', ''])('rejects every wallet of %j', (venue) => {
    expect(readWalletAddress(venue, HEX)).toMatchObject({ ok: false, problem: expect.stringContaining('venue') });
  });
});
