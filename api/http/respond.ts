import { createHash } from 'node:crypto';
import { type ApiJson, toJsonText } from '../../src/domain/values/api-json.ts';
import { OddswireError } from '../../src/domain/values/errors.ts';
import { fieldsOf } from '../../src/domain/wire/csv.ts';
import { type ColdAllowance, coldAllowance } from '../access/cold-allowance.ts';
import type { ApiContext, Caller } from '../context.ts';
import { ApiError, type ErrorDetail } from '../errors.ts';
import { callerOf } from '../middleware/authenticate.ts';
import { listed } from '../middleware/envelope.ts';
import type { Freshness, LoadedAnswer, PreparedAnswer, Validity } from '../reads/answer-cache.ts';
import type { MemoryAnswer } from '../reads/market-memory.ts';
import { csvEtag, prefersCsv, writeCsv } from './csv-answer.ts';
import type { AnswerDeps } from './deps.ts';

/** Closed buckets change only when a late trade arrives. */
const CACHE_CONTROL: Record<Freshness, string> = { latest: 'private, max-age=1', history: 'private, max-age=60' };
const JSON_TYPE = 'application/json; charset=utf-8';

type Fields = { readonly [key: string]: ApiJson | undefined };

/** The answer of a market route. `meta` holds its fields besides request id and timestamp. */
export interface MarketAnswer<Data extends ApiJson = ApiJson, Meta extends Fields = Fields> {
  data: Data;
  meta?: Meta;
  freshness: Freshness;
  /** Absent: it may be kept for a second. */
  validity?: Validity | undefined;
}

/** A read of a market route. */
export interface MarketRead<Data extends ApiJson = ApiJson, Meta extends Fields = Fields> {
  /**
   * The name of the route and all inputs of the answer except time and caller: venue scope, ids, and each normalized query
   * parameter that changes it. Requests with the same key get the same answer while it is valid.
   */
  key: readonly (string | number | boolean | null | undefined)[];
  /**
   * Builds the answer. Errors are answered and not cached. Other requests may wait for the same load, so it must not end with one
   * client, and it may depend on the caller only through `cold`.
   */
  load(cold: ColdAllowance): Promise<MarketAnswer<Data, Meta>>;
  /** The answer from the memory of markets; undefined without one. */
  remembered?(): MemoryAnswer | undefined;
}

type MarketDeps = Pick<AnswerDeps, 'decimalFormat' | 'now' | 'answers' | 'limits' | 'memory' | 'coldWaitMs'>;

/**
 * Answers a market route: envelope with meta, weak ETag, 304, from memory when possible. The ETag covers
 * data and the stable part of meta (`next_cursor`), but not request id and timestamp, which change per request. A list with `columns`
 * is also available as CSV, which is made from the same prepared answer and has an ETag of its own.
 * `isRecent`: whether the answer may be sent before the app.
 */
export async function sendMarketData(
  ctx: ApiContext,
  deps: MarketDeps,
  read: MarketRead,
  { columns, isRecent = true }: { columns?: readonly string[] | undefined; isRecent?: boolean } = {},
): Promise<void> {
  const remembered = deps.memory && read.remembered?.();
  if (deps.memory && remembered) {
    deps.memory.used(remembered);
    sendPrepared(ctx, deps, remembered.answer, columns);
    return;
  }
  const key = JSON.stringify(read.key);
  const { answer, isShared } = await sharedOrOwn(key, deps, read, callerOf(ctx));
  // Recent answers are sent before the app and carry no deprecation headers.
  if (ctx.method === 'GET' && isRecent && isShared && !ctx.response.get('Deprecation')) {
    deps.answers.remember(ctx.req.url ?? '', { key, route: String(ctx._matchedRoute) });
  }
  sendPrepared(ctx, deps, answer, columns);
}

/** A request waits for this many loads that belong to other accounts. After that it loads without sharing. */
const MAX_OTHERS = 3;

/**
 * Returns the shared answer, or an answer for this account alone when the account has no cold reads left. `OwnAnswer` carries the
 * latter as an error, because the cache keeps no errors. Waiting requests of other accounts load again, so the limit of one account
 * does not change the answers of another.
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
      if (others < MAX_OTHERS) return { answer: await deps.answers.fetch(key, loadAs), isShared: true };
      return { answer: (await loadAs()).answer, isShared: true };
    } catch (error) {
      if (!(error instanceof OwnAnswer)) throw error;
      if (error.accountId !== caller.accountId) continue;
      if (error.rejection) throw error.rejection;
      return { answer: error.answer, isShared: false };
    }
  }
}

async function loadFor(caller: Caller, deps: MarketDeps, load: MarketRead['load']): Promise<LoadedAnswer> {
  const cold = coldAllowance(deps, caller);
  try {
    const answer = await load(cold);
    if (!cold.isExhausted) return { answer: prepare(answer, deps), validity: answer.validity };
    const own = prepare({ ...answer, meta: { ...answer.meta, cold_reads: 'exhausted' } }, deps);
    throw new OwnAnswer(caller.accountId, own);
  } catch (error) {
    if (cold.isExhausted && error instanceof ApiError) throw new OwnAnswer(caller.accountId, NO_ANSWER, error);
    throw error;
  }
}

const NO_ANSWER: PreparedAnswer = { data: 'null', meta: '', extraBytes: 0, etag: '', freshness: 'latest' };

/** The answer for one account without cold reads left. */
class OwnAnswer extends OddswireError {
  readonly accountId: bigint;
  readonly answer: PreparedAnswer;
  readonly rejection: ApiError | undefined;

  constructor(accountId: bigint, answer: PreparedAnswer, rejection?: ApiError) {
    super('own_answer', 'an answer for one account alone');
    this.accountId = accountId;
    this.answer = answer;
    this.rejection = rejection;
  }
}

/** The texts of an answer. */
export function prepare(answer: MarketAnswer, deps: Pick<AnswerDeps, 'decimalFormat'>): PreparedAnswer {
  const data = toJsonText(answer.data, deps.decimalFormat);
  const meta = toJsonText(answer.meta ?? {}, deps.decimalFormat).slice(1, -1);
  const etag = `W/"${createHash('sha1').update(data).update(meta).digest('base64url')}"`;
  const extraBytes = Buffer.byteLength(data) - data.length + Buffer.byteLength(meta) - meta.length;
  return { data, meta, extraBytes, etag, freshness: answer.freshness };
}

function sendPrepared(
  ctx: ApiContext,
  deps: Pick<AnswerDeps, 'now'>,
  prepared: PreparedAnswer,
  columns: readonly string[] | undefined,
): void {
  ctx.vary(varyOf(prepared));
  const csvColumns = columns && prefersCsv(ctx.get('Accept')) ? columns : undefined;
  const answer = csvColumns ? { ...prepared, etag: csvEtag(prepared.etag) } : prepared;
  const headers = answerHeaders(answer, ctx.response.get('Vary'));
  for (let i = 0; i < headers.length; i += 2) ctx.set(headers[i] ?? '', headers[i + 1] ?? '');
  if (matchesEtag(ctx.get('If-None-Match'), answer.etag)) {
    ctx.status = 304;
    return;
  }
  if (csvColumns) {
    const warnings = ctx.state.warnings ? `${answer.meta === '' ? '' : ','}${warningsText(ctx.state.warnings)}` : '';
    writeCsv(ctx, csvColumns, { data: answer.data, meta: `{${answer.meta}${warnings}}` });
    return;
  }
  ctx.type = JSON_TYPE;
  ctx.body = answerText(answer, ctx.state.requestId, deps.now(), ctx.state.warnings);
}

/** The request headers that affect an answer. Only lists have a second media type. */
export function varyOf({ data }: PreparedAnswer): string[] {
  return ['Accept-Encoding', 'Authorization', ...(data.startsWith('[') ? ['Accept'] : [])];
}

/** Headers of an answer, 304 included: names and values alternate. */
export function answerHeaders(answer: PreparedAnswer, vary: string): string[] {
  return ['ETag', answer.etag, 'Cache-Control', CACHE_CONTROL[answer.freshness], 'Vary', vary];
}

/** The answer in its envelope. Request ids need no escaping (see `requestIdOf`). */
export function answerText(
  { data, meta }: PreparedAnswer,
  requestId: string,
  nowMs: number,
  warnings?: readonly ErrorDetail[],
): string {
  const more = (meta === '' ? '' : `,${meta}`) + (warnings ? `,${warningsText(warnings)}` : '');
  const timestamp = Math.floor(nowMs / 1000);
  return `{"success":true,"data":${data},"meta":{"request_id":"${requestId}","timestamp":${timestamp}${more}}}`;
}

/** `"warnings":[…]`, a field of `meta`. */
function warningsText(warnings: readonly ErrorDetail[]): string {
  return `"warnings":${JSON.stringify(listed(warnings))}`;
}

/** The answer of an account route. */
export interface AccountAnswer<Data extends ApiJson = ApiJson> {
  data: Data;
  /** Set for lists with pages. */
  meta?: { next_cursor: string | null };
  /** The path of the created resource. */
  location?: string;
  /** Given when it differs from the status of the route. */
  status?: 202;
}

/**
 * Answers a webhook or alert route: success and data, and meta only for lists with pages. Never cached. A list with `columns` is also
 * available as CSV.
 */
export function sendAccountData(
  ctx: ApiContext,
  deps: Pick<AnswerDeps, 'decimalFormat'>,
  status: 200 | 201 | 202,
  answer: AccountAnswer,
  columns?: readonly string[],
): void {
  const text = accountText(answer, deps);
  sendAccountText(ctx, { status, text, location: answer.location });
  if (!columns) return;
  ctx.vary('Accept');
  if (!prefersCsv(ctx.get('Accept'))) return;
  const { data = '[]', meta = '{}' } = Object.fromEntries(fieldsOf(String(ctx.body)));
  writeCsv(ctx, columns, { data, meta });
}

/** The body of an account route's answer. */
export function accountText({ data, meta }: AccountAnswer, deps: Pick<AnswerDeps, 'decimalFormat'>): string {
  return toJsonText({ success: true, data, meta }, deps.decimalFormat);
}

/** Sends a body from `accountText`, new or stored; a warning of this request joins its `meta`. */
export function sendAccountText(
  ctx: ApiContext,
  { status, text, location }: { status: number; text: string; location?: string | undefined },
): void {
  if (location !== undefined) ctx.set('Location', location);
  ctx.set('Cache-Control', 'no-store');
  ctx.status = status;
  ctx.type = JSON_TYPE;
  const { warnings } = ctx.state;
  ctx.body = warnings ? withWarnings(text, warnings) : text;
}

/** The text keeps its digits: only `meta`, the last field of a body, changes. */
function withWarnings(text: string, warnings: readonly ErrorDetail[]): string {
  const { meta } = JSON.parse(text) as { meta?: unknown };
  const added = warningsText(warnings);
  return meta === undefined ? `${text.slice(0, -1)},"meta":{${added}}}` : `${text.slice(0, -2)},${added}}}`;
}

/** Weak comparison (RFC 9110 section 13.1.2). */
export function matchesEtag(header: string, etag: string): boolean {
  if (header === '') return false;
  if (header.trim() === '*') return true;
  const opaque = etag.slice('W/'.length);
  return header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === opaque);
}

export function epochSeconds(at: Date): number {
  return Math.floor(at.getTime() / 1000);
}
