import { describe, expect, it } from 'vitest';
import { SHARDS, shardOf } from '../../../../src/domain/values/shard.ts';

describe('shardOf', () => {
  it('is the remainder, also for large keys', () => {
    expect(shardOf(0n)).toBe(0);
    expect(shardOf(BigInt(SHARDS) + 3n)).toBe(3);
    expect(shardOf(9_223_372_036_854_775_807n)).toBe(15);
  });
});
