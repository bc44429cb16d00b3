import { z } from 'zod';
import { isoTime, opaqueId } from './wire.ts';

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
