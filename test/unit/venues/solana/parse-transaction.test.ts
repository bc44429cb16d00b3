import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseTransaction } from '../../../../src/venues/solana/parse-transaction.ts';

const ME = 'Ejk4dcJEvFiaGUU5oALKqAqvo2uFpyPVGWDYYwQEE5fj';
const OTHER = '5ntSHRYsdTeYYZNEnqNHoFnCcNfaAMH4cTJ2i6VNHiVF';
const MY_TOKENS = 'ESTHTnqRkQtLDYTbTrHzYyLpZxwMqJvXbRcTjWbfRdN';
const SOL = 'So11111111111111111111111111111111111111112';
const USDC = 'EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v';
const CARD = 'CARD1111111111111111111111111111111111111111';
const SIGNATURE = '2tDqVFnHmfmYsp48dDXcK7V4MycnyvpMKjKLMJ7egRujMNo44fyCnHCyN8MuWuCb2B6kEeMfQmccLzPoSxU9WSiK';

function tokens(accountIndex: number, mint: string, owner: string, amount: string, decimals = 6): object {
  return {
    accountIndex,
    mint,
    owner,
    programId: 'x',
    uiTokenAmount: { amount, decimals, uiAmount: 1, uiAmountString: 'x' },
  };
}

/** The example in the documentation of `getTransaction`: ME pays, the second account is OTHER, the third MY_TOKENS. */
function transaction(meta: object = {}, over: object = {}): object {
  return {
    blockTime: 1745463619,
    slot: 335501813,
    version: 0,
    meta: {
      err: null,
      fee: 5000,
      preBalances: [1_000_000_000, 5, 2_039_280],
      postBalances: [999_995_000, 5, 2_039_280],
      preTokenBalances: [],
      postTokenBalances: [],
      ...meta,
    },
    transaction: {
      signatures: [SIGNATURE],
      message: {
        accountKeys: [ME, OTHER, MY_TOKENS].map((pubkey) => ({ pubkey, signer: false, source: 'transaction' })),
      },
    },
    ...over,
  };
}

function read(raw: unknown, address = ME) {
  return parseTransaction(raw, { address, signature: SIGNATURE, fallbackMs: 7 });
}

function transfersOf(raw: unknown, address = ME): string[] {
  const parsed = read(raw, address);
  if (!parsed.ok) throw new Error(`${parsed.rejection.reason}: ${parsed.rejection.detail}`);
  return parsed.value.record.transfers.map(({ tokenMint, change }) => `${tokenMint.slice(0, 4)} ${change}`);
}

describe('a transaction', () => {
  it('has the signature as its identity, the block time as its time, the fee as a change', () => {
    const parsed = read(transaction());
    expect(parsed).toEqual({
      ok: true,
      value: {
        slot: 335501813,
        tokenAccounts: [],
        record: {
          transactionId: SIGNATURE,
          type: 'other',
          status: 'confirmed',
          atMs: 1745463619000,
          transfers: [{ tokenMint: SOL, tokenSymbol: 'SOL', change: '-0.000005' }],
        },
      },
    });
  });

  it('takes the time of its listing when it has no block time', () => {
    const parsed = read(transaction({}, { blockTime: null }));
    expect(parsed.ok && parsed.value.record.atMs).toBe(7);
  });

  it('that failed changes only the fee', () => {
    const meta = { err: { InstructionError: [0, { Custom: 1 }] }, preTokenBalances: [tokens(2, USDC, ME, '9')] };
    const parsed = read(transaction(meta));
    expect(parsed.ok && parsed.value.record).toMatchObject({ status: 'failed', type: 'other' });
    expect(transfersOf(transaction(meta))).toEqual(['So11 -0.000005']);
    expect(transfersOf(transaction(meta), OTHER)).toEqual([]);
  });

  it('adds up the accounts of a mint, opened and closed ones included', () => {
    const meta = {
      preTokenBalances: [tokens(2, USDC, ME, '1500000'), tokens(1, USDC, OTHER, '1')],
      postTokenBalances: [tokens(1, USDC, ME, '250001'), tokens(2, CARD, ME, '1', 0)],
    };
    expect(transfersOf(transaction(meta))).toEqual(['CARD 1', 'EPjF -1.249999', 'So11 -0.000005']);
    expect(transfersOf(transaction(meta), OTHER)).toEqual(['EPjF -0.000001']);
  });

  it('counts lamports and wrapped SOL as one: wrapping costs the fee and the rent', () => {
    const meta = {
      preBalances: [1_000_000_000, 5, 0],
      postBalances: [497_955_720, 5, 502_039_280],
      postTokenBalances: [tokens(2, SOL, ME, '500000000', 9)],
    };
    expect(transfersOf(transaction(meta))).toEqual(['So11 -0.00204428']);
  });

  it('into a token account concerns the owner of the account, even when it does not name the owner', () => {
    const meta = {
      preTokenBalances: [tokens(2, USDC, 'owner', '0')],
      postTokenBalances: [tokens(2, USDC, 'owner', '5')],
    };
    expect(transfersOf(transaction(meta), 'owner')).toEqual(['EPjF 0.000005']);
  });

  it('reads accounts of lookup tables within the list, or after it', () => {
    const keys = [OTHER, 'x'];
    const loadedAddresses = { writable: [ME], readonly: ['y'] };
    const balances = { preBalances: [9, 8, 7, 6], postBalances: [9, 8, 17, 6] };
    const message = (accountKeys: unknown[]) => ({ signatures: [SIGNATURE], message: { accountKeys } });
    const behind = transaction({ ...balances, loadedAddresses }, { transaction: message(keys) });
    const within = transaction(
      { ...balances, loadedAddresses },
      { transaction: message([...keys, ME, 'y'].map((pubkey) => ({ pubkey, source: 'lookupTable' }))) },
    );
    expect(transfersOf(behind)).toEqual(['So11 0.00000001']);
    expect(transfersOf(within)).toEqual(['So11 0.00000001']);
  });

  it('lists the token accounts that existed before', () => {
    const meta = { preTokenBalances: [tokens(2, USDC, ME, '1')], postTokenBalances: [tokens(1, USDC, ME, '1')] };
    const parsed = read(transaction(meta));
    expect(parsed.ok && parsed.value.tokenAccounts).toEqual([MY_TOKENS]);
  });

  it.each([
    [
      'a token in and another out',
      [tokens(2, USDC, ME, '9'), tokens(1, CARD, ME, '1', 0)],
      [tokens(1, CARD, ME, '5', 0)],
      'swap',
    ],
    ['a token in', [], [tokens(2, USDC, ME, '9')], 'transfer'],
    ['nothing', [], [], 'other'],
  ])('with %s has the type of that', (_, preTokenBalances, postTokenBalances, type) => {
    const parsed = read(transaction({ preTokenBalances, postTokenBalances }));
    expect(parsed.ok && parsed.value.record.type).toBe(type);
  });

  it('has exact digits for the largest amounts', () => {
    const meta = { postTokenBalances: [tokens(2, USDC, ME, '18446744073709551615', 9)] };
    expect(transfersOf(transaction(meta))).toContain('EPjF 18446744073.709551615');
    const many = { postTokenBalances: [tokens(2, USDC, ME, '18446744073709551615', 255)] };
    expect(transfersOf(transaction(many))[0]).toMatch(/^EPjF 0\.0{235}18446744073709551615$/);
  });

  it.each([
    ['lamports whose digits are lost', { preBalances: [2 ** 53, 5, 6] }, 'inexact_amount'],
    ['balances that do not match its accounts', { preBalances: [1] }, 'invalid_field'],
    ['an amount that is not an integer text', { postTokenBalances: [tokens(2, USDC, ME, '1.5')] }, 'invalid_field'],
    [
      'a mint with two decimals',
      { preTokenBalances: [tokens(2, USDC, ME, '1', 5)], postTokenBalances: [tokens(2, USDC, ME, '1')] },
      'invalid_field',
    ],
    ['no balances', { preBalances: undefined }, 'missing_field'],
  ])('with %s is rejected', (_, meta, reason) => {
    expect(read(transaction(meta))).toMatchObject({ ok: false, rejection: { reason } });
  });

  it('is rejected when it has another signature', () => {
    const other = { transaction: { signatures: ['other'], message: { accountKeys: [] } } };
    expect(read(transaction({}, other))).toMatchObject({ ok: false });
  });

  it('is accepted when the balances of other owners are unreadable', () => {
    const meta = {
      preBalances: [10_000, 2 ** 60, 1],
      postBalances: [10_000, 2 ** 60, 1],
      postTokenBalances: [null, { owner: OTHER }, 7],
    };
    expect(transfersOf(transaction(meta))).toEqual([]);
  });
});

/** A transaction of version 1 in the `json` encoding: keys as text, and the configuration in the message. */
function versionOne(config: unknown, over: object = {}): object {
  return transaction(
    {
      fee: 5003,
      postBalances: [999_994_997, 5, 2_039_280],
      preTokenBalances: [tokens(2, USDC, ME, '9')],
      postTokenBalances: [tokens(2, USDC, ME, '8')],
      loadedAddresses: { writable: [], readonly: [] },
    },
    {
      version: 1,
      transaction: {
        signatures: [SIGNATURE],
        message: {
          accountKeys: [ME, OTHER, MY_TOKENS],
          ...(config !== undefined && { transactionConfig: config }),
        },
      },
      ...over,
    },
  );
}

describe('a transaction of version 1', () => {
  const config = { computeUnitLimit: 19, heapSize: null, loadedAccountsDataSizeLimit: 32000, priorityFee: 3 };

  it.each([
    ['a configuration', config],
    ['a configuration of nulls', Object.fromEntries(Object.keys(config).map((key) => [key, null]))],
    ['an empty configuration', {}],
    ['no configuration', undefined],
    ['a null for a configuration', null],
    ['a configuration of other types', { ...config, priorityFee: '3', heapSize: 2 ** 60 }],
  ])('changes balances by meta alone when it has %s', (_, each) => {
    expect(transfersOf(versionOne(each))).toEqual(['EPjF -0.000001', 'So11 -0.000005003']);
  });

  it('has the type of its transfers without the fee, the priority fee included', () => {
    const meta = { fee: 5003, postBalances: [999_994_997, 5, 2_039_280] };
    const parsed = read(transaction(meta, { version: 1 }));
    expect(parsed.ok && parsed.value.record).toMatchObject({ type: 'other', transfers: [{ change: '-0.000005003' }] });
  });

  it('is rejected when it names fewer accounts than balances, because it has no lookup tables', () => {
    const meta = {
      preBalances: [9, 8, 7, 6],
      postBalances: [9, 8, 7, 7],
      loadedAddresses: { writable: ['x'], readonly: [] },
    };
    expect(read(transaction(meta, { version: 0 }))).toMatchObject({ ok: true });
    expect(read(transaction(meta, { version: 1 }))).toMatchObject({
      ok: false,
      rejection: { reason: 'invalid_field' },
    });
  });
});

describe('the version of a transaction', () => {
  it.each([['legacy'], [0], [1], [null], [undefined]])('%s is read', (version) => {
    expect(read(transaction({}, { version })).ok).toBe(true);
  });

  it.each([[2], [3], [255]])('%s is rejected with a reason of its own, in any form of the rest', (version) => {
    expect(read(transaction({}, { version }))).toMatchObject({ rejection: { reason: 'unsupported_version' } });
    expect(read({ version, somethingElse: [] })).toMatchObject({ rejection: { reason: 'unsupported_version' } });
  });

  it.each([[1.5], [-1], ['1'], ['v1'], [{}], [true]])('%j is rejected as an invalid field', (version) => {
    expect(read(transaction({}, { version }))).toMatchObject({ rejection: { reason: 'invalid_field' } });
  });
});

describe('mutated transactions', () => {
  it.each([
    [
      'version 0',
      transaction({
        preTokenBalances: [tokens(2, USDC, ME, '9')],
        postTokenBalances: [tokens(2, USDC, ME, '8')],
        loadedAddresses: { writable: [], readonly: [] },
      }),
    ],
    ['version 1', versionOne({ computeUnitLimit: 19, heapSize: null, priorityFee: 3 })],
  ])('of %s are read or rejected without a crash', (_, good) => {
    const paths = pathsOf(good);
    fc.assert(
      fc.property(fc.constantFrom(...paths), fc.jsonValue(), (path, value) => {
        const parsed = read(withValue(structuredClone(good), path, value));
        if (parsed.ok)
          for (const { change } of parsed.value.record.transfers) expect(change).toMatch(/^-?\d+(\.\d+)?$/);
        else expect(parsed.rejection.reason).toMatch(/^[a-z_]+$/);
      }),
      { numRuns: 1_000 },
    );
  });
});

function pathsOf(value: unknown, at: readonly string[] = []): string[][] {
  const inner = value !== null && typeof value === 'object' ? Object.entries(value) : [];
  return [...(at.length > 0 ? [[...at]] : []), ...inner.flatMap(([key, each]) => pathsOf(each, [...at, key]))];
}

function withValue(root: object, path: readonly string[], value: unknown): unknown {
  let target = root as Record<string, unknown>;
  for (const key of path.slice(0, -1)) target = target[key] as Record<string, unknown>;
  const last = path.at(-1);
  if (last !== undefined) target[last] = value;
  return root;
}
