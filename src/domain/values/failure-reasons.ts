import { isIP } from 'node:net';

const URL_TEXT = /\b[a-z][a-z0-9+.-]*:\/\/\S*/gi;
/** The name after a failed look-up may be a single word. */
const LOOKED_UP = /(\bgetaddrinfo [A-Z_]+) \S+/g;
const HOST = /^(?=.*[a-z])[a-z0-9_-]+(\.[a-z0-9_-]+)*\.[a-z][a-z0-9-]+\.?(:\d+)?$/i;
const HOST_AND_PORT = /^[a-z0-9_.-]+:\d{1,5}$/i;
const SOCKET_FILE = /^\/\S+/;

/**
 * A reason of a failure that clients may see: the text without URLs, IP addresses, hosts, ports and socket files, which describe the
 * operator's network. Logs and operator pages keep the whole text.
 */
export function withoutAddresses(reason: string): string {
  const kept = reason
    .replace(URL_TEXT, '')
    .replace(LOOKED_UP, '$1')
    .split(/\s+/)
    .filter((word) => !isAddress(word));
  return kept.join(' ').replace(/[\s,;:]+$/, '') || 'the venue cannot be reached';
}

function isAddress(word: string): boolean {
  const bare = word
    .replace(/^[("'<]+|[)"'>,;.]+$/g, '')
    .replace(/:$/, '')
    .replace(/^(DNS|URI|Address):/i, '')
    .replace(/^\*\./, '');
  const host = bare.replace(/^\[([^\]]*)\](:\d+)?$/, '$1');
  if (isIP(host) !== 0 || isIP(host.replace(/:\d+$/, '')) !== 0) return true;
  return HOST.test(bare) || HOST_AND_PORT.test(bare) || SOCKET_FILE.test(bare);
}

/** Codes of Node and OpenSSL for a certificate that a client refuses, and for a server without TLS. */
const CODES =
  /^(?:DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_|CERT_|ERR_TLS_CERT_|ERR_SSL_(?:WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|TLSV1_ALERT|SSLV3_ALERT))/;
/** Codes of a failed open that may succeed later: too many open files. */
const PASSING: ReadonlySet<string> = new Set(['EMFILE', 'ENFILE']);
/** The client of Postgres states this without a code. */
const NO_TLS = 'The server does not support SSL connections';

/** The reason why a TLS connection cannot succeed with this configuration; undefined for any other error, such as a lost connection. */
export function tlsFailure(error: unknown): string | undefined {
  const { code, message, path, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  if (message === NO_TLS) return 'the server does not support TLS';
  // The client of Postgres reads the file of `sslrootcert`, `sslcert` or `sslkey` at each connection.
  if (syscall === 'open' && path !== undefined && !PASSING.has(code ?? ''))
    return `the file ${path} of the TLS settings cannot be read (${code})`;
  return code !== undefined && CODES.test(code) ? `${message} (${code})` : undefined;
}
