import type { Cluster } from 'ioredis';
import { OddswireError } from '../domain/values/errors.ts';

/**
 * Makes `connect` of a Cluster client always settle. A Cluster that has just lost a master answers, but reports that it is not
 * ready; ioredis (6.0.0) then reconnects and never settles the promise of the first attempt. A BullMQ worker that renews its
 * blocking connection at that moment waits without end, while all other connections work: in about one of four fail-overs.
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
  // BullMQ duplicates the given connection for its blocking connection.
  const duplicate: (...args: Parameters<Cluster['duplicate']>) => Cluster = cluster.duplicate.bind(cluster);
  cluster.duplicate = ((...args: Parameters<Cluster['duplicate']>) =>
    settlingConnects(duplicate(...args))) as Cluster['duplicate'];
  return cluster;
}

/** Resolves when any attempt makes the client ready, and rejects when the client gives up. */
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
