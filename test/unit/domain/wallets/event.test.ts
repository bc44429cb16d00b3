import { describe, expect, it } from 'vitest';
import { decimal } from '../../../../src/domain/values/decimal.ts';
import { balanceChangeBody, transactionBody } from '../../../../src/domain/wallets/event.ts';

const COMMON = {
  eventId: 'evt_1',
  occurredAt: new Date('2026-02-03T04:05:06.007Z'),
  wallet: '0xabc',
  venue: 'polymarket',
};

describe('transactionBody', () => {
  it('contains the trade with its exact digits', () => {
    const body = transactionBody({
      ...COMMON,
      transactionId: '0xhash:1',
      type: 'trade',
      status: 'confirmed',
      atMs: 1_788_886_609_000,
      transfers: [
        { tokenMint: '98255', tokenSymbol: 'Yes', change: decimal('14.2857150000000000000001') },
        { tokenMint: 'pUSD', change: decimal('-13.285715') },
      ],
      marketId: '0xcond',
      side: 'buy',
      size: decimal('14.285715'),
      price: decimal('0.9300000035'),
      value: decimal('13.285715'),
    });
    expect(body).toBe(
      '{"id":"evt_1","type":"transaction","timestamp":"2026-02-03T04:05:06.007Z","data":{"wallet":"0xabc",' +
        '"venue":"polymarket","transactionId":"0xhash:1","type":"trade","status":"confirmed",' +
        '"timestamp":"2026-09-08T16:56:49.000Z","transfers":[' +
        '{"tokenMint":"98255","tokenSymbol":"Yes","change":14.2857150000000000000001},' +
        '{"tokenMint":"pUSD","change":-13.285715}],' +
        '"marketId":"0xcond","side":"buy","size":14.285715,"price":0.9300000035,"value":13.285715}}',
    );
  });

  it('omits unknown fields', () => {
    const body = transactionBody({
      ...COMMON,
      transactionId: 't',
      type: 'deposit',
      status: 'confirmed',
      atMs: 0,
      transfers: [],
    });
    expect(Object.keys(JSON.parse(body).data)).toEqual([
      'wallet',
      'venue',
      'transactionId',
      'type',
      'status',
      'timestamp',
      'transfers',
    ]);
  });
});

describe('balanceChangeBody', () => {
  it('contains both balances and the exact difference', () => {
    const body = balanceChangeBody({
      ...COMMON,
      tokenMint: '98255',
      tokenSymbol: 'Yes "quoted"',
      marketId: '0xcond',
      previousBalance: decimal('0.3'),
      currentBalance: decimal('0.1'),
    });
    expect(body).toBe(
      '{"id":"evt_1","type":"balance_change","timestamp":"2026-02-03T04:05:06.007Z","data":{"wallet":"0xabc",' +
        '"venue":"polymarket","tokenMint":"98255","tokenSymbol":"Yes \\"quoted\\"","marketId":"0xcond",' +
        '"previousBalance":0.3,"currentBalance":0.1,"change":-0.2}}',
    );
  });
});
