import { parseUrl } from '../values/parse-url.ts';

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
