import { describe, expect, it } from 'vitest';
import { createHostConnections } from '../../../src/venues/http/host-connections.ts';

const never = new AbortController().signal;

describe('createHostConnections', () => {
  it('gives its connections to requests in order of arrival', async () => {
    const connections = createHostConnections(2);
    const given: string[] = [];
    const take = async (name: string) => {
      const release = await connections.acquire(never);
      given.push(name);
      return release;
    };
    const [first, second] = await Promise.all([take('a'), take('b')]);
    const [third, fourth] = [take('c'), take('d')];
    first?.();
    const release = await third;
    expect(given).toEqual(['a', 'b', 'c']);
    second?.();
    await fourth;
    release();
    await take('e');
    expect(given).toEqual(['a', 'b', 'c', 'd', 'e']);
  });

  it('gives no connection to a request that was aborted', async () => {
    const connections = createHostConnections(1);
    const release = await connections.acquire(never);
    const caller = new AbortController();
    const aborted = connections.acquire(caller.signal);
    const next = connections.acquire(never);
    caller.abort(new Error('over'));
    await expect(aborted).rejects.toThrow('over');
    await expect(connections.acquire(caller.signal)).rejects.toThrow('over');
    release();
    expect(await next).toBeTypeOf('function');
  });
});
