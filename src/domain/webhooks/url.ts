import { isIP } from 'node:net';
import { parseUrl } from '../values/parse-url.ts';
import { type AddressRules, type Cidr, isLoopbackAddress, isPublicAddress, PUBLIC_ONLY } from './address-policy.ts';

export const MAX_URL_LENGTH = 2048;
const HTTPS_PORT = 443;
/** Below this port only 443 is allowed: other well-known ports belong to mail, shells and databases. */
const FIRST_UNPRIVILEGED_PORT = 1024;
const NOT_ALLOWED = 'the destination address is not allowed';

/** The reason why a URL is rejected. `blocked`: a well-formed URL of a forbidden destination. */
interface UrlProblem {
  readonly kind: 'invalid' | 'blocked';
  readonly message: string;
}

/**
 * The problem of a webhook URL as far as its text shows, or null. Names are resolved only at sending, when the result matters.
 */
export function webhookUrlProblem(url: string, rules: AddressRules = PUBLIC_ONLY): string | null {
  return inspectWebhookUrl(url, rules)?.message ?? nameProblem(url);
}

/** Letters, digits and hyphens, which neither begin nor end a label (RFC 1123 section 2.1). */
const NAME = /^(?:[a-z\d](?:[a-z\d-]*[a-z\d])?\.)*[a-z\d](?:[a-z\d-]*[a-z\d])?$/i;

/** The problem of a new host name. Webhooks of earlier releases may have one of these names, so deliveries do not check it. */
function nameProblem(url: string): string | null {
  const host = bareHostname(new URL(url));
  if (isIP(host) !== 0 || NAME.test(host)) return null;
  return 'must have a host of letters, digits and hyphens, and no hyphen at the beginning or end of a label';
}

/** As `webhookUrlProblem`, with malformed URLs and forbidden destinations distinguished. */
export function inspectWebhookUrl(url: string, rules: AddressRules = PUBLIC_ONLY): UrlProblem | null {
  if (url.length > MAX_URL_LENGTH) return invalid(`must have at most ${MAX_URL_LENGTH} characters`);
  // The WHATWG parser drops or rewrites these silently: the stored URL would differ from the called one.
  if (/[\s\\\p{Cc}]/u.test(url)) return invalid('must not contain spaces, control characters or backslashes');
  if (!/^https:\/\/[^/]/i.test(url)) return invalid('must be an https:// URL');
  const parsed = parseUrl(url);
  if (!parsed) return invalid('is not a valid URL');
  if (parsed.href.length > MAX_URL_LENGTH) {
    return invalid(`must have at most ${MAX_URL_LENGTH} characters when percent-encoded`);
  }
  const [authority = ''] = url.slice('https://'.length).split(/[/?#]/);
  if (authority.includes('@')) return invalid('must not contain a user name or password');
  const port = parsed.port === '' ? HTTPS_PORT : Number(parsed.port);
  if (port !== HTTPS_PORT && port < FIRST_UNPRIVILEGED_PORT) {
    return invalid(`must use port ${HTTPS_PORT} or a port from ${FIRST_UNPRIVILEGED_PORT} up`);
  }
  return hostProblem(bareHostname(parsed), rules);
}

/** The host of a URL as sockets need it: without the brackets of an IPv6 literal. */
function bareHostname(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '');
}

/** Names of this machine that need no DNS (RFC 6761 section 6.3 and the usual /etc/hosts entries). */
export function isLocalhostName(hostname: string): boolean {
  return /^(.+\.)?(localhost|localhost\.localdomain|ip6-localhost|ip6-loopback)$/i.test(hostname);
}

/** The parser has already converted every spelling (`0x7f.1`, `2130706433`, full-width digits) into one literal or name. */
function hostProblem(host: string, rules: AddressRules): UrlProblem | null {
  if (isIP(host) !== 0) return isPublicAddress(host, rules) ? null : blocked();
  if (host.split('.').some((label) => label === '' || label.length > 63) || host.length > 253) {
    return invalid('must have a host of labels of 1 to 63 characters, without a dot at the end');
  }
  if (isLocalhostName(host)) return isPublicAddress('127.0.0.1', rules) ? null : blocked();
  // Intranet names need an intranet range in `rules.allow`; the address is checked again at sending.
  if (/\.(local|internal)$/i.test(host) && !rules.allow.some(reachesBeyondLoopback)) return blocked();
  return null;
}

function reachesBeyondLoopback(range: Cidr): boolean {
  return !isLoopbackAddress(range.network.toString());
}

function invalid(message: string): UrlProblem {
  return { kind: 'invalid', message };
}

function blocked(): UrlProblem {
  return { kind: 'blocked', message: NOT_ALLOWED };
}
