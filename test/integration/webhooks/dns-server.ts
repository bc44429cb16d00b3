import { createSocket } from 'node:dgram';
import { once } from 'node:events';

const TYPE_A = 1;
const TYPE_AAAA = 28;
const RESPONSE = 0x8180;
const NAME_ERROR = 3;

/** The answer for a name: addresses, `missing` (NXDOMAIN) or `silent` (no answer, as from an unreachable server). */
export type DnsEntry = { readonly a?: string[]; readonly aaaa?: string[] } | 'missing' | 'silent';

/** A constant answer, or a function that is called for every question. */
export type DnsRule = DnsEntry | (() => DnsEntry);

export interface DnsServer {
  /** In the form of `ResolverOptions.servers`. */
  readonly address: string;
  /** The names requested so far, one entry per question of type A. */
  readonly asked: readonly string[];
  readonly close: () => Promise<void>;
}

/** A real name server on loopback UDP that knows `names` (RFC 1035 section 4, as much as the tests need). */
export async function startDnsServer(names: Readonly<Record<string, DnsRule>>): Promise<DnsServer> {
  const socket = createSocket('udp4');
  const asked: string[] = [];
  socket.on('message', (query, { address, port }) => {
    const { name, type, end } = question(query);
    if (type === TYPE_A) asked.push(name);
    const rule = names[name] ?? 'missing';
    const entry = typeof rule === 'function' ? rule() : rule;
    if (entry === 'silent') return;
    const records = entry === 'missing' ? [] : recordsOf(entry, type);
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(entry === 'missing' ? RESPONSE | NAME_ERROR : RESPONSE, 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    socket.send(Buffer.concat([header, query.subarray(12, end), ...records]), port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked,
    async close() {
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    },
  };
}

function question(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function recordsOf(entry: { readonly a?: string[]; readonly aaaa?: string[] }, type: number): Buffer[] {
  if (type === TYPE_A)
    return (entry.a ?? []).map((address) => record(type, Buffer.from(address.split('.').map(Number))));
  if (type !== TYPE_AAAA) return [];
  return (entry.aaaa ?? []).map((address) => record(type, Buffer.from(address.replaceAll(':', ''), 'hex')));
}

/** `C00C` points back at the name in the question; a TTL of one minute. */
function record(type: number, data: Buffer): Buffer {
  const head = Buffer.from('c00c000000010000003c0000', 'hex');
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(data.length, 10);
  return Buffer.concat([head, data]);
}
