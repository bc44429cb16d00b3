import { describe, expect, it } from 'vitest';
import { Parts } from '../../../src/runtime/parts.ts';

function process(...names: string[]) {
  const codes: number[] = [];
  return { codes, parts: new Parts(names, (code) => void codes.push(code)) };
}

describe('a process of several parts', () => {
  it('ends when a part fails', () => {
    const { codes, parts } = process('api', 'poller');
    parts.ended('poller', 1);
    expect(codes).toEqual([1]);
  });

  it('leaves the others their time when a part does not stop cleanly, and ends with its code', () => {
    const { codes, parts } = process('api', 'streamer', 'deliverer');
    parts.stopping();
    parts.ended('streamer', 1);
    parts.ended('api', 0);
    expect(codes).toEqual([]);
    parts.ended('deliverer', 0);
    expect(codes).toEqual([1]);
  });

  it('counts a part once that ends at its limit and again later', () => {
    const { codes, parts } = process('api', 'deliverer');
    parts.stopping();
    parts.ended('api', 1);
    parts.ended('api', 0);
    expect(codes).toEqual([]);
  });
});
