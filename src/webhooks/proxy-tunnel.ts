import { type ClientRequest, request as plainRequest, type RequestOptions } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIPv6, type Socket } from 'node:net';
import { OddswireError } from '../domain/values/errors.ts';
import type { ResolvedAddress } from './resolver.ts';

/** The proxy itself is at fault: it is unreachable, or refuses our credentials. No attempt is counted. */
class ProxyFaultError extends OddswireError {
  constructor(message: string, cause?: unknown) {
    super('proxy_fault', message, { retryable: true, cause });
  }
}

/** The proxy could not, or would not, connect to the receiver. */
class ProxyRefusedError extends OddswireError {
  constructor(message: string, cause?: unknown) {
    super('proxy_refused', message, { retryable: true, cause });
  }
}

/** The proxy accepted the connection, and still waits for the receiver. */
class ProxyTimeoutError extends OddswireError {
  constructor() {
    super('proxy_timeout', 'the proxy did not connect in time', { retryable: true });
  }
}

const PROXY_AUTHENTICATION_REQUIRED = 407;
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

interface TunnelRequest {
  /** `http://` or `https://`, with an optional user name and password. */
  proxy: URL;
  /** The checked address of the receiver: the proxy resolves no name, so it cannot connect to another address. */
  address: ResolvedAddress;
  port: number;
  timeoutMs: number;
}

/** A TCP connection to an address through a proxy, with CONNECT (RFC 9110 section 9.3.6). */
export function openTunnel({ proxy, address: { address }, port, timeoutMs }: TunnelRequest): Promise<Socket> {
  const authority = `${isIPv6(address) ? `[${address}]` : address}:${port}`;
  return new Promise((resolve, reject) => {
    const options: RequestOptions = {
      method: 'CONNECT',
      host: proxy.hostname.replace(/^\[|\]$/g, ''),
      port: proxy.port === '' ? DEFAULT_PORTS[proxy.protocol] : Number(proxy.port),
      path: authority,
      headers: { Host: authority, ...authorization(proxy) },
      agent: false,
    };
    const asking: ClientRequest = proxy.protocol === 'https:' ? tlsRequest(options) : plainRequest(options);
    let isConnected = false;
    const unreachable = (cause?: unknown) => new ProxyFaultError('the proxy cannot be reached', cause);
    const timer = setTimeout(() => asking.destroy(isConnected ? new ProxyTimeoutError() : unreachable()), timeoutMs);
    asking.once('socket', (socket) => {
      socket.once(proxy.protocol === 'https:' ? 'secureConnect' : 'connect', () => {
        isConnected = true;
      });
    });
    asking.once('connect', ({ statusCode = 0 }, socket: Socket) => {
      clearTimeout(timer);
      if (statusCode >= 200 && statusCode < 300) return resolve(socket);
      socket.destroy();
      const isOurs = statusCode === PROXY_AUTHENTICATION_REQUIRED;
      reject(
        isOurs
          ? new ProxyFaultError('the proxy requires other credentials')
          : new ProxyRefusedError(`the proxy answered CONNECT with ${statusCode}`),
      );
    });
    asking.once('error', (error) => {
      clearTimeout(timer);
      if (error instanceof OddswireError) reject(error);
      else reject(isConnected ? new ProxyRefusedError('the proxy closed the connection', error) : unreachable(error));
    });
    asking.end();
  });
}

function authorization({ username, password }: URL): Record<string, string> {
  if (username === '') return {};
  const login = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { 'Proxy-Authorization': `Basic ${Buffer.from(login).toString('base64')}` };
}
