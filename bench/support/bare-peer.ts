import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { createAuthority } from '../../sim/receiver-tls.ts';

/** When an event's POST arrived, epoch milliseconds. */
export type Arrival = [eventId: string, atMs: number];

/** The TLS receiver of bare-receiver.mjs, in a process of its own: both oddswire and the bare loop deliver to it. */
export interface BareReceiver {
  readonly origin: string;
  readonly caPem: string;
  /** A file that holds `caPem`. */
  readonly caFile: string;
  /** Resets the counters; with `quickOnly` requests to `/dead` and `/after` are not counted. */
  forget(options?: { quickOnly: boolean }): Promise<void>;
  /** Resolves after this number of arrivals. */
  arrivals(count: number): Promise<Arrival[]>;
  stop(): Promise<void>;
}

export async function startBareReceiver(): Promise<BareReceiver> {
  const ca = await createAuthority();
  const directory = await mkdtemp(join(tmpdir(), 'oddswire-bench-'));
  const caFile = join(directory, 'ca.pem');
  await writeFile(caFile, ca.caPem);
  const child = fork(join(import.meta.dirname, 'bare-receiver.mjs'));
  const ready = answerOf<{ port: number }>(child);
  child.send({ certificate: await ca.issue(['127.0.0.1', 'localhost']) });
  const { port } = await ready;
  return {
    origin: `https://127.0.0.1:${port}`,
    caPem: ca.caPem,
    caFile,
    async forget({ quickOnly } = { quickOnly: false }) {
      const forgotten = answerOf(child);
      child.send({ forget: true, quickOnly });
      await forgotten;
    },
    async arrivals(count) {
      const answer = answerOf<{ arrivals: Arrival[] }>(child);
      child.send({ until: count });
      return (await answer).arrivals;
    },
    async stop() {
      child.disconnect();
      await rm(directory, { recursive: true });
    },
  };
}

async function answerOf<T>(child: ChildProcess): Promise<T> {
  const [message] = (await once(child, 'message')) as [T];
  return message;
}

/** Arrivals per second, between the first and the last. */
export function rateOf(arrivals: readonly Arrival[]): number {
  let [first, last] = [Number.POSITIVE_INFINITY, 0];
  for (const [, atMs] of arrivals) [first, last] = [Math.min(first, atMs), Math.max(last, atMs)];
  return ((arrivals.length - 1) * 1_000) / Math.max(1, last - first);
}

/** The physical limit of deliveries: posts per second of the bare undici loop of bare-poster.mjs, unsigned, from no database. */
export async function barePosts(
  receiver: BareReceiver,
  { paths, posts, connections, body }: { paths: readonly string[]; posts: number; connections: number; body: string },
): Promise<number> {
  await receiver.forget();
  const poster = fork(join(import.meta.dirname, 'bare-poster.mjs'));
  const headers = {
    'content-type': 'application/json',
    'x-webhook-signature': `sha256=${'0'.repeat(64)}`,
    'webhook-signature': `v1,${'0'.repeat(44)}`,
  };
  const answer = answerOf<{ failed: number }>(poster);
  poster.send({ caPem: receiver.caPem, origin: receiver.origin, paths, posts, connections, headers, body });
  expect((await answer).failed).toBe(0);
  poster.disconnect();
  return rateOf(await receiver.arrivals(posts));
}
