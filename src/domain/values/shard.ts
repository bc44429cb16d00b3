/** The work of one stage is split into this many shards; a shard has one writer at a time. */
export const SHARDS = 16;

export const ALL_SHARDS: readonly number[] = Array.from({ length: SHARDS }, (_, shard) => shard);

/** The shard of a surrogate key. */
export function shardOf(key: bigint): number {
  return Number(key % BigInt(SHARDS));
}
