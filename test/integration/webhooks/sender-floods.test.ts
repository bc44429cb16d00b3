import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Sender } from '../../../src/webhooks/sender.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';
import { testAuthority } from '../../support/tls.ts';
import { delivery, testSender } from './deliveries.ts';

const AT_ONCE = 4;
const MIB = 1024 * 1024;
/** An unlimited flood is hundreds of MiB a second. Most of this is garbage that was not collected yet. */
const PEAK_BYTES = 64 * MIB;
const KEPT_BYTES = 8 * MIB;

let server: ChildProcess;
let sender: Sender;
let port = 0;
let paths: string[] = [];
let open = 0;

beforeAll(async () => {
  server = fork(join(import.meta.dirname, 'flood-server.mjs'));
  const ready = once(server, 'message') as Promise<[{ port: number; paths: string[] }]>;
  server.send(await (await testAuthority()).issue(['127.0.0.1']));
  [{ port, paths }] = await ready;
  server.on('message', (message: { open: number }) => {
    open = message.open;
  });
  sender = await testSender();
});
afterAll(async () => {
  await sender.close();
  const exited = once(server, 'exit');
  server.disconnect();
  await exited;
});

function usedBytes(): number {
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const FLOODS: readonly [string, object][] = [
  ['/body', { kind: 'delivered', statusCode: 200 }],
  ['/failing-body', { kind: 'failed', errorCode: 'http_status', statusCode: 500 }],
  ['/chunked-body', { kind: 'delivered', statusCode: 200 }],
  ['/tiny-chunks', { kind: 'delivered', statusCode: 200 }],
  ['/chunk-extension', { kind: 'delivered', statusCode: 200 }],
  ['/trailers', { kind: 'delivered', statusCode: 200 }],
  ['/gzip-body', { kind: 'delivered', statusCode: 200 }],
  ['/headers', { kind: 'failed', errorCode: 'header_overflow' }],
  ['/one-header', { kind: 'failed', errorCode: 'header_overflow' }],
  ['/header-name', { kind: 'failed', errorCode: 'header_overflow' }],
  ['/reason', { kind: 'failed', errorCode: 'header_overflow' }],
  ['/early-hints', { kind: 'failed', errorCode: 'header_overflow' }],
  ['/continues', { kind: 'failed', errorCode: 'connection_reset' }],
  ['/blank-lines', { kind: 'failed', errorCode: 'header_overflow' }],
  ['/zeros', { kind: 'failed', errorCode: 'protocol_error' }],
];

it('the test covers every flood of the server', () => expect(FLOODS.map(([path]) => path)).toEqual(paths));

it.each(FLOODS)(
  'the sender ends an endless %s as %o, in bounded memory, with the connection closed',
  async (path, expected) => {
    await collectGarbage(1);
    const beforeBytes = usedBytes();
    let peakBytes = 0;
    const sampling = setInterval(() => {
      peakBytes = Math.max(peakBytes, usedBytes() - beforeBytes);
    }, 5);
    const url = `https://127.0.0.1:${port}${path}`;
    const outcomes = await Promise.all(Array.from({ length: AT_ONCE }, () => sender.send(delivery(url))));
    clearInterval(sampling);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject(expected);
      expect(outcome.responseExcerpt?.length ?? 0).toBeLessThanOrEqual(4096);
    }
    await expect.poll(() => open).toBe(0);
    expect(peakBytes).toBeLessThan(PEAK_BYTES);
    await collectGarbage(1);
    expect(usedBytes() - beforeBytes).toBeLessThan(KEPT_BYTES);
  },
);
