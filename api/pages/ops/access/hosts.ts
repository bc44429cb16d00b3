import type { Middleware } from 'koa';
import { hostNameOf, isFixedHost } from '../../../../src/domain/values/host-name.ts';
import type { ApiState, OpsOptions } from '../../../deps.ts';
import { ApiError } from '../../../errors.ts';

/**
 * Accepts requests for the host names of the pages only. By DNS rebinding, the owner of any domain can point it at this address, for
 * example at 127.0.0.1: for a browser, its pages and the operator pages then have the same origin. Only the Host header shows the
 * difference. Without configured names, the pages accept loopback names and IP addresses, which a domain cannot imitate.
 */
export function opsHosts({ hosts = [] }: Pick<OpsOptions, 'hosts'>): Middleware<ApiState> {
  return async (ctx, next) => {
    const name = hostNameOf(ctx.get('Host'));
    const isAccepted = name !== null && (hosts.length > 0 ? hosts.includes(name) : isFixedHost(name));
    if (isAccepted) return next();
    throw new ApiError(
      'misdirected_request',
      'the operator pages do not serve this host name; OPS_HOSTS and OPS_PUBLIC_URL name their hosts',
    );
  };
}
