import { X509Certificate } from 'node:crypto';
import { type ClientRequest, request as plainRequest, type RequestOptions } from 'node:http';
import { request as tlsRequest } from 'node:https';
import { isIP, isIPv6, type LookupFunction, type Socket } from 'node:net';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';
import { Agent, buildConnector, errors } from 'undici';
import { OddswireError } from '../domain/values/errors.ts';
import { type AddressRules, isPublicAddress, PUBLIC_ONLY } from '../domain/webhooks/address-policy.ts';
import type { NameResolver, ResolvedAddress } from './resolver.ts';

/** Response headers beyond this size end the connection. */
const MAX_HEADER_BYTES = 16 * 1024;
/**
 * The maximum of bytes on the wire per answer; beyond it the connection is closed. Headers and body have limits of their own; an
 * endless status line, 1xx answers, blank lines or chunk extensions would otherwise use a processor until the deadline.
 * A 16 KiB body in one-byte chunks is 96 KiB.
 */
const MAX_ANSWER_BYTES = 256 * 1024;
const KEEP_ALIVE_MS = 10_000;
/** The maximum that a keep-alive hint of the receiver may extend the above to. */
const KEEP_ALIVE_MAX_MS = 60_000;
/** Time for one of several addresses before the next is tried too; Node's 250 ms is shorter than some handshakes. */
const NEXT_ADDRESS_MS = 1000;
/** Addresses tried per connection. All resolved addresses are checked. */
const MAX_ADDRESSES = 8;
const HTTPS_PORT = 443;

/** The destination is, or resolves to, a forbidden address. The message deliberately omits the address. */
class BlockedAddressError extends OddswireError {
  constructor() {
    super('blocked_address', 'the destination address is not allowed');
  }
}

/** The destination's name could not be resolved. */
class NameResolutionError extends OddswireError {
  constructor(cause: unknown) {
    super('dns_error', 'the destination name cannot be resolved', { retryable: true, cause });
  }
}

/** The receiver sent more bytes than one answer may have. */
class AnswerTooLongError extends OddswireError {
  constructor() {
    super('answer_too_long', 'the answer does not end', { retryable: true });
  }
}

/** A name gets the code of a missing name: otherwise the owner of a webhook could explore the names of this network. */
function blockedTarget(hostname: string): OddswireError {
  const blocked = new BlockedAddressError();
  return isIP(hostname) === 0 ? new NameResolutionError(blocked) : blocked;
}

interface GuardedAgentOptions {
  readonly resolver: NameResolver;
  /** The operator's exceptions to the address policy. */
  readonly rules?: AddressRules;
  /** PEM certificates trusted beside the default roots. */
  readonly extraCaPem?: string;
  /** Over name look-up, TCP and TLS. */
  readonly connectTimeoutMs: number;
  /** Every connection goes through this proxy, to an address that was checked before. Default: directly. */
  readonly proxyUrl?: string;
  /** Undici queues a request while all are busy, and the wait counts against the deadline: callers take a slot first. */
  readonly connectionsPerOrigin: number;
}

/**
 * An undici Agent that connects to public addresses only. It checks IP literals, every DNS answer and the connected socket,
 * because a check in the look-up alone misses `https://127.0.0.1/`, which needs no look-up.
 * Failure policy: closed. The host name is kept for SNI and for the check of the certificate.
 * Throws TypeError when `extraCaPem` contains no certificate or a broken one.
 */
export function createGuardedAgent(options: GuardedAgentOptions): Agent {
  const rules = options.rules ?? PUBLIC_ONLY;
  const extraCas = options.extraCaPem === undefined ? [] : certificatesOf(options.extraCaPem);
  const openConnector = () =>
    buildConnector({
      secureContext: secureContext(extraCas),
      rejectUnauthorized: true,
      timeout: options.connectTimeoutMs,
      allowH2: false,
      lookup: guardedLookup(options.resolver, rules),
      autoSelectFamily: true,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
    });
  let connector: buildConnector.connector | undefined;
  // Opened by the first connection: a process that sends nothing does not parse the roots.
  const connectTls: buildConnector.connector = (target, callback) => {
    connector ??= openConnector();
    connector(target, callback);
  };

  const proxy = options.proxyUrl === undefined ? undefined : new URL(options.proxyUrl);

  const connectThroughProxy = (proxyUrl: URL): buildConnector.connector => {
    return (target, callback) => {
      const endsAtMs = performance.now() + options.connectTimeoutMs;
      tunnelTo(target, { ...options, rules, proxyUrl, endsAtMs }).then(
        (httpSocket) => {
          // The timeout of `connectTls` begins here, and would give the handshake a whole one.
          const timer = setTimeout(
            () => httpSocket.destroy(new errors.ConnectTimeoutError()),
            endsAtMs - performance.now(),
          );
          connectTls({ ...target, httpSocket }, (error, socket) => {
            clearTimeout(timer);
            if (error !== null) return callback(error, null);
            limitAnswers(socket);
            callback(null, socket);
          });
        },
        (error: Error) => callback(error, null),
      );
    };
  };

  const connectDirectly: buildConnector.connector = (target, callback) => {
    if (isIP(target.hostname) !== 0 && !isPublicAddress(target.hostname, rules)) {
      queueMicrotask(() => callback(new BlockedAddressError(), null));
      return;
    }
    connectTls(target, (error, socket) => {
      if (error !== null) {
        callback(error, null);
      } else if (isPublicAddress(socket.remoteAddress ?? '', rules)) {
        limitAnswers(socket);
        callback(null, socket);
      } else {
        socket.destroy();
        callback(blockedTarget(target.hostname), null);
      }
    });
  };

  return new Agent({
    connect: proxy === undefined ? connectDirectly : connectThroughProxy(proxy),
    connections: options.connectionsPerOrigin,
    pipelining: 1,
    allowH2: false,
    maxHeaderSize: MAX_HEADER_BYTES,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MAX_MS,
    // The caller holds one absolute deadline; undici's own timers restart with every byte.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

interface TunnelOptions extends Pick<GuardedAgentOptions, 'resolver'> {
  readonly rules: AddressRules;
  readonly proxyUrl: URL;
  /** By `performance.now()`. */
  readonly endsAtMs: number;
}

/** A connection through the proxy to one of the addresses of a name, in their order. All addresses are checked first. */
async function tunnelTo({ hostname, port }: buildConnector.Options, options: TunnelOptions): Promise<Socket> {
  const { resolver, rules, proxyUrl: proxy, endsAtMs } = options;
  const host = hostname.replace(/^\[|\]$/g, '');
  let failed: unknown = blockedTarget(host);
  for (const address of await checkedAddresses(host, resolver, rules)) {
    const timeoutMs = endsAtMs - performance.now();
    if (timeoutMs <= 0) break;
    try {
      return await openTunnel({ proxy, address, port: port === '' ? HTTPS_PORT : Number(port), timeoutMs });
    } catch (error) {
      failed = error;
    }
  }
  throw failed;
}

async function checkedAddresses(
  host: string,
  resolver: NameResolver,
  rules: AddressRules,
): Promise<readonly ResolvedAddress[]> {
  const family = isIP(host);
  if (family !== 0) {
    if (!isPublicAddress(host, rules)) throw new BlockedAddressError();
    return [{ address: host, family: family === 6 ? 6 : 4 }];
  }
  const addresses = await resolver.resolve(host).catch((error: unknown) => {
    throw new NameResolutionError(error);
  });
  // One forbidden address rejects the name, as without a proxy.
  if (addresses.length === 0 || addresses.some(({ address }) => !isPublicAddress(address, rules)))
    throw blockedTarget(host);
  return addresses.slice(0, MAX_ADDRESSES);
}

/** Without pipelining, the bytes after a request are its answer. `readable` fires before undici reads. */
function limitAnswers(socket: Socket): void {
  let writtenBytes = 0;
  let readBytes = 0;
  let answerStartBytes = 0;
  // Prepending, unlike `on`, does not start reading, which is up to undici.
  socket.prependListener('readable', () => {
    if (socket.bytesWritten !== writtenBytes) {
      writtenBytes = socket.bytesWritten;
      answerStartBytes = readBytes;
    }
    readBytes = socket.bytesRead;
    if (readBytes - answerStartBytes > MAX_ANSWER_BYTES) socket.destroy(new AnswerTooLongError());
  });
}

/** Built once: parsing some 140 roots for every connection costs more than the handshake. */
function secureContext(extraCas: readonly string[]): SecureContext {
  const ca = extraCas.length > 0 && { ca: [...rootCertificates, ...extraCas] };
  return createSecureContext({ minVersion: 'TLSv1.2', ...ca });
}

/** Node silently ignores text without a certificate, so each block is parsed here. */
function certificatesOf(pem: string): string[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g) ?? [];
  if (blocks.length === 0) throw new TypeError('the extra CA text contains no PEM certificate');
  return blocks.map((block) => {
    try {
      return new X509Certificate(block).toString();
    } catch (cause) {
      throw new TypeError('the extra CA text contains an unreadable certificate', { cause });
    }
  });
}

function guardedLookup(resolver: NameResolver, rules: AddressRules): LookupFunction {
  return (hostname, _options, callback) => {
    resolver.resolve(hostname).then(
      (addresses) => {
        // One forbidden address rejects the name: DNS rebinding mixes both kinds.
        if (addresses.length === 0 || addresses.some(({ address }) => !isPublicAddress(address, rules))) {
          callback(blockedTarget(hostname), '');
        } else {
          // `autoSelectFamily` expects a list.
          callback(null, addresses.slice(0, MAX_ADDRESSES));
        }
      },
      (error: unknown) => callback(new NameResolutionError(error), ''),
    );
  };
}

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
function openTunnel({ proxy, address: { address }, port, timeoutMs }: TunnelRequest): Promise<Socket> {
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
