import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { createResolver } from '../../../src/webhooks/resolver.ts';

/** A DNS client with scripted answers; counts the requested names. */
function fakeClient(answer: (name: string, family: 4 | 6) => Promise<string[]>) {
  const asked: string[] = [];
  const client = {
    resolve4(name: string) {
      asked.push(name);
      return answer(name, 4);
    },
    resolve6: (name: string) => answer(name, 6),
    cancel: () => undefined,
  };
  return { client, asked };
}

const notFound = () => Promise.reject(Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' }));

describe('resolver', () => {
  it('joins both families, IPv4 first', async () => {
    const { client } = fakeClient(async (_name, family) => (family === 4 ? ['192.0.2.1'] : ['2001:db8::1']));
    expect(await createResolver({ client }).resolve('example.com')).toEqual([
      { address: '192.0.2.1', family: 4 },
      { address: '2001:db8::1', family: 6 },
    ]);
  });

  it.each([4, 6] as const)('answers with one family when the other fails (only IPv%i works)', async (there) => {
    const { client } = fakeClient((_name, family) => (family === there ? Promise.resolve(['192.0.2.1']) : notFound()));
    expect(await createResolver({ client }).resolve('example.com')).toEqual([{ address: '192.0.2.1', family: there }]);
  });

  it('rejects without an address, after a failure or an empty answer', async () => {
    await expect(createResolver(fakeClient(notFound)).resolve('a.test')).rejects.toThrow('ENOTFOUND');
    await expect(createResolver(fakeClient(async () => [])).resolve('a.test')).rejects.toMatchObject({
      message: 'no address for a.test',
    });
  });

  it('asks once for a name within 30 seconds, in any case, and again afterwards', async () => {
    const { client, asked } = fakeClient(async () => ['192.0.2.1']);
    const resolver = createResolver({ client });
    const clock = vi.spyOn(performance, 'now');
    onTestFinished(() => clock.mockRestore());
    for (const [ms, name] of [
      [1, 'example.com'],
      [30_000, 'EXAMPLE.com'],
      [30_002, 'example.com'],
    ] as const) {
      clock.mockReturnValue(ms);
      await resolver.resolve(name);
      expect(asked).toHaveLength(ms > 30_000 ? 2 : 1);
      // The cache reads the clock at most once a millisecond.
      await delay(5);
    }
  });

  it('does not cache a failure', async () => {
    let broken = true;
    const { client, asked } = fakeClient(() => (broken ? notFound() : Promise.resolve(['192.0.2.1'])));
    const resolver = createResolver({ client });
    await expect(resolver.resolve('a.test')).rejects.toThrow();
    broken = false;
    expect(await resolver.resolve('a.test')).toHaveLength(2);
    expect(asked).toHaveLength(2);
  });

  it('merges concurrent look-ups of one name', async () => {
    const { client, asked } = fakeClient(async () => ['192.0.2.1']);
    const resolver = createResolver({ client });
    const answers = await Promise.all(Array.from({ length: 50 }, () => resolver.resolve('example.com')));
    expect(asked).toHaveLength(1);
    expect(new Set(answers.map((answer) => answer[0]?.address))).toEqual(new Set(['192.0.2.1']));
  });

  it('limits the names in flight and continues with the others, also after failures', async () => {
    let inFlight = 0;
    let most = 0;
    const { client, asked } = fakeClient(async (name, family) => {
      if (family === 6) return notFound();
      inFlight += 1;
      most = Math.max(most, inFlight);
      await nextTurn();
      inFlight -= 1;
      return name.startsWith('bad') ? notFound() : ['192.0.2.1'];
    });
    const resolver = createResolver({ client, maxInFlight: 3 });
    const names = Array.from({ length: 20 }, (_, index) => `${index % 3 === 0 ? 'bad' : 'good'}${index}.test`);
    const results = await Promise.allSettled(names.map((name) => resolver.resolve(name)));
    expect(most).toBe(3);
    expect(asked).toHaveLength(20);
    expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(7);
  });

  it('frees each slot, look-up after look-up', async () => {
    const resolver = createResolver({ client: fakeClient(notFound).client, maxInFlight: 1 });
    for (const name of ['a.test', 'b.test', 'c.test'])
      await expect(resolver.resolve(name)).rejects.toThrow('ENOTFOUND');
  });

  it('looks up 256 names at once by default', async () => {
    const { client, asked } = fakeClient(() => new Promise(() => undefined));
    const resolver = createResolver({ client });
    for (let index = 0; index < 300; index += 1) void resolver.resolve(`${index}.test`);
    await nextTurn();
    expect(asked).toHaveLength(256);
  });

  it('cancels look-ups in flight when it is closed', () => {
    const { client } = fakeClient(notFound);
    const cancel = vi.spyOn(client, 'cancel');
    createResolver({ client }).close();
    expect(cancel).toHaveBeenCalledTimes(1);
  });

  it.each(['localhost', 'LOCALHOST', 'a.localhost', 'localhost.localdomain', 'ip6-localhost', 'ip6-loopback'])(
    'answers %s without DNS',
    async (name) => {
      const { client, asked } = fakeClient(async () => ['8.8.8.8']);
      expect(await createResolver({ client }).resolve(name)).toEqual([{ address: '127.0.0.1', family: 4 }]);
      expect(asked).toEqual([]);
    },
  );
});
