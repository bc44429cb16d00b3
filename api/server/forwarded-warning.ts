import type { IncomingMessage, Server } from 'node:http';
import { type Cidr, networkOf } from '../../src/domain/webhooks/address-policy.ts';
import type { Logger } from '../../src/observe/logger.ts';

const HEADERS = ['x-forwarded-for', 'forwarded'] as const;

/**
 * Warns at the first request with a header of a proxy from an address outside the trusted proxies. Such a proxy is probably the operator's
 * own: without its address in TRUSTED_PROXIES all of its clients share the limits of one address.
 */
export function warnOfUntrustedProxy(server: Server, trusted: readonly Cidr[], log: Logger): void {
  server.on('request', function check({ headers, socket }: IncomingMessage) {
    const header = HEADERS.find((name) => headers[name] !== undefined);
    if (header === undefined || networkOf(socket.remoteAddress ?? '', trusted)?.isWithin !== false) return;
    server.off('request', check);
    log.warn(
      { header, peer: socket.remoteAddress, variable: 'TRUSTED_PROXIES' },
      'a header with the addresses of clients is ignored: if the peer is your proxy, add its address to TRUSTED_PROXIES',
    );
  });
}
