import { describe, expect, it } from 'vitest';
import { withoutAddresses } from '../../../../src/domain/values/failure-reasons.ts';

describe('withoutAddresses', () => {
  it.each([
    ['connect ECONNREFUSED 10.1.2.3:8443', 'connect ECONNREFUSED'],
    ['connect ECONNREFUSED ::1:443', 'connect ECONNREFUSED'],
    ['connect ETIMEDOUT [fd00::1]:443', 'connect ETIMEDOUT'],
    ['getaddrinfo ENOTFOUND venue-proxy', 'getaddrinfo ENOTFOUND'],
    ['getaddrinfo EAI_AGAIN gamma.internal.example', 'getaddrinfo EAI_AGAIN'],
    ['connect ECONNREFUSED egress:3128', 'connect ECONNREFUSED'],
    ['connect ENOENT /run/proxy.sock', 'connect ENOENT'],
    ['fetch of http://user:pw@proxy:1/x?y=1 failed', 'fetch of failed'],
    ["Host: a.example.com. is not in the cert's altnames: DNS:b.example.com", "Host: is not in the cert's altnames"],
    ['read ECONNRESET (10.0.0.1)', 'read ECONNRESET'],
    ['10.0.0.1:443', 'the venue cannot be reached'],
    ['', 'the venue cannot be reached'],
  ])('removes the address of %j', (reason, shown) => {
    expect(withoutAddresses(reason)).toBe(shown);
  });

  it.each([
    'HTTP 503',
    'the circuit breaker is open',
    'no candlesticks of KXFED-26DEC-T4.25',
    'the answer is not JSON (1200 characters)',
    'more than 67108864 bytes',
    'token prices: expected an object',
    'older trades are not kept',
    'the node is 12.5 s behind',
  ])('keeps %j', (reason) => {
    expect(withoutAddresses(reason)).toBe(reason);
  });
});
