import { z } from 'zod';
import { JsonText, numberField } from '../../src/domain/values/api-json.ts';
import { decimal } from '../../src/domain/values/decimal.ts';
import { DELIVERY_STATUSES } from '../../src/domain/webhooks/event.ts';
import { WALLET_EVENTS } from '../../src/store/wallets/wallet-reads.ts';
import { param } from '../http/input.ts';
import { isoTime, numberValue, opaqueId, storedEvent } from './wire.ts';

/** A watched wallet. */
export const wallet = z
  .object({
    id: opaqueId,
    address: z.string(),
    venue: z.string(),
    label: z.string().optional(),
    createdAt: isoTime,
  })
  .meta({ description: 'A wallet whose transactions and balance changes become events.' });
export type WalletBody = z.output<typeof wallet>;

export const walletExample: WalletBody = {
  id: 'wal_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c01',
  address: '0x56687bf447db6ffa42ffe2204a05edaa20f55839',
  venue: 'polymarket',
  label: 'research',
  createdAt: '2026-01-02T03:04:05.678Z',
};

/** The balance of a token of a wallet. */
export const walletBalance = z
  .object({
    tokenMint: z.string(),
    tokenSymbol: z.string().optional(),
    marketId: z.string().optional(),
    balance: numberValue,
    changedAt: isoTime.meta({ description: 'When a read saw this balance first.' }),
  })
  .meta({ description: 'The balance of one token in the last complete read of a wallet.' });
export type WalletBalanceBody = z.output<typeof walletBalance>;

export const walletBalanceExample: WalletBalanceBody = {
  tokenMint: 'sample-outcome-yes',
  tokenSymbol: 'Yes',
  marketId: 'sample-market',
  balance: numberField(decimal('1250.5')),
  changedAt: '2026-01-02T03:04:05.678Z',
};

/** An event of a wallet with its deliveries. */
export const walletEvent = z
  .object({
    id: opaqueId,
    type: z.enum(WALLET_EVENTS),
    createdAt: isoTime,
    deliveries: z
      .array(z.object({ id: opaqueId, webhookId: opaqueId, status: z.enum(DELIVERY_STATUSES) }))
      .optional()
      .meta({
        description: 'Its deliveries to existing webhooks, at most 20. Absent for a key without the scope `webhooks`.',
      }),
    payload: storedEvent,
  })
  .meta({ description: 'A transaction of a watched wallet, or a change of a balance.' });
export type WalletEventBody = z.output<typeof walletEvent>;

export const walletEventExample: WalletEventBody = {
  id: 'evt_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c04',
  type: 'balance_change',
  createdAt: '2026-01-02T03:04:05.678Z',
  deliveries: [
    {
      id: 'dlv_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c03',
      webhookId: 'wh_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c02',
      status: 'delivered',
    },
  ],
  payload: new JsonText(
    '{"id":"evt_01987f5e-6a3b-7c11-8b5e-0d2f6f1a9c04","type":"balance_change","timestamp":"2026-01-02T03:04:05.678Z",' +
      '"data":{"wallet":"sample-wallet","venue":"polymarket","tokenMint":"sample-outcome-yes","tokenSymbol":"Yes",' +
      '"previousBalance":1250,"currentBalance":1250.5,"change":0.5}}',
  ),
};

export const walletEventQuery = z.object({
  limit: param.limit,
  cursor: param.cursor,
  type: z.enum(WALLET_EVENTS, `must be one of ${WALLET_EVENTS.join(', ')}`).optional(),
});

/** The body that adds a wallet at one of these venues. */
export function createWalletBody(venues: readonly string[]) {
  return z.strictObject({
    venue: z
      .string('must be a string')
      .refine(
        (venue) => venues.includes(venue),
        venues.length === 0 ? 'no enabled venue supports wallets' : `must be one of ${venues.join(', ')}`,
      )
      .meta({
        description: 'A venue with the capability `wallets`.',
        ...(venues.length > 0 && { override: { type: 'string', enum: [...venues] } }),
      }),
    address: z.string('must be a string').max(256, 'must have at most 256 characters').meta({
      description: 'Polymarket: the proxy wallet, `0x` and 40 hexadecimal digits. Solana: base58 of 32 bytes.',
    }),
    label: z
      .string('must be a string')
      .min(1, 'must not be empty')
      .max(100, 'must have at most 100 characters')
      .optional(),
  });
}
export const createWalletExample: z.input<ReturnType<typeof createWalletBody>> = {
  venue: 'polymarket',
  address: '0x56687bf447db6ffa42ffe2204a05edaa20f55839',
  label: 'research',
};
