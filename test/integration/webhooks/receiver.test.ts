import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startReceiver } from '../../../sim/receiver.ts';
import { openAuthority } from '../../../sim/receiver-tls.ts';
import { GUARD_MS } from '../../support/eventually.ts';
import { delivery, SECRET, testSender } from './deliveries.ts';

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'oddswire-receiver-'));
});
afterAll(() => rm(directory, { recursive: true }));

describe('local receiver', () => {
  it('distinguishes good signatures from bad, missing and unknown ones, and marks repeats', async () => {
    const receiver = await startReceiver();
    const sender = await testSender({ extraCaPem: receiver.caPem });
    const verdicts = async () => {
      await sender.send(delivery(receiver.url));
      const { bodySignature, standardSignature, duplicate } = receiver.requests.at(-1) ?? {};
      return [bodySignature, standardSignature, duplicate];
    };
    expect(await verdicts()).toEqual(['unchecked', 'unchecked', false]);
    receiver.expectSecrets(['some other secret', SECRET]);
    expect(await verdicts()).toEqual(['ok', 'ok', true]);
    receiver.expectSecrets(['some other secret']);
    expect(await verdicts()).toEqual(['bad', 'bad', true]);
    await sender.close();
    await receiver.close();
  });

  it('waits for past and future requests, and rejects after the timeout', async () => {
    const receiver = await startReceiver();
    const sender = await testSender({ extraCaPem: receiver.caPem });
    const second = receiver.waitFor(({ path }) => path === '/second', GUARD_MS);
    const both = receiver.waitForCount(2, GUARD_MS);
    await sender.send(delivery(`${receiver.url}/first`));
    await sender.send(delivery(`${receiver.url}/second`));
    expect((await second).sequence).toBe(2);
    expect(await both).toHaveLength(2);
    expect((await receiver.waitFor(({ path }) => path === '/first', GUARD_MS)).sequence).toBe(1);
    await expect(receiver.waitFor(({ path }) => path === '/third', 10)).rejects.toThrow('2 requests came');
    const never = receiver.waitForCount(99, GUARD_MS);
    const refused = expect(never).rejects.toThrow('closed');
    await receiver.close();
    await refused;
    await sender.close();
  });

  it('answers by its reply: fixed, by function, late, broken', async () => {
    const receiver = await startReceiver({ reply: { status: 418, headers: { 'x-tea': 'yes' }, body: 'short' } });
    const sender = await testSender({ extraCaPem: receiver.caPem });
    const send = () => sender.send(delivery(receiver.url));
    expect(await send()).toMatchObject({ statusCode: 418, responseExcerpt: Buffer.from('short') });
    receiver.replyWith(({ sequence }) => ({ status: sequence === 2 ? 503 : 200 }));
    expect([await send(), await send()].map(({ statusCode }) => statusCode)).toEqual([503, 200]);
    receiver.replyWith({ delayMs: 20, status: 202 });
    expect(await send()).toMatchObject({ statusCode: 202 });
    receiver.replyWith((_request, response) => {
      response.destroy();
      return undefined;
    });
    expect(await send()).toMatchObject({ errorCode: 'connection_reset' });
    receiver.replyWith(() => {
      throw new Error('a broken rule');
    });
    expect(await send()).toMatchObject({ statusCode: 500, responseExcerpt: Buffer.from('a broken rule') });
    await sender.close();
    await receiver.close();
  });

  it('keeps its authority over restarts, with the key readable by its owner only', async () => {
    const caDirectory = join(directory, 'kept');
    const first = await startReceiver({ caDirectory });
    await first.close();
    const second = await startReceiver({ caDirectory });
    expect(second.caPem).toBe(first.caPem);
    expect(await readFile(join(caDirectory, 'ca.pem'), 'utf8')).toBe(first.caPem);
    expect((await stat(join(caDirectory, 'ca-key.pem'))).mode & 0o077).toBe(0);
    const sender = await testSender({ extraCaPem: first.caPem });
    expect(await sender.send(delivery(second.url))).toMatchObject({ kind: 'delivered' });
    await sender.close();
    await second.close();
  });

  it('names a broken file', async () => {
    const storePath = join(directory, 'ca-key.pem');
    await writeFile(storePath, 'nonsense');
    await expect(openAuthority(directory)).rejects.toThrow(storePath);
  });

  it('rejects a taken port, and closes with an open connection', async () => {
    const receiver = await startReceiver({ reply: () => new Promise<undefined>(() => undefined) });
    await expect(startReceiver({ port: receiver.port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
    const sender = await testSender({ extraCaPem: receiver.caPem });
    const sending = sender.send(delivery(receiver.url));
    await receiver.waitForCount(1, GUARD_MS);
    await receiver.close();
    expect(await sending).toMatchObject({ errorCode: 'connection_reset' });
    await sender.close();
  });

  it('drops the oldest requests beyond its limit', async () => {
    const receiver = await startReceiver({ maxRecorded: 2 });
    const sender = await testSender({ extraCaPem: receiver.caPem });
    for (const eventId of ['evt_a', 'evt_b', 'evt_c', 'evt_a']) await sender.send(delivery(receiver.url, { eventId }));
    expect(receiver.requests.map(({ sequence, duplicate }) => [sequence, duplicate])).toEqual([
      [3, false],
      [4, false],
    ]);
    expect(await receiver.waitForCount(4, GUARD_MS)).toHaveLength(2);
    await sender.close();
    await receiver.close();
  });
});
