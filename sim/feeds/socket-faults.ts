import { SimControlError } from '../errors.ts';

/**
 * The faults of a feed. `freeze` sends a connection no more data, for as long as it lives, and still answers its pings. `drop`, `repeat`,
 * `reorder` and `garbage` hit a share of the data messages; `arrays` puts them into lists. `flood` sends each one `times` over. `half_open`
 * neither reads nor writes on a connection any more. `close_large` closes a connection that subscribes to more than `maxIds` at once.
 * `reject` answers handshakes with `status`, and `slow_handshake` checks them after `delayMs`. `restart` ends all connections of the host.
 */
const SOCKET_FAULTS = [
  'freeze',
  'drop',
  'repeat',
  'reorder',
  'garbage',
  'arrays',
  'flood',
  'half_open',
  'close_large',
  'reject',
  'slow_handshake',
  'restart',
] as const;
type SocketFaultKind = (typeof SOCKET_FAULTS)[number];

/** The hosts that have feeds. */
export const FEED_HOSTS = ['clob', 'kalshi', 'manifold', 'limitless'] as const;
export type FeedHost = (typeof FEED_HOSTS)[number];

/** The faults of handshakes, of subscriptions, and of data. */
export type SocketPlace = 'handshake' | 'subscription' | 'data';

export function placeOf({ how }: SocketFault): SocketPlace {
  return how === 'reject' || how === 'slow_handshake' ? 'handshake' : how === 'close_large' ? 'subscription' : 'data';
}

export interface SocketFault {
  readonly how: SocketFaultKind;
  /** The share of data messages, 0..1. Default 0.1. */
  readonly share?: number | undefined;
  /** `flood`: copies of each message. Default 20. */
  readonly times?: number | undefined;
  /** `close_large`: default 50. */
  readonly maxIds?: number | undefined;
  /** `reject`: default 429. */
  readonly status?: number | undefined;
  /** `slow_handshake`: default 6,000. */
  readonly delayMs?: number | undefined;
}

/** @throws SimControlError */
export function checkSocketFault(host: string, { how, share, times, maxIds, status, delayMs }: SocketFault): void {
  const refuse = (message: string) => new SimControlError(400, 'invalid_fault', message);
  const isFeedHost = (FEED_HOSTS as readonly string[]).includes(host) || host === '*' || host === 'polymarket';
  if (!isFeedHost) throw refuse(`a socket fault needs a host of ${FEED_HOSTS.join(' ')}`);
  if (!SOCKET_FAULTS.includes(how)) throw refuse(`socket.how must be one of ${SOCKET_FAULTS.join(' ')}`);
  if (share !== undefined && !(share >= 0 && share <= 1)) throw refuse('socket.share must be 0..1');
  const isCount = (value: number | undefined) => value === undefined || (Number.isInteger(value) && value > 0);
  if (!isCount(times) || !isCount(maxIds)) throw refuse('socket.times and socket.maxIds must be positive integers');
  if (delayMs !== undefined && !(Number.isInteger(delayMs) && delayMs >= 0 && delayMs <= 60_000)) {
    throw refuse('socket.delayMs must be 0..60000');
  }
  if (status !== undefined && !(Number.isInteger(status) && status >= 400 && status <= 599)) {
    throw refuse('socket.status must be 400..599');
  }
}
