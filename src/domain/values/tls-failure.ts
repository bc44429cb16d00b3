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
