import { z } from 'zod';

/**
 * Rows of the Data API's wallet routes. Rows that are not trades contain sentinels: `""` for a missing text, 999 for the outcome's index.
 */

const id = z.string().min(1).max(200);
const amount = z.union([z.string(), z.number()]);
const sentinelText = z.string().max(200).nullish();
const decorativeText = z.string().nullish().catch(undefined);

export const activityRow = z.object({
  transactionHash: id,
  type: z.string().min(1).max(40),
  timestamp: z.union([z.number(), z.string()]),
  size: amount.nullish(),
  usdcSize: amount.nullish(),
  price: amount.nullish(),
  tokenId: sentinelText,
  conditionId: sentinelText,
  side: sentinelText,
  outcome: decorativeText,
});
export type ActivityRow = z.infer<typeof activityRow>;

export const positionRow = z.object({
  tokenId: id,
  size: amount,
  conditionId: sentinelText,
  outcome: decorativeText,
});

const FIELDS = {
  transactionHash: 'transaction_hash',
  type: 'type',
  timestamp: 'timestamp',
  usdcSize: 'usdc_size',
  price: 'price',
  tokenId: 'token_id',
  conditionId: 'condition_id',
  side: 'side',
  outcome: 'outcome',
} as const;

/**
 * A row under the names of this file; the wire name of the size differs from list to list. A value that is not an object is returned
 * unchanged.
 */
export function withOurFieldNames(raw: unknown, sizeName: 'size' | 'current_size'): unknown {
  if (raw === null || typeof raw !== 'object' || Array.isArray(raw)) return raw;
  const row = raw as Readonly<Record<string, unknown>>;
  const named: Record<string, unknown> = { size: row[sizeName] };
  for (const [name, wireName] of Object.entries(FIELDS)) named[name] = row[wireName];
  return named;
}
