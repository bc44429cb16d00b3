import { createHmac } from 'node:crypto';
import { json, type Reply, type SimRequest } from './reply.ts';

const MAX_LIMIT = 1000;
const DEFAULT_LIMIT = 100;
/** The page size and the position, which are not filters. */
const PAGING = ['limit', 'cursor'];

/** The error shape of version 2 of the Data API. */
export function dataError(status: number, error: string, parameter?: string): Reply {
  const code = status === 400 ? 'invalid_request' : 'not_found';
  return json({ error, code, retryable: false, trace_id: 'sim', ...(parameter && { parameter }) }, status);
}

/** The rejection of an unknown parameter, such as `offset`; undefined when all are known. */
export function refuseUnknown({ query }: SimRequest, known: readonly string[]): Reply | undefined {
  const unknown = [...query.keys()].find((name) => !known.includes(name) && !PAGING.includes(name));
  if (unknown === undefined) return undefined;
  const message = unknown === 'offset' ? 'offset is not supported, use cursor' : `unknown query param '${unknown}'`;
  return dataError(400, message, unknown);
}

interface Place<A> {
  readonly limit: number;
  /** The position after the last row of the page before; undefined on the first page. */
  readonly after?: A;
}

/** A page size and a position. The cursor contains the size of its first page, and is valid for the same route and filters only. */
export function readPlace<A>(request: SimRequest): Place<A> | Reply {
  const { query } = request;
  const cursor = query.get('cursor');
  if (cursor !== null && cursor !== '') {
    const place = openCursor<Place<A>>(cursor, scopeOf(request));
    return place ?? dataError(400, 'invalid cursor', 'cursor');
  }
  const limit = Number(query.get('limit') ?? DEFAULT_LIMIT);
  const isLimit = Number.isInteger(limit) && limit >= 1 && limit <= MAX_LIMIT;
  return isLimit ? { limit } : dataError(400, `limit must be 1..${MAX_LIMIT}`, 'limit');
}

export function isRefusal<T extends object>(value: T | Reply): value is Reply {
  return 'status' in value && 'body' in value;
}

/** The envelope of one page; `last` is the position of its last row when there are more. The rows are texts with exact digits. */
export function pageReply(request: SimRequest, rows: readonly string[], limit: number, last: unknown): Reply {
  const hasMore = last !== undefined;
  const next_cursor = hasMore ? sealCursor({ limit, after: last }, scopeOf(request)) : null;
  const pagination = JSON.stringify({ limit, offset: 0, has_more: hasMore, next_cursor });
  return { status: 200, body: `{"data":[${rows.join(',')}],"pagination":${pagination}}` };
}

function scopeOf({ path, query }: SimRequest): string {
  const filters = [...query].filter(([name]) => !PAGING.includes(name)).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${path} ${JSON.stringify(filters)}`;
}

function sealCursor(place: object, scope: string): string {
  const data = JSON.stringify(place);
  return Buffer.from(JSON.stringify({ data, sig: signatureOf(data, scope) })).toString('base64url');
}

function openCursor<P>(cursor: string, scope: string): P | undefined {
  try {
    const { data, sig } = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as { data: string; sig: string };
    return sig === signatureOf(data, scope) ? (JSON.parse(data) as P) : undefined;
  } catch {
    return undefined;
  }
}

function signatureOf(data: string, scope: string): string {
  return createHmac('sha256', 'simulated exchange').update(`${scope} ${data}`).digest('hex').slice(0, 32);
}
