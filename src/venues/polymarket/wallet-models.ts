import { z } from 'zod';

/**
 * Rows of the Data API's wallet routes (venue documentation section 1.8), v2 in snake case and v1 in camel case, read as one.
 * Rows that are no trades carry sentinels: `""` for what they have not, 999 for the outcome's index.
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

/** Our name of each field, v2's and v1's. */
const FIELDS = {
  transactionHash: ['transaction_hash', 'transactionHash'],
  type: ['type', 'type'],
  timestamp: ['timestamp', 'timestamp'],
  usdcSize: ['usdc_size', 'usdcSize'],
  price: ['price', 'price'],
  tokenId: ['token_id', 'asset'],
  conditionId: ['condition_id', 'conditionId'],
  side: ['side', 'side'],
  outcome: ['outcome', 'outcome'],
} as const;

/** A row under our names; `size` is named apart, for it means another thing in each list. Not an object: as it came. */
export function underOurNames(raw: unknown, sizeNames: readonly [v2: string, v1: string]): unknown {
  if (raw === null || typeof raw !== 'object' || Array.isArray(raw)) return raw;
  const row = raw as Readonly<Record<string, unknown>>;
  const named: Record<string, unknown> = { size: row[sizeNames[0]] ?? row[sizeNames[1]] };
  for (const [name, [v2, v1]] of Object.entries(FIELDS)) named[name] = row[v2] ?? row[v1];
  return named;
}
