import { describe, expect, it } from 'vitest';
import { tlsFailure } from '../../../../src/domain/values/failure-reasons.ts';

const failed = (fields: object) => Object.assign(new Error('it failed'), fields);

describe('tlsFailure', () => {
  it.each([
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'CERT_HAS_EXPIRED',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'ERR_SSL_WRONG_VERSION_NUMBER',
  ])('names %s as a lasting failure', (code) => {
    expect(tlsFailure(failed({ code }))).toBe(`it failed (${code})`);
  });

  it('names a file of the settings that is missing or not readable', () => {
    for (const code of ['ENOENT', 'EACCES']) {
      const reason = tlsFailure(failed({ code, syscall: 'open', path: '/ca.pem' }));
      expect(reason).toBe(`the file /ca.pem of the TLS settings cannot be read (${code})`);
    }
  });

  it.each([
    { code: 'ECONNREFUSED', syscall: 'connect' },
    { code: 'ECONNRESET' },
    { code: 'EMFILE', syscall: 'open', path: '/ca.pem' },
    { code: 'ENFILE', syscall: 'open', path: '/ca.pem' },
  ])('is undefined for %j, after which a retry may succeed', (fields) => {
    expect(tlsFailure(failed(fields))).toBeUndefined();
  });

  it('is undefined for a value that is no error', () => {
    for (const value of [undefined, null, 'text']) expect(tlsFailure(value)).toBeUndefined();
  });
});
