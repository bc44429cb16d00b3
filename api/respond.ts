import { createHash } from 'node:crypto';
import { type ApiJson, toJsonText } from '../src/domain/api-json.ts';
import type { ApiContext, ApiDeps } from './deps.ts';

/** How long an answer may be kept by the client. */
export type Freshness = 'latest' | 'history';

/** Closed buckets change only when a late trade comes in. */
const MAX_AGE_SECONDS: Record<Freshness, number> = { latest: 1, history: 60 };
const JSON_TYPE = 'application/json; charset=utf-8';

export interface MarketAnswer {
  data: ApiJson;
  /** What `meta` holds beside request id and timestamp. */
  meta?: { readonly [key: string]: ApiJson | undefined };
  freshness: Freshness;
}

/**
 * Answers a market route: envelope with meta, weak ETag, 304. The ETag covers data and the lasting part of meta
 * (`next_cursor`), not request id and timestamp, which differ each time.
 */
export function sendMarketData(
  ctx: ApiContext,
  deps: Pick<ApiDeps, 'decimalFormat' | 'now'>,
  answer: MarketAnswer,
): void {
  const data = toJsonText(answer.data, deps.decimalFormat);
  const lasting = toJsonText(answer.meta ?? {}, deps.decimalFormat);
  const etag = `W/"${createHash('sha1').update(data).update(lasting).digest('base64url')}"`;
  ctx.set('ETag', etag);
  ctx.set('Cache-Control', `private, max-age=${MAX_AGE_SECONDS[answer.freshness]}`);
  ctx.set('Vary', 'Authorization');
  if (matchesEtag(ctx.get('If-None-Match'), etag)) {
    ctx.status = 304;
    return;
  }
  const requestId = JSON.stringify(ctx.state.requestId);
  const more = lasting === '{}' ? '' : `,${lasting.slice(1, -1)}`;
  ctx.type = JSON_TYPE;
  ctx.body = `{"success":true,"data":${data},"meta":{"request_id":${requestId},"timestamp":${Math.floor(deps.now() / 1000)}${more}}}`;
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
function matchesEtag(header: string, etag: string): boolean {
  if (header === '') return false;
  if (header.trim() === '*') return true;
  const opaque = etag.slice('W/'.length);
  return header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === opaque);
}

/** Epoch seconds of a moment; absent when unknown. */
export function epochSeconds(at: Date | null): number | undefined {
  return at === null ? undefined : Math.floor(at.getTime() / 1000);
}
