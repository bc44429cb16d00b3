import { json, plainError, type Reply, type SimHost, type SimRequest } from './reply.ts';

/** A documented limit: this number of requests in any window of this length. */
interface Limit {
  readonly host: SimHost;
  /** Paths that share the limit, by prefix; absent for the whole host. */
  readonly paths?: readonly string[];
  readonly requests: number;
  readonly windowMs: number;
  readonly refusal: Reply;
}

const REFUSAL = plainError(429, 'Too Many Requests');

/** Only Solana's nodes send Retry-After. Kalshi's budget is 20 requests per second with a burst of two seconds. */
const LIMITS: readonly Limit[] = [
  { host: 'gamma', requests: 300, windowMs: 10_000, refusal: REFUSAL },
  { host: 'clob', requests: 500, windowMs: 10_000, refusal: REFUSAL },
  { host: 'data', paths: ['/v2/trades'], requests: 300, windowMs: 10_000, refusal: REFUSAL },
  { host: 'data', paths: ['/v2/activity', '/v2/positions'], requests: 200, windowMs: 10_000, refusal: REFUSAL },
  { host: 'kalshi', requests: 40, windowMs: 2_000, refusal: json({ error: 'too many requests' }, 429) },
  { host: 'manifold', requests: 500, windowMs: 60_000, refusal: REFUSAL },
  { host: 'jupiter', requests: 30, windowMs: 60_000, refusal: REFUSAL },
  { host: 'solana', requests: 100, windowMs: 10_000, refusal: { ...REFUSAL, headers: { 'retry-after': '10' } } },
];

/** Counts the requests of each limit, and refuses those above it as the venues do. Refused requests do not count. */
export class DocumentedRates {
  private readonly nowMs: () => number;
  private readonly accepted = LIMITS.map((limit) => ({ limit, times: [] as number[] }));

  /** @param nowMs a clock that never goes back */
  constructor(nowMs: () => number) {
    this.nowMs = nowMs;
  }

  /** The refusal of a request above a limit; undefined for an accepted one. */
  refusalOf({ host, path }: Pick<SimRequest, 'host' | 'path'>): Reply | undefined {
    const now = this.nowMs();
    for (const { limit, times } of this.accepted) {
      if (limit.host !== host || !(limit.paths?.some((prefix) => path.startsWith(prefix)) ?? true)) continue;
      while (times[0] !== undefined && times[0] <= now - limit.windowMs) times.shift();
      if (times.length >= limit.requests) return limit.refusal;
      times.push(now);
    }
    return undefined;
  }
}
