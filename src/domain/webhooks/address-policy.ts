import ipaddr from 'ipaddr.js';
import { OddswireError } from '../values/errors.ts';

type Address = ReturnType<typeof ipaddr.parse>;

/** A parsed address range. Only `parseCidrs` creates it. */
export interface Cidr {
  readonly network: Address;
  readonly bits: number;
}

/** The operator's exceptions. `deny` has priority over `allow`, and `allow` over the built-in policy. */
export interface AddressRules {
  /** WEBHOOK_ALLOW_CIDRS: private ranges that deliveries may reach. */
  readonly allow: readonly Cidr[];
  /** WEBHOOK_DENY_CIDRS: public ranges that deliveries must not reach, such as the operator's own. */
  readonly deny: readonly Cidr[];
}

export const PUBLIC_ONLY: AddressRules = { allow: [], deny: [] };

const GLOBAL_UNICAST_V6 = cidr('2000::/3');
/** Azure's WireServer: a public address that is the control channel of the host. */
const AZURE_WIRE_SERVER = cidr('168.63.129.16/32');
/** The 6bone, which was returned in 2006 (RFC 3701): no host of the internet has such an address. */
const SIX_BONE = cidr('3ffe::/16');

/**
 * Whether webhooks may be sent to this address. Failure policy: closed. A text that is not an address is not public.
 */
export function isPublicAddress(address: string, { allow, deny }: AddressRules = PUBLIC_ONLY): boolean {
  const ip = parseAddress(address);
  if (ip === null || deny.some((range) => contains(range, ip))) return false;
  if (allow.some((range) => contains(range, ip))) return true;
  if (contains(AZURE_WIRE_SERVER, ip) || contains(SIX_BONE, ip) || isIsatap(ip)) return false;
  // ipaddr.js calls unassigned space "unicast", such as `::7f00:1` (IPv4-compatible loopback) and `4000::1`.
  if (ip.kind() === 'ipv6' && !contains(GLOBAL_UNICAST_V6, ip)) return false;
  return ip.range() === 'unicast';
}

/** An ISATAP address (RFC 5214 section 6.1) has an IPv4 address in its last 32 bits, which a tunnel may reach. */
function isIsatap(ip: Address): boolean {
  if (ip.kind() !== 'ipv6') return false;
  const [first, ...rest] = ip.toByteArray().slice(8, 12);
  return (first === 0x00 || first === 0x02) && Buffer.from(rest).equals(Buffer.from([0x00, 0x5e, 0xfe]));
}

/** The network of an address (the IPv4 address itself, or the IPv6 /64), and whether it is within `ranges`. Null for other texts. */
export function networkOf(address: string, ranges: readonly Cidr[]): { text: string; isWithin: boolean } | null {
  const ip = parseAddress(address);
  if (ip === null) return null;
  const text = ip.toString();
  const isWithin = ranges.some((range) => contains(range, ip));
  if (ip.kind() === 'ipv4') return { text, isWithin };
  const prefix = ip.toByteArray().slice(0, 8);
  return { text: `${Buffer.from(prefix).toString('hex')}::/64`, isWithin };
}

/** Whether an address is loopback in either family, mapped forms included. */
export function isLoopbackAddress(address: string): boolean {
  return parseAddress(address)?.range() === 'loopback';
}

/**
 * Parses a comma list of ranges such as `127.0.0.0/8,fd00::/8`; a bare address is a range of one. An empty text gives no
 * range. @throws OddswireError that lists every bad entry
 */
export function parseCidrs(text: string): Cidr[] {
  const ranges: Cidr[] = [];
  const problems: string[] = [];
  for (const [index, entry] of text
    .split(',')
    .map((part) => part.trim())
    .entries()) {
    if (entry === '') continue;
    const range = parseRange(entry);
    if (range === null) problems.push(`entry ${index + 1} is not an address range such as 10.0.0.0/8 or fd00::/8`);
    // Mapped addresses are unwrapped before matching, so a mapped range would never match.
    else if (range.network.range() === 'ipv4Mapped')
      problems.push(`entry ${index + 1} must be written as an IPv4 range`);
    else ranges.push(range);
  }
  if (problems.length > 0) throw new OddswireError('invalid_cidr_list', problems.join('; '));
  return ranges;
}

function parseRange(entry: string): Cidr | null {
  // The library also accepts `10.1/8` and `0x7f.1`; in a configuration these are probably typing errors.
  if (ipaddr.IPv4.isValidCIDRFourPartDecimal(entry) || ipaddr.IPv6.isValidCIDR(entry)) return cidr(entry);
  if (ipaddr.IPv4.isValidFourPartDecimal(entry)) return cidr(`${entry}/32`);
  if (ipaddr.IPv6.isValid(entry)) return cidr(`${entry}/128`);
  return null;
}

function cidr(text: string): Cidr {
  const [network, bits] = ipaddr.parseCIDR(text);
  return { network, bits };
}

/** The address without its zone and with an IPv4-mapped form unwrapped; null for other texts. */
function parseAddress(address: string): Address | null {
  const [withoutZone = ''] = address.split('%');
  // IPv4-compatible and long retired (RFC 4291 section 2.5.5.1); ipaddr.js would treat it as IPv4-mapped.
  if (/^::\d+(\.\d+)+$/.test(withoutZone)) return null;
  return ipaddr.isValid(withoutZone) ? ipaddr.process(withoutZone) : null;
}

function contains(range: Cidr, ip: Address): boolean {
  return range.network.kind() === ip.kind() && ip.match(range.network, range.bits);
}
