import { setImmediate } from 'node:timers/promises';
import type { Cluster } from 'ioredis';
import { OddswireError } from '../domain/values/errors.ts';

/**
 * Makes `connect` and `disconnect` of a Cluster client always settle (ioredis 6.0.0): each disconnection emits `end`, and a connection
 * begins when the last disconnection is complete. A BullMQ worker waits without end for any of the following.
 *
 * - A Cluster that has just lost a master answers, but reports that it is not ready; ioredis then reconnects and never settles the
 *   promise of the first attempt. This happens in about one of four fail-overs.
 * - A client without a connection, between two attempts or before its first, emits no `end` after `disconnect`, because ioredis waits for
 *   a last connection to close.
 * - A client that is disconnected while it reads its slots becomes ready again, or reconnects, when they arrive.
 * - A client that connects while old connections close emits no `end`, or takes their `close` for its own. A worker does both at once
 *   when it interrupts its blocking command: the command's failure connects, and the interruption waits for `end`.
 */
export function settlingCluster(cluster: Cluster): Cluster {
  const connect = cluster.connect.bind(cluster);
  const disconnect = cluster.disconnect.bind(cluster);
  /** The last disconnection until its `end`. */
  let ending: Promise<void> | undefined;
  let disconnections = 0;
  /** Between a disconnection and the next call of `connect`. */
  let isEnded = false;
  for (const event of ['connect', 'ready', 'reconnecting']) cluster.on(event, () => isEnded && cluster.disconnect());

  const attempt = (since: number) => (since === disconnections ? connect() : Promise.reject(closedError()));
  // One promise for all callers: ioredis calls `connect` for each of its own attempts too.
  let outcome: Promise<void> | undefined;
  cluster.connect = () => {
    isEnded = false;
    const since = disconnections;
    const begun = ending?.then(() => attempt(since)) ?? attempt(since);
    outcome ??= outcomeOf(cluster, ending).finally(() => {
      outcome = undefined;
    });
    return Promise.race([begun, outcome]);
  };

  async function end(): Promise<void> {
    let hasEnded = false;
    const nodes = cluster.nodes();
    cluster.once('end', () => {
      hasEnded = true;
    });
    disconnect();
    await Promise.all(
      nodes.map((node) => node.status === 'end' || new Promise((resolve) => node.once('end', resolve))),
    );
    // Each node that closes emits a `close` of the client in the next turn.
    await setImmediate();
    ending = undefined;
    if (hasEnded) return;
    cluster['manuallyClosing'] = true;
    cluster['handleCloseEvent']();
  }
  cluster.disconnect = (reconnect = false) => {
    if (reconnect) return disconnect(true);
    disconnections += 1;
    if (cluster.status !== 'end') ending ??= end();
    isEnded = true;
  };

  // BullMQ duplicates the given connection for its blocking connection. A client that connects in its constructor would use the original
  // `connect`.
  const duplicate: (...args: Parameters<Cluster['duplicate']>) => Cluster = cluster.duplicate.bind(cluster);
  cluster.duplicate = (nodes, options) => {
    const { lazyConnect = false } = { ...cluster.options, ...options };
    const copy = settlingCluster(duplicate(nodes, { ...options, lazyConnect: true }));
    copy.options.lazyConnect = lazyConnect;
    // ioredis reports a failure as an event `error` too.
    if (!lazyConnect) copy.connect().catch(() => undefined);
    return copy;
  };
  return cluster;
}

/** Resolves when any attempt after the end of a disconnection makes the client ready, and rejects when the client gives up. */
async function outcomeOf(cluster: Cluster, ending: Promise<void> | undefined): Promise<void> {
  await ending;
  return new Promise<void>((resolve, reject) => {
    const onReady = () => {
      cluster.off('end', onEnd);
      resolve();
    };
    const onEnd = () => {
      cluster.off('ready', onReady);
      reject(closedError());
    };
    cluster.once('ready', onReady).once('end', onEnd);
  });
}

function closedError(): OddswireError {
  return new OddswireError('redis_closed', 'the connection to the Redis Cluster was closed');
}
