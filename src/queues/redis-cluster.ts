import type { Cluster } from 'ioredis';
import { OddswireError } from '../domain/values/errors.ts';

/**
 * Makes `connect` and `disconnect` of a Cluster client always settle (ioredis 6.0.0).
 *
 * - A Cluster that has just lost a master answers, but reports that it is not ready; ioredis then reconnects and never settles the
 *   promise of the first attempt. A BullMQ worker that renews its blocking connection at that moment waits without end, while all
 *   other connections work: in about one of four fail-overs.
 * - A client without a connection, between two attempts or before its first, never emits `end` after `disconnect`, because ioredis
 *   waits for a last connection to close. A BullMQ worker that closes at that moment waits without end.
 */
export function settlingCluster(cluster: Cluster): Cluster {
  const connect = cluster.connect.bind(cluster);
  const disconnect = cluster.disconnect.bind(cluster);
  /** A client that connects again meanwhile does not end. */
  const endIfIdle = () => {
    if (cluster.status === 'disconnecting') cluster['handleCloseEvent']();
  };
  // One promise for all callers: ioredis calls `connect` for each of its own attempts too.
  let outcome: Promise<void> | undefined;
  cluster.connect = () => {
    outcome ??= outcomeOf(cluster).finally(() => {
      outcome = undefined;
    });
    const attempt = connect();
    attempt.catch(endIfIdle);
    return Promise.race([attempt, outcome]);
  };
  cluster.disconnect = (reconnect = false) => {
    const wasWaiting = cluster.status === 'reconnecting';
    disconnect(reconnect);
    if (wasWaiting && !reconnect) process.nextTick(endIfIdle);
  };
  // BullMQ duplicates the given connection for its blocking connection.
  const duplicate: (...args: Parameters<Cluster['duplicate']>) => Cluster = cluster.duplicate.bind(cluster);
  cluster.duplicate = ((...args: Parameters<Cluster['duplicate']>) =>
    settlingCluster(duplicate(...args))) as Cluster['duplicate'];
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
