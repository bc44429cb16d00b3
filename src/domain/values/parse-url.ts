import { isIP } from 'node:net';

/**
 * The URL of a text, null for other texts. `URL.canParse` cannot replace it: in Node 20, a process that calls it often rejects every URL
 * with a character such as `ü`.
 */
export function parseUrl(text: string, base?: string): URL | null {
  try {
    return new URL(text, base);
  } catch {
    return null;
  }
}

/** Whether a text is an http or https address, as pages may link it. */
export function isWebAddress(text: string | null | undefined): text is string {
  const protocol = parseUrl(text ?? '')?.protocol;
  return protocol === 'https:' || protocol === 'http:';
}

/** The host name of `host` or `host:port` in the form that URLs have, without a dot at the end. Null for other texts. */
export function hostNameOf(host: string): string | null {
  if (!/^[\w.:[\]-]+$/.test(host)) return null;
  return parseUrl(`http://${host}`)?.hostname.replace(/\.$/, '') ?? null;
}

/** Whether a host name always means this machine or a fixed address: no owner of a domain can point it elsewhere. */
export function isFixedHost(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost') || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0;
}

/** A longer path segment may be a secret: chat services put secrets into webhook addresses. */
export const MAX_PLAIN_PART = 16;

/** An address without possible secrets: no query, no user, and long path segments are truncated. */
export function shownUrl(url: string): string {
  const parsed = parseUrl(url);
  if (!parsed) return 'invalid address';
  const { host, pathname, search, protocol } = parsed;
  return `${protocol}//${host}${shownPath(pathname)}${search === '' ? '' : '?…'}`;
}

/** A path with truncated segments. */
export function shownPath(path: string): string {
  return path
    .split('/')
    .map((part) => (part.length > MAX_PLAIN_PART ? `${part.slice(0, 4)}…` : part))
    .join('/');
}
