import { createHash } from 'node:crypto';
import { type ApiJson, toJsonText } from '../src/domain/api-json.ts';
import type { ApiContext, ApiDeps } from './deps.ts';
import type { Freshness, PreparedAnswer } from './latest-cache.ts';

/** Closed buckets change only when a late trade comes in. */
const CACHE_CONTROL: Record<Freshness, string> = { latest: 'private, max-age=1', history: 'private, max-age=60' };
const JSON_TYPE = 'application/json; charset=utf-8';

export interface MarketAnswer {
  data: ApiJson;
  /** What `meta` holds beside request id and timestamp. */
  meta?: { readonly [key: string]: ApiJson | undefined };
  freshness: Freshness;
}

/** A read of a market route. */
export interface MarketRead {
  /**
   * The route's name and everything else the answer depends on but time and the caller: venue scope, ids, each query parameter
   * that shapes it, normalized. Requests with one key within a second get one answer.
   */
  key: readonly (string | number | boolean | null | undefined)[];
  /** Makes the answer; what it throws is answered and not kept. Others may be waiting for it: it must not end with one client. */
  load(): Promise<MarketAnswer>;
}

type MarketDeps = Pick<ApiDeps, 'decimalFormat' | 'now' | 'latest'>;

/**
 * Answers a market route: envelope with meta, weak ETag, 304, from the cache of the last second where it can. The ETag covers
 * data and the lasting part of meta (`next_cursor`), not request id and timestamp, which differ each time.
 */
export async function sendMarketData(
  ctx: ApiContext,
  deps: MarketDeps,
  { key: parts, load }: MarketRead,
): Promise<void> {
  const key = JSON.stringify(parts);
  const prepared = await deps.latest.fetch(key, async () => prepare(await load(), deps));
  if (ctx.method === 'GET') deps.latest.remember(ctx.req.url ?? '', { key, route: String(ctx._matchedRoute) });
  sendPrepared(ctx, deps, prepared);
}

function prepare(answer: MarketAnswer, deps: MarketDeps): PreparedAnswer {
  const data = toJsonText(answer.data, deps.decimalFormat);
  const meta = toJsonText(answer.meta ?? {}, deps.decimalFormat).slice(1, -1);
  const etag = `W/"${createHash('sha1').update(data).update(meta).digest('base64url')}"`;
  return { data, meta, etag, freshness: answer.freshness };
}

function sendPrepared(ctx: ApiContext, deps: Pick<ApiDeps, 'now'>, answer: PreparedAnswer): void {
  const headers = answerHeaders(answer);
  for (let i = 0; i < headers.length; i += 2) ctx.set(headers[i] ?? '', headers[i + 1] ?? '');
  if (matchesEtag(ctx.get('If-None-Match'), answer.etag)) {
    ctx.status = 304;
    return;
  }
  ctx.type = JSON_TYPE;
  ctx.body = answerText(answer, ctx.state.requestId, deps.now());
}

/** Headers of an answer, 304 included: names and values in turn. */
export function answerHeaders({ etag, freshness }: PreparedAnswer): string[] {
  return ['ETag', etag, 'Cache-Control', CACHE_CONTROL[freshness], 'Vary', 'Accept-Encoding, Authorization'];
}

/** The answer in an envelope of its own. */
export function answerText({ data, meta }: PreparedAnswer, requestId: string, nowMs: number): string {
  const more = meta === '' ? '' : `,${meta}`;
  const id = JSON.stringify(requestId);
  return `{"success":true,"data":${data},"meta":{"request_id":${id},"timestamp":${Math.floor(nowMs / 1000)}${more}}}`;
}

/** Answers a webhook or alert route: success and data, and meta only where a list goes on. Never cached. */
export function sendAccountData(
  ctx: ApiContext,
  deps: Pick<ApiDeps, 'decimalFormat'>,
  status: 200 | 201 | 202,
  data: ApiJson,
  meta?: { readonly [key: string]: ApiJson },
): void {
  ctx.set('Cache-Control', 'no-store');
  ctx.status = status;
  ctx.type = JSON_TYPE;
  ctx.body = toJsonText({ success: true, data, meta }, deps.decimalFormat);
}

/** Weak comparison of RFC 9110 section 13.1.2. */
export function matchesEtag(header: string, etag: string): boolean {
  if (header === '') return false;
  if (header.trim() === '*') return true;
  const opaque = etag.slice('W/'.length);
  return header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === opaque);
}

/** Epoch seconds of a moment; absent when unknown. */
export function epochSeconds(at: Date | null): number | undefined {
  return at === null ? undefined : Math.floor(at.getTime() / 1000);
}
