import type { Cluster } from 'ioredis';
import { OddswireError } from '../domain/values/errors.ts';

/**
 * Makes `connect` of a client of a Cluster settle in the end. A Cluster that has lost a master a moment ago answers, but says
 * that it is not ready; ioredis (6.0.0) then reconnects and never settles the promise of the first attempt. For
 * BullMQ this means that a worker whose blocking connection was renewed at that moment waits for it without end, while
 * everything else goes on: in about one of four fail-overs.
 */
export function settlingConnects(cluster: Cluster): Cluster {
  const connect = cluster.connect.bind(cluster);
  // One promise for all callers: ioredis calls `connect` for each of its own attempts too.
  let outcome: Promise<void> | undefined;
  cluster.connect = () => {
    outcome ??= outcomeOf(cluster).finally(() => {
      outcome = undefined;
    });
    return Promise.race([connect(), outcome]);
  };
  // BullMQ makes the blocking connection by duplicating the one it is given.
  const duplicate: (...args: Parameters<Cluster['duplicate']>) => Cluster = cluster.duplicate.bind(cluster);
  cluster.duplicate = ((...args: Parameters<Cluster['duplicate']>) =>
    settlingConnects(duplicate(...args))) as Cluster['duplicate'];
  return cluster;
}

/** Resolves when the client is ready, by whichever attempt, and rejects when it gives up. */
function outcomeOf(cluster: Cluster): Promise<void> {
  return new Promise<void>((resolve, reject) => {
    const onReady = () => {
      cluster.off('end', onEnd);
      resolve();
    };
    const onEnd = () => {
      cluster.off('ready', onReady);
      reject(new OddswireError('redis_closed', 'the connection to the Redis Cluster was closed'));
    };
    cluster.once('ready', onReady).once('end', onEnd);
  });
}
