import type { IncomingMessage } from 'node:http';
import { type Cidr, networkOf } from '../../src/domain/webhooks/address-policy.ts';

/**
 * The network that a request comes from: its IPv4 address, or the /64 of its IPv6 address, which a provider gives to one customer.
 * Behind trusted proxies it is the nearest address in `X-Forwarded-For` that is not a trusted proxy, because any client can write the
 * addresses further left. `unknown` when the connection is closed.
 */
export function clientNetwork(req: IncomingMessage, trusted: readonly Cidr[]): string {
  let network = networkOf(req.socket.remoteAddress ?? '', trusted);
  if (network?.isWithin && trusted.length > 0) {
    const forwarded = String(req.headers['x-forwarded-for'] ?? '').split(',');
    for (let i = forwarded.length - 1; i >= 0 && network.isWithin; i--) {
      const next = networkOf((forwarded[i] ?? '').trim(), trusted);
      if (next === null) break;
      network = next;
    }
  }
  return network?.text ?? 'unknown';
}
