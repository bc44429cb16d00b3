import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readPosition } from '../../../../src/venues/solana/activity-position.ts';
import { MintSums } from '../../../../src/venues/solana/amount.ts';
import { parseSignatures } from '../../../../src/venues/solana/parse-signatures.ts';
import { mintOf, parseTokenAccount } from '../../../../src/venues/solana/parse-token-accounts.ts';
import { failureIn, RpcError } from '../../../../src/venues/solana/rpc-error.ts';

const row = { signature: 'a'.repeat(88), slot: 5, err: null, memo: null, blockTime: 1_790_000_000 };
const account = {
  pubkey: 'b'.repeat(44),
  account: { data: { parsed: { info: { mint: 'c'.repeat(44), tokenAmount: { amount: '1500', decimals: 3 } } } } },
};

describe('signatures', () => {
  it('without a block time take that of the row above; the first row has none', () => {
    const rows = [{ ...row, blockTime: null }, row, { ...row, blockTime: null }, { ...row, blockTime: 1_780_000_000 }];
    expect(parseSignatures(rows).listed.map(({ atMs }) => atMs)).toEqual([
      undefined,
      1_790_000_000_000,
      1_790_000_000_000,
      1_780_000_000_000,
    ]);
  });

  it('are rejected individually when they are unreadable', () => {
    const { listed, rejected } = parseSignatures([row, { ...row, slot: 'x' }, null, row]);
    expect(listed).toHaveLength(2);
    expect(rejected).toMatchObject([
      { kind: 'wallets', recordId: row.signature, reason: 'invalid_field' },
      { reason: 'not_an_object' },
    ]);
  });

  it('of any form are read or rejected', () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.jsonValue(), fc.record({ signature: fc.string(), slot: fc.double() }))),
        (rows) => {
          const { listed, rejected } = parseSignatures(rows as unknown[]);
          expect(listed.length + rejected.length).toBe(rows.length);
        },
      ),
    );
  });
});

describe('token accounts', () => {
  it('have an exact amount and a mint', () => {
    expect(parseTokenAccount(account)).toEqual({
      ok: true,
      value: { account: account.pubkey, mint: 'c'.repeat(44), raw: 1500n, decimals: 3 },
    });
  });

  it('of any form are read or rejected', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (info, whole) => {
        const bent = { ...account, account: { data: { parsed: { info } } } } as unknown;
        for (const each of [bent, whole as unknown]) {
          expect(parseTokenAccount(each).ok).toBe(false);
          expect(['string', 'undefined']).toContain(typeof mintOf(each));
        }
      }),
    );
  });
});

describe('amounts', () => {
  it('are the integer with a shifted decimal point', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.integer({ min: 0, max: 255 }), (raw, decimals) => {
        const sums = new MintSums();
        expect([sums.add('a', raw, decimals), sums.add('b', -raw, decimals)]).toEqual([true, true]);
        const [text = '', negative] = sums.entries().map(({ amount }) => amount);
        const [whole = '', fraction = ''] = text.split('.');
        expect(BigInt(whole + fraction.padEnd(decimals, '0'))).toBe(raw);
        expect(negative).toBe(raw === 0n ? '0' : `-${text}`);
      }),
    );
  });
});

describe('a stored position', () => {
  it('of an unreadable form begins anew', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (stored) => {
        expect(readPosition(stored)).toEqual({ version: expect.any(Number), known: [], waiting: [] });
      }),
    );
  });
});

describe('the version of a stored position', () => {
  const old = { slot: 5, known: [], waiting: [] };
  const round = { slot: 9, queue: ['a'], done: [], amounts: {} };

  it('is absent when a release without versions wrote the position, and present from the first page of a new walk', () => {
    expect(readPosition(old, 1)).toEqual(old);
    expect(readPosition(null, 1)).toMatchObject({ version: 1 });
  });

  it('falls to that of the reading release and never rises', () => {
    expect(readPosition({ ...old, version: 2 }, 1)).toEqual({ ...old, version: 1 });
    expect(readPosition({ ...old, version: 0 }, 1)).toEqual({ ...old, version: 0 });
  });

  it('ends a re-read for another version', () => {
    const reread = { version: 1, round };
    expect(readPosition({ ...old, reread }, 1)).toEqual({ ...old, reread });
    expect(readPosition({ ...old, reread }, 2)).toEqual(old);
    expect(readPosition({ ...old, reread: { version: 2, round } }, 1)).toEqual(old);
  });
});

describe('an answer of a node', () => {
  it('is a result, null included, or a failure', () => {
    expect(failureIn({ jsonrpc: '2.0', result: null, id: 1 })).toBeUndefined();
    fc.assert(
      fc.property(fc.jsonValue(), (error) => {
        const failure = failureIn({ error });
        if (error === null) expect(failure).toMatchObject({ code: 'invalid_payload' });
        else expect(failure?.venue).toBe('solana');
      }),
    );
  });

  it.each([
    ['Too many requests, retry in 10s', 10_000],
    ['rate limit exhausted, try again in 2.5 seconds', 2_500],
    ['Too many requests: retry after 1500ms', 1_500],
    ['Too many requests: retry after 5 ms', 1_000],
    ['Too many requests, retry in 86400 s', 60_000],
    ['request limit reached', 1_000],
    ['compute units per second capacity exceeded', 1_000],
  ])('of a provider limit, %j, pauses for its time within bounds', (text, retryAfterMs) => {
    expect(new RpcError(-32099, text)).toMatchObject({ code: 'rate_limited', retryable: true, retryAfterMs });
  });

  it('with code 403 refuses the client, with no retry', () => {
    const refusal = new RpcError(403, 'Your IP or provider is blocked from this endpoint');
    expect(refusal).toMatchObject({ code: 'http_status', statusCode: 403, retryable: false });
  });

  it('with a hostile message is cut and storable', () => {
    const { message } = new RpcError(-1, `\u0000\ud800${'x'.repeat(5_000)}`);
    expect(message.length).toBeLessThan(300);
    expect(message.isWellFormed() && !message.includes('\u0000')).toBe(true);
  });
});
