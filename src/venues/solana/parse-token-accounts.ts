import { z } from 'zod';
import { accept, type Reading, readModel, reject } from '../rejection.ts';
import { isDecimals, parseRawAmount } from './amount.ts';

const model = z.object({
  pubkey: z.string().min(32).max(44),
  account: z.object({
    data: z.object({
      parsed: z.object({
        info: z.object({
          mint: z.string().min(32).max(44),
          tokenAmount: z.object({ amount: z.unknown(), decimals: z.unknown() }),
        }),
      }),
    }),
  }),
});

/** One token account of an owner; `raw` in the mint's smallest unit. */
export interface TokenAccount {
  account: string;
  mint: string;
  raw: bigint;
  decimals: number;
}

/** A row of `getTokenAccountsByOwner` in `jsonParsed`. */
export function parseTokenAccount(row: unknown): Reading<TokenAccount> {
  const read = readModel(model, row);
  if (!read.ok) return read;
  const { mint, tokenAmount } = read.value.account.data.parsed.info;
  const raw = parseRawAmount(tokenAmount.amount);
  const { decimals } = tokenAmount;
  if (raw === null || !isDecimals(decimals)) return reject('invalid_field', 'tokenAmount: not a raw amount');
  return accept({ account: read.value.pubkey, mint, raw, decimals });
}

const mintModel = z.object({
  account: z.object({ data: z.object({ parsed: z.object({ info: z.object({ mint: z.string() }) }) }) }),
});

/** The mint of an otherwise unreadable row. */
export function mintOf(row: unknown): string | undefined {
  const read = mintModel.safeParse(row);
  return read.success ? read.data.account.data.parsed.info.mint : undefined;
}
