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
