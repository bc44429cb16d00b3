/** Work of one stage is spread over this many shards; a shard has one writer at a time (DESIGN section 2). */
export const SHARDS = 16;

export const ALL_SHARDS: readonly number[] = Array.from({ length: SHARDS }, (_, shard) => shard);

/** The shard of a surrogate key. */
export function shardOf(key: bigint): number {
  return Number(key % BigInt(SHARDS));
}
