import { decimal } from '../values/decimal.ts';
import { balanceChangeBody, transactionBody } from '../wallets/event.ts';
import {
  type Data,
  joined,
  name,
  numberOf,
  prefixed,
  shortened,
  signed,
  textOf,
  tradeFacts,
  word,
} from '../webhooks/chat-values.ts';
import { type EventDefinition, SAMPLE_MARKET, SAMPLE_TOKEN } from './definition.ts';

const MAX_TRANSFERS = 4;
const SAMPLE_WALLET = { wallet: 'sample-wallet', venue: SAMPLE_MARKET.venue, marketId: SAMPLE_MARKET.marketId };

export const transaction: EventDefinition = {
  summary: 'A watched wallet has a new transaction',
  text: (data) => ({
    subject: joined(word(data['venue']), name(data['wallet'])),
    facts: joined(name(data['type']), tradeFacts(data)),
  }),
  chat(data) {
    const transfers = Array.isArray(data['transfers']) ? (data['transfers'] as Data[]) : [];
    const shown = transfers.slice(0, MAX_TRANSFERS).map((each) => {
      return `${signed(numberOf(each['change']))} ${textOf(each['tokenSymbol']) ?? shortened(textOf(each['tokenMint']))}`;
    });
    if (transfers.length > shown.length) shown.push(`${transfers.length - shown.length} more`);
    return {
      title: `Wallet ${shortened(textOf(data['wallet']))}: ${textOf(data['side']) ?? textOf(data['type']) ?? 'transaction'}`,
      fields: [
        ['Venue', textOf(data['venue'])],
        ['Status', textOf(data['status'])],
        ['Size', numberOf(data['size'])],
        ['Price', numberOf(data['price'])],
        ['Value', numberOf(data['value'])],
        ['Transfers', shown.join(', ')],
      ],
    };
  },
  sample: (stamp) =>
    transactionBody({
      ...stamp,
      ...SAMPLE_WALLET,
      transactionId: 'sample-transaction',
      type: 'trade',
      status: 'confirmed',
      atMs: stamp.occurredAt.getTime(),
      transfers: [{ ...SAMPLE_TOKEN, change: decimal('25') }],
      side: 'buy',
      size: decimal('25'),
      price: decimal('0.62'),
      value: decimal('15.5'),
    }),
};

export const balanceChange: EventDefinition = {
  summary: 'A balance of a watched wallet changed',
  text: (data) => ({
    subject: joined(word(data['venue']), name(data['wallet']), name(data['tokenSymbol'] ?? data['tokenMint'])),
    facts: joined(signed(numberOf(data['change'])), prefixed('to', word(data['currentBalance']))),
  }),
  chat(data) {
    const [before, after] = [numberOf(data['previousBalance']), numberOf(data['currentBalance'])];
    return {
      title: `Wallet ${shortened(textOf(data['wallet']))}: balance changed`,
      fields: [
        ['Venue', textOf(data['venue'])],
        ['Balance', after],
        ['Move', before === undefined ? undefined : `${signed(numberOf(data['change']))} from ${before}`],
      ],
    };
  },
  sample: (stamp) =>
    balanceChangeBody({
      ...stamp,
      ...SAMPLE_WALLET,
      ...SAMPLE_TOKEN,
      previousBalance: decimal('100'),
      currentBalance: decimal('125'),
      transactionId: 'sample-transaction',
    }),
};
