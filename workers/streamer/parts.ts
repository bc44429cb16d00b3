import type { FeedLimits } from '../../src/venues/feeds/port.ts';

/** The number of parts of a venue, so that a part of average size is half full: markets spread over the parts by a hash. */
export function partCount({ connections, marketsPerConnection }: FeedLimits, markets: number): number {
  return Math.max(1, Math.min(connections, Math.ceil((2 * markets) / marketsPerConnection)));
}

/** The part of a market, the same in every process. FNV-1a over UTF-16 units. */
export function partOf(marketId: string, parts: number): number {
  let hash = 0x81_1c_9d_c5;
  for (let index = 0; index < marketId.length; index += 1) {
    hash = Math.imul(hash ^ marketId.charCodeAt(index), 0x01_00_01_93);
  }
  return (hash >>> 0) % parts;
}
