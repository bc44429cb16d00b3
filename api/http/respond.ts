import { createHash } from 'node:crypto';
import { type ApiJson, toJsonText } from '../../src/domain/values/api-json.ts';
import { OddswireError } from '../../src/domain/values/errors.ts';
import { type ColdAllowance, coldAllowance } from '../access/cold-allowance.ts';
import type { ApiContext, ApiDeps, Caller } from '../deps.ts';
import { ApiError } from '../errors.ts';
import { callerOf } from '../middleware/authenticate.ts';
import type { Freshness, PreparedAnswer } from '../reads/latest-cache.ts';

/** Closed buckets change only when a late trade comes in. */
const CACHE_CONTROL: Record<Freshness, string> = { latest: 'private, max-age=1', history: 'private, max-age=60' };
const JSON_TYPE = 'application/json; charset=utf-8';

type Fields = { readonly [key: string]: ApiJson | undefined };

/** The answer of a market route. `meta` holds its fields beside request id and timestamp. */
export interface MarketAnswer<Data extends ApiJson = ApiJson, Meta extends Fields = Fields> {
  data: Data;
  meta?: Meta;
  freshness: Freshness;
}

/** A read of a market route. */
export interface MarketRead<Data extends ApiJson = ApiJson, Meta extends Fields = Fields> {
  /**
   * The route's name and everything else the answer depends on but time and the caller: venue scope, ids, each query parameter
   * that shapes it, normalized. Requests with one key within a second get one answer.
   */
  key: readonly (string | number | boolean | null | undefined)[];
  /**
   * Makes the answer; an error is answered and not kept. Other requests may wait for it: it must not end with one client,
   * and must depend on the caller only through `cold`.
   */
  load(cold: ColdAllowance): Promise<MarketAnswer<Data, Meta>>;
}

type MarketDeps = Pick<ApiDeps, 'decimalFormat' | 'now' | 'latest' | 'limits'>;

/**
 * Answers a market route: envelope with meta, weak ETag, 304, from the cache of the last second where it can. The ETag covers
 * data and the lasting part of meta (`next_cursor`), not request id and timestamp, which differ each time.
 */
export async function sendMarketData(ctx: ApiContext, deps: MarketDeps, read: MarketRead): Promise<void> {
  const key = JSON.stringify(read.key);
  const { answer, isShared } = await sharedOrOwn(key, deps, read, callerOf(ctx));
  // Answers before the app carry no deprecation of a route.
  if (ctx.method === 'GET' && isShared && !ctx.response.get('Deprecation')) {
    deps.latest.remember(ctx.req.url ?? '', { key, route: String(ctx._matchedRoute) });
  }
  sendPrepared(ctx, deps, answer);
}

/** Loads waited for that turned out to be of another account alone, before one is made without sharing it. */
const MAX_OTHERS = 3;

/**
 * The shared answer; or, for an account without cold reads left, an answer of its own: its load is thrown, and
 * so never kept, to whoever waits for it, and those of other accounts load again. So an account's limit changes no other's
 * answers.
 */
async function sharedOrOwn(
  key: string,
  deps: MarketDeps,
  { load }: MarketRead,
  caller: Caller,
): Promise<{ answer: PreparedAnswer; isShared: boolean }> {
  const loadAs = () => loadFor(caller, deps, load);
  for (let others = 0; ; others++) {
    try {
      return { answer: await (others < MAX_OTHERS ? deps.latest.fetch(key, loadAs) : loadAs()), isShared: true };
    } catch (error) {
      if (!(error instanceof OwnAnswer)) throw error;
      if (error.accountId !== caller.accountId) continue;
      if (error.refusal) throw error.refusal;
      return { answer: error.answer, isShared: false };
    }
  }
}

async function loadFor(caller: Caller, deps: MarketDeps, load: MarketRead['load']): Promise<PreparedAnswer> {
  const cold = coldAllowance(deps, caller);
  try {
    const answer = await load(cold);
    if (!cold.isExhausted) return prepare(answer, deps);
    const own = prepare({ ...answer, meta: { ...answer.meta, cold_reads: 'exhausted' } }, deps);
    throw new OwnAnswer(caller.accountId, own);
  } catch (error) {
    if (cold.isExhausted && error instanceof ApiError) throw new OwnAnswer(caller.accountId, NO_ANSWER, error);
    throw error;
  }
}

const NO_ANSWER: PreparedAnswer = { data: 'null', meta: '', extraBytes: 0, etag: '', freshness: 'latest' };

/** The answer for an account without cold reads left: thrown, because an error is never kept. */
class OwnAnswer extends OddswireError {
  readonly accountId: bigint;
  readonly answer: PreparedAnswer;
  readonly refusal: ApiError | undefined;

  constructor(accountId: bigint, answer: PreparedAnswer, refusal?: ApiError) {
    super('own_answer', 'an answer of one account alone');
    this.accountId = accountId;
    this.answer = answer;
    this.refusal = refusal;
  }
}

function prepare(answer: MarketAnswer, deps: MarketDeps): PreparedAnswer {
  const data = toJsonText(answer.data, deps.decimalFormat);
  const meta = toJsonText(answer.meta ?? {}, deps.decimalFormat).slice(1, -1);
  const etag = `W/"${createHash('sha1').update(data).update(meta).digest('base64url')}"`;
  const extraBytes = Buffer.byteLength(data) - data.length + Buffer.byteLength(meta) - meta.length;
  return { data, meta, extraBytes, etag, freshness: answer.freshness };
}

function sendPrepared(ctx: ApiContext, deps: Pick<ApiDeps, 'now'>, answer: PreparedAnswer): void {
  ctx.vary(['Accept-Encoding', 'Authorization']);
  const headers = answerHeaders(answer, ctx.response.get('Vary'));
  for (let i = 0; i < headers.length; i += 2) ctx.set(headers[i] ?? '', headers[i + 1] ?? '');
  if (matchesEtag(ctx.get('If-None-Match'), answer.etag)) {
    ctx.status = 304;
    return;
  }
  ctx.type = JSON_TYPE;
  ctx.body = answerText(answer, ctx.state.requestId, deps.now());
}

/** Headers of an answer, 304 included: names and values in turn. */
export function answerHeaders({ etag, freshness }: PreparedAnswer, vary = 'Accept-Encoding, Authorization'): string[] {
  return ['ETag', etag, 'Cache-Control', CACHE_CONTROL[freshness], 'Vary', vary];
}

/** The answer in an envelope of its own, which is ASCII: request ids need no escaping (see `requestIdOf`). */
export function answerText({ data, meta }: PreparedAnswer, requestId: string, nowMs: number): string {
  const more = meta === '' ? '' : `,${meta}`;
  const timestamp = Math.floor(nowMs / 1000);
  return `{"success":true,"data":${data},"meta":{"request_id":"${requestId}","timestamp":${timestamp}${more}}}`;
}

/** The answer of an account route. */
export interface AccountAnswer<Data extends ApiJson = ApiJson> {
  data: Data;
  /** Where a list goes on. */
  meta?: { next_cursor: string | null };
  /** The path of the created resource. */
  location?: string;
}

/** Answers a webhook or alert route: success and data, and meta only where a list goes on. Never cached. */
export function sendAccountData(
  ctx: ApiContext,
  deps: Pick<ApiDeps, 'decimalFormat'>,
  status: 200 | 201 | 202,
  answer: AccountAnswer,
): void {
  sendAccountText(ctx, { status, text: accountText(answer, deps), location: answer.location });
}

/** The body of an account route's answer. */
export function accountText({ data, meta }: AccountAnswer, deps: Pick<ApiDeps, 'decimalFormat'>): string {
  return toJsonText({ success: true, data, meta }, deps.decimalFormat);
}

/** Sends a body that `accountText` made, now or earlier. */
export function sendAccountText(
  ctx: ApiContext,
  { status, text, location }: { status: number; text: string; location?: string | undefined },
): void {
  if (location !== undefined) ctx.set('Location', location);
  ctx.set('Cache-Control', 'no-store');
  ctx.status = status;
  ctx.type = JSON_TYPE;
  ctx.body = text;
}

/** Weak comparison of RFC 9110 section 13.1.2. */
export function matchesEtag(header: string, etag: string): boolean {
  if (header === '') return false;
  if (header.trim() === '*') return true;
  const opaque = etag.slice('W/'.length);
  return header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === opaque);
}

/** Epoch seconds of a moment; absent when unknown. */
export function epochSeconds(at: Date): number;
export function epochSeconds(at: Date | null): number | undefined;
export function epochSeconds(at: Date | null): number | undefined {
  return at === null ? undefined : Math.floor(at.getTime() / 1000);
}
