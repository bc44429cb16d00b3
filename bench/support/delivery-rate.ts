import { newId } from '../../src/domain/values/ids.ts';
import { sql } from '../../src/store/db/tx.ts';
import { type BareReceiver, barePosts, rateOf } from './bare-peer.ts';
import { aDeliveryWorld, anAlertBody } from './delivery-world.ts';

/** The sender's limit per origin; the bare loop has the same. */
const CONNECTIONS = 64;
/** The limit per endpoint, as in the claim. */
const IN_FLIGHT = 8;
/** Deliveries that are stored at once. */
const CHUNK = 5_000;
const ANALYZE = sql('bench_analyze_deliveries', 'ANALYZE delivery, event, webhook_subscription');

export interface DeliveryLoad {
  deliveries: number;
  endpoints: number;
  /** The paths of bare-receiver.mjs: `hook` answers at once, `after/100` after 100 ms. */
  kind?: string;
  /** Processes that deliver. Default 1. */
  deliverers?: number;
}

/** Deliveries per second of a backlog that exists before the processes start, and posts per second of the bare loop around it. */
export async function deliveryRate(receiver: BareReceiver, load: DeliveryLoad): Promise<{ own: number; bare: number }> {
  const { deliveries, endpoints, kind = 'hook', deliverers = 1 } = load;
  const paths = Array.from({ length: endpoints }, (_, index) => `/${kind}/${index}`);
  const connections = Math.min(CONNECTIONS, endpoints * IN_FLIGHT);
  const bare = { paths, posts: deliveries, connections, body: anAlertBody(newId('evt')) };
  const before = await barePosts(receiver, bare);
  const own = await ownRate(receiver, paths, { deliveries, deliverers });
  const after = await barePosts(receiver, bare);
  return { own, bare: (before + after) / 2 };
}

async function ownRate(
  receiver: BareReceiver,
  paths: readonly string[],
  { deliveries, deliverers }: { deliveries: number; deliverers: number },
): Promise<number> {
  const world = await aDeliveryWorld(receiver);
  try {
    const subscriptions = await world.subscribe(paths);
    const due = Array.from({ length: deliveries }, (_, index) => subscriptions[index % subscriptions.length] ?? 0n);
    for (let from = 0; from < due.length; from += CHUNK) await world.makeDue(due.slice(from, from + CHUNK));
    await world.db.query(ANALYZE);
    await receiver.forget();
    await Promise.all(Array.from({ length: deliverers }, () => world.start('deliverer')));
    return rateOf(await receiver.arrivals(deliveries));
  } finally {
    await world.stop();
  }
}
