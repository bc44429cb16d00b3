import { type Decimal, decimal } from '../../domain/values/decimal.ts';

/** The digits of a `u64`. */
const RAW_AMOUNT = /^\d{1,20}$/;
const MAX_DECIMALS = 255;

/** The integer of a raw token amount, else null. Nodes write it as text, because numbers would lose digits. */
export function parseRawAmount(value: unknown): bigint | null {
  return typeof value === 'string' && RAW_AMOUNT.test(value) ? BigInt(value) : null;
}

/** Lamports are a JSON number: null above 2^53, about nine million SOL, because its digits are inexact there. */
export function parseLamports(value: unknown): bigint | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? BigInt(value) : null;
}

export function isDecimals(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_DECIMALS;
}

/** A raw amount in whole units: exactly `raw / 10^decimals`. */
function unitsOf(raw: bigint, decimals: number): Decimal {
  return decimal(`${raw}e-${decimals}`);
}

/** Raw amounts by mint, added up; a mint has one number of decimals. */
export class MintSums {
  readonly #sums = new Map<string, { raw: bigint; decimals: number }>();

  /** False when the mint was added before with other decimals. */
  add(mint: string, raw: bigint, decimals: number): boolean {
    const sum = this.#sums.get(mint);
    if (sum !== undefined && sum.decimals !== decimals) return false;
    this.#sums.set(mint, { raw: (sum?.raw ?? 0n) + raw, decimals });
    return true;
  }

  /** In order of the mints. */
  entries(): { mint: string; amount: Decimal }[] {
    const sums = [...this.#sums].sort(([a], [b]) => (a < b ? -1 : 1));
    return sums.map(([mint, { raw, decimals }]) => ({ mint, amount: unitsOf(raw, decimals) }));
  }
}
