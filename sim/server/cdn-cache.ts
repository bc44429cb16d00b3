import { LRUCache } from 'lru-cache';
import type { Reply, SimRequest } from './reply.ts';

interface Entry {
  readonly reply: Reply;
  readonly traceId: string;
  readonly storedSecond: number;
  readonly maxAgeSeconds: number;
}

/** The characters of all bodies. Addresses that are requested again stay. */
const MAX_CHARS = 16_000_000;

/**
 * A CDN in front of routes, like CloudFront: the first answer of an address is kept for its lifetime, and every repetition
 * within it gets the same body with `age` (whole seconds), `x-cache: Hit from cloudfront` and the `x-trace-id` of the first.
 * An address is the host, the path and the exact query. POST and answers other than 200 are not kept.
 */
export class CdnCache {
  private readonly nowSecond: () => number;
  private readonly entries = new LRUCache<string, Entry>({
    maxSize: MAX_CHARS,
    sizeCalculation: ({ reply }) => reply.body.length + 1,
  });
  private traces = 0;

  /** @param nowSecond the simulated clock, so that a test moves an age with `step` or `idle` */
  constructor(nowSecond: () => number) {
    this.nowSecond = nowSecond;
  }

  /** The kept answer of this address, or a new answer of `origin`. */
  answer(request: SimRequest, maxAgeSeconds: number, origin: (request: SimRequest) => Reply): Reply {
    // An older view of the tape is made by a fault, for one request.
    if (request.method !== 'GET' || request.tapeEnd !== undefined) return origin(request);
    const key = `${request.host} ${request.path}?${request.query}`;
    const now = this.nowSecond();
    const kept = this.entries.get(key);
    if (kept !== undefined && now - kept.storedSecond < kept.maxAgeSeconds) {
      return withHeaders(kept, 'Hit from cloudfront', { age: String(now - kept.storedSecond) });
    }
    const reply = origin(request);
    if (reply.status !== 200) return reply;
    this.traces += 1;
    const entry = { reply, traceId: `trace-${this.traces}`, storedSecond: now, maxAgeSeconds };
    this.entries.set(key, entry);
    return withHeaders(entry, 'Miss from cloudfront', {});
  }
}

function withHeaders({ reply, traceId, maxAgeSeconds }: Entry, state: string, more: Record<string, string>): Reply {
  return {
    ...reply,
    headers: {
      ...reply.headers,
      'cache-control': `public, max-age=${maxAgeSeconds}`,
      'x-cache': state,
      'x-trace-id': traceId,
      ...more,
    },
  };
}
