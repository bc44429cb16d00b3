import type { IncomingMessage } from 'node:http';

/**
 * The problem of the Host header, or null. Node uses the first of two Host headers, and a proxy may use the last one: they would
 * disagree about the target (RFC 9112 section 3.2).
 */
export function hostProblem({ rawHeaders, httpVersion }: IncomingMessage): string | null {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  if (count > 1) return 'must appear once';
  return count === 0 && httpVersion !== '1.0' ? 'is required' : null;
}
