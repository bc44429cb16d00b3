import { isIP } from 'node:net';
import { parseUrl } from './parse-url.ts';

/** The host name of `host` or `host:port` in the form that URLs have, without a dot at the end. Null for other texts. */
export function hostNameOf(host: string): string | null {
  if (!/^[\w.:[\]-]+$/.test(host)) return null;
  return parseUrl(`http://${host}`)?.hostname.replace(/\.$/, '') ?? null;
}

/** Whether a host name always means this machine or a fixed address: no owner of a domain can point it elsewhere. */
export function isFixedHost(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost') || isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0;
}
