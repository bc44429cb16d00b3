import { Resolver } from 'node:dns/promises';
import { LRUCache } from 'lru-cache';
import { isLocalhostName } from '../domain/webhooks/url.ts';

/** One answer of a name look-up. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** Resolves a host name to addresses. Rejects when the name has none; the list is never empty. */
export interface NameResolver {
  readonly resolve: (hostname: string) => Promise<readonly ResolvedAddress[]>;
  /** Cancels the look-ups in flight. */
  readonly close: () => void;
}

/** The look-ups of a resolver; Resolver of `node:dns/promises` has this shape. */
interface DnsClient {
  readonly resolve4: (hostname: string) => Promise<string[]>;
  readonly resolve6: (hostname: string) => Promise<string[]>;
  readonly cancel: () => void;
}

interface ResolverOptions {
  /** Per name server, one try. Default 2000. */
  readonly timeoutMs?: number;
  /** How long an answer is used. Default 30 000. */
  readonly cacheMs?: number;
  /** Concurrent look-ups; further names wait. Default 256. */
  readonly maxInFlight?: number;
  /** Name servers as `address` or `address:port`. Default: the machine's own. */
  readonly servers?: readonly string[];
  /** Replaces DNS itself. */
  readonly client?: DnsClient;
}

const DEFAULT_TIMEOUT_MS = 2000;
const DEFAULT_CACHE_MS = 30_000;
const DEFAULT_MAX_IN_FLIGHT = 256;
const MAX_CACHED_NAMES = 10_000;
const LOCALHOST: readonly ResolvedAddress[] = [{ address: '127.0.0.1', family: 4 }];

/**
 * A caching resolver on c-ares (`dns.lookup` shares four threads with the whole process, so one unresponsive name server would
 * delay every look-up). Concurrent look-ups of one name are merged. Failures are not cached, because the retry schedule spaces
 * them out. `localhost` names resolve to 127.0.0.1 without DNS (RFC 6761).
 */
export function createResolver(options: ResolverOptions = {}): NameResolver {
  const client = options.client ?? createClient(options);
  const slots = createSlots(options.maxInFlight ?? DEFAULT_MAX_IN_FLIGHT);
  const inFlight = new Map<string, Promise<readonly ResolvedAddress[]>>();
  const cache = new LRUCache<string, readonly ResolvedAddress[]>({
    max: MAX_CACHED_NAMES,
    ttl: options.cacheMs ?? DEFAULT_CACHE_MS,
  });

  async function lookUp(name: string): Promise<readonly ResolvedAddress[]> {
    await slots.acquire();
    try {
      const addresses = await queryBoth(client, name);
      cache.set(name, addresses);
      return addresses;
    } finally {
      slots.release();
      inFlight.delete(name);
    }
  }

  return {
    async resolve(hostname) {
      const name = hostname.toLowerCase();
      if (isLocalhostName(name)) return LOCALHOST;
      const cached = cache.get(name);
      if (cached !== undefined) return cached;
      const pending = inFlight.get(name) ?? lookUp(name);
      inFlight.set(name, pending);
      return pending;
    },
    close: () => client.cancel(),
  };
}

function createClient(options: ResolverOptions): DnsClient {
  const resolver = new Resolver({ timeout: options.timeoutMs ?? DEFAULT_TIMEOUT_MS, tries: 1 });
  if (options.servers !== undefined) resolver.setServers(options.servers);
  return resolver;
}

/** Both families at once. One of them often fails (no AAAA record, a name server that drops AAAA queries). */
async function queryBoth(client: DnsClient, name: string): Promise<readonly ResolvedAddress[]> {
  const [v4, v6] = await Promise.allSettled([client.resolve4(name), client.resolve6(name)]);
  const addresses: ResolvedAddress[] = [
    ...(v4.status === 'fulfilled' ? v4.value.map((address) => ({ address, family: 4 as const })) : []),
    ...(v6.status === 'fulfilled' ? v6.value.map((address) => ({ address, family: 6 as const })) : []),
  ];
  if (addresses.length > 0) return addresses;
  throw v4.status === 'rejected' ? v4.reason : new Error(`no address for ${name}`);
}

/** A counting semaphore: `acquire` waits for a free slot, first come first served. */
function createSlots(size: number): { acquire: () => Promise<void>; release: () => void } {
  const waiting: (() => void)[] = [];
  let free = size;
  return {
    async acquire() {
      if (free > 0) {
        free -= 1;
        return;
      }
      await new Promise<void>((resolve) => waiting.push(resolve));
    },
    release() {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    },
  };
}
