import { describe, expect, it } from 'vitest';
import { attemptErrorCode, DeadlineError, SenderFaultError } from '../../../src/webhooks/attempt.ts';

const withCode = (code: unknown) => Object.assign(new Error('as undici or Node threw it'), { code });

describe('attemptErrorCode', () => {
  it.each([
    ['blocked_address', ['blocked_address']],
    ['dns_error', ['dns_error']],
    ['connect_timeout', ['UND_ERR_CONNECT_TIMEOUT', 'ETIMEDOUT']],
    ['connection_refused', ['ECONNREFUSED', 'EHOSTUNREACH', 'EHOSTDOWN', 'ENETUNREACH', 'EACCES', 'EPERM']],
    ['connection_reset', ['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'UND_ERR_SOCKET']],
    ['header_overflow', ['UND_ERR_HEADERS_OVERFLOW', 'HPE_HEADER_OVERFLOW', 'answer_too_long']],
    ['tls_error', ['EPROTO', 'ERR_TLS_CERT_ALTNAME_INVALID', 'ERR_SSL_WRONG_VERSION_NUMBER', 'CERT_HAS_EXPIRED']],
    ['tls_error', ['DEPTH_ZERO_SELF_SIGNED_CERT', 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'SELF_SIGNED_CERT_IN_CHAIN']],
    ['tls_error', ['INVALID_CA', 'INVALID_PURPOSE', 'PATH_LENGTH_EXCEEDED', 'HOSTNAME_MISMATCH', 'CRL_HAS_EXPIRED']],
    ['tls_error', ['ERR_OSSL_EVP_UNSUPPORTED', 'ERROR_IN_CERT_NOT_BEFORE_FIELD']],
    ['protocol_error', ['HPE_INVALID_CONSTANT', 'UND_ERR_RESPONSE', 'NO_TLS_OF_OURS_CERT_', '', undefined, 7]],
  ] as const)('is %s for %j', (expected, codes) => {
    for (const code of codes) expect(attemptErrorCode(withCode(code))).toBe(expected);
  });

  it('is a timeout when the deadline passed, and a protocol error for unknown errors', () => {
    expect(new DeadlineError()).toMatchObject({ code: 'timeout', retryable: true });
    expect(attemptErrorCode(new DeadlineError())).toBe('timeout');
    expect(attemptErrorCode(new Error('no code at all'))).toBe('protocol_error');
  });

  it.each(['EMFILE', 'ENFILE', 'ENOMEM', 'ENOBUFS', 'EADDRNOTAVAIL', 'UND_ERR_CLOSED', 'UND_ERR_DESTROYED'])(
    'throws SenderFaultError for %s, so that no attempt is counted',
    (code) => {
      const error = withCode(code);
      expect(() => attemptErrorCode(error)).toThrow(SenderFaultError);
      expect(() => attemptErrorCode(error)).toThrow(
        expect.objectContaining({ code: 'sender_fault', retryable: true, cause: error }),
      );
    },
  );

  it.each(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED', 'UND_ERR_REQ_CONTENT_LENGTH_MISMATCH'])(
    'rethrows the programming error %s',
    (code) => {
      const error = withCode(code);
      expect(() => attemptErrorCode(error)).toThrow(expect.objectContaining({ code, message: error.message }));
    },
  );

  it('uses the common code of all failed addresses', () => {
    const refused = Object.assign(new AggregateError([withCode('ECONNREFUSED'), withCode('ECONNREFUSED')]), {
      code: 'ECONNREFUSED',
    });
    expect(attemptErrorCode(refused)).toBe('connection_refused');
  });
});
