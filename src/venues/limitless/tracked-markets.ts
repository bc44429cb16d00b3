import { z } from 'zod';
import { parseDecimal } from '../../domain/values/decimal.ts';
import { textOf } from './listed-rows.ts';
import { limitlessPrices } from './models.ts';
import { tradeTypeOf } from './parse-market.ts';

/**
 * The markets whose feeds the live walk reads, in its position. The venue has no feed of all markets, and the volume in the listing is
 * the sign of a trade. All times are epoch milliseconds, 0 for never.
 */
export const tracked = z.object({
  /** Lifetime volume as the venue wrote it; empty where it wrote none. */
  v: z.string(),
  /** When the listing last showed another volume, or showed the market no more. */
  c: z.number(),
  /** The state of the feed that was read last is at least this new. */
  r: z.number(),
  /** Every trade up to here was read. */
  t: z.number(),
  /** The start of the last round that listed it. */
  s: z.number(),
  gone: z.literal(1).exactOptional(),
});
export type Tracked = z.infer<typeof tracked>;

/**
 * A volume that just changed may be ahead of the feed, which the CDN serves for 30 s. The feed is read again when this much time has
 * passed.
 */
const CONFIRM_MS = 40_000;
/** Every feed with trades is read this often, with or without a new volume. */
const REREAD_MS = 15 * 60_000;

/** Whether the feed of a market is worth a request now. */
export function isDue({ v, c, r }: Tracked, nowMs: number): boolean {
  const confirmMs = c + CONFIRM_MS;
  return r < c || (c > 0 && nowMs >= confirmMs && r < confirmMs) || (v !== '0' && nowMs - r >= REREAD_MS);
}

/** Whether a market that left the listing can have no further trades. */
export function isSpent({ c, r, gone }: Tracked): boolean {
  return gone === 1 && r >= c + CONFIRM_MS;
}

interface ListedVolume {
  slug: string;
  /** As the venue wrote it; empty where it wrote none. */
  volume: string;
  /** Only a market with a book has a feed that is read. */
  hasFeed: boolean;
}

/** The facts of a market in a listing; undefined for any other row. */
export function volumeOf(row: unknown): ListedVolume | undefined {
  const parsed = limitlessPrices.pick({ slug: true, tokens: true, tradeType: true, group: true }).safeParse(row);
  if (!parsed.success) return undefined;
  const { slug, tokens } = parsed.data;
  const { volume } = row as { volume?: unknown };
  const hasFeed = tradeTypeOf(parsed.data) === 'clob' && Boolean(tokens);
  return { slug, volume: parseDecimal(volume) ?? '', hasFeed };
}

/** A market after a page of a round listed it. Without a volume a trade leaves no sign, so its feed is read in each round. */
export function afterListed(before: Tracked | undefined, volume: string, nowMs: number, roundMs: number): Tracked {
  if (before === undefined) return { v: volume, c: volume === '0' ? 0 : nowMs, r: 0, t: 0, s: roundMs };
  const { gone, ...rest } = before;
  const isChanged = volume === '' || volume !== before.v || gone === 1;
  return { ...rest, v: volume, s: roundMs, ...(isChanged && { c: nowMs }) };
}

/** Whether a raw row of a listing is one of a market at all. */
export function hasSlug(row: unknown): boolean {
  return textOf(row, 'slug') !== undefined;
}
