import { SimControlError } from './errors.ts';
import { checkSocketFault, type FeedHost, placeOf, type SocketFault, type SocketPlace } from './feeds/socket-faults.ts';
import { RandomStream } from './random.ts';
import type { SimRequest } from './server/reply.ts';
import { isLiveFeed, tradeRouteOf } from './trade-routes.ts';

/**
 * `latency` delays the answer; `drip` sends the body in pieces over that time; `hang` never answers; `reset` breaks the connection,
 * which simulates an unreachable host on a shared port. `status429` and `status500` reject the request. `truncate`
 * cuts the body, `html` sends a web page instead, `rename_field` and `set_field` change its fields. `cdn_cache` puts a CDN before
 * the route: it repeats the same answer, with its age, for `maxAgeSeconds` of simulated time. `repeat_cursor` answers a page with the
 * cursor of its request, and `expired_cursor` refuses a request with a cursor; the parameter and the field are called `cursor`.
 * `bad_member` refuses each request that names one of some ids, beside any others: in its path, its query or its body; or each request
 * whose answer would name one.
 * `trade_feed` loses or delays trades in correct answers of the routes of trades, which nothing but the totals of the markets shows.
 * `socket` hits the WebSocket feeds of a host and no request.
 */
const FAULT_KINDS = [
  'latency',
  'drip',
  'hang',
  'reset',
  'status429',
  'status500',
  'truncate',
  'html',
  'rename_field',
  'set_field',
  'cdn_cache',
  'repeat_cursor',
  'expired_cursor',
  'bad_member',
  'trade_feed',
  'socket',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];
const FAULT_HOSTS = [
  'gamma',
  'clob',
  'data',
  'kalshi',
  'manifold',
  'limitless',
  'jupiter',
  'solana',
  'polymarket',
  '*',
] as const;
export type FaultHost = (typeof FAULT_HOSTS)[number];
/** The hosts of one venue. */
const POLYMARKET_HOSTS = ['gamma', 'clob', 'data'];

/**
 * `cached` answers with an older view of the trades, `truncated` omits a share of the rows of each page, `repeating` repeats one page,
 * `empty` has no rows.
 */
const FEED_FAULTS = ['cached', 'truncated', 'repeating', 'empty'] as const;

/** The fault of a feed of trades. It hits the live feed only: the history of one market stays right unless `hitsHistory` is set. */
export interface FeedFault {
  readonly how: (typeof FEED_FAULTS)[number];
  /** Also hits requests for the trades of one market. Limitless has one route for both, so it is hit without this. */
  readonly hitsHistory?: boolean | undefined;
  /** `cached`: a new view after so many simulated seconds. Default: never. */
  readonly maxAgeSeconds?: number | undefined;
  /** `cached`: the answer contains `Age`. Default false. */
  readonly hasAge?: boolean | undefined;
  /** `truncated`: the omitted share of the rows, 0..1. Default 0.5. */
  readonly share?: number | undefined;
  /** `truncated`: the oldest rows of the page, or a share of all trades by the seed. Default `random`. */
  readonly omits?: 'oldest' | 'random' | undefined;
  /** `repeating`: the rows while cursor or totals go on, or the page with its cursor or totals. Default `rows`. */
  readonly repeats?: 'rows' | 'page' | undefined;
}

/** Ids that break a request. */
export interface BadMembers {
  readonly ids: readonly string[];
  /** The answer names them, and not the request: a page of a listing fails for one of its rows. Default false. */
  readonly inAnswer?: boolean | undefined;
  /** Only a request that names all of them fails. Default: any. */
  readonly together?: boolean | undefined;
  /** 400..599. Default 500. */
  readonly status?: number | undefined;
}

/** The kind, place and frequency of a fault. Without `count` it lasts until cleared; `probability` is 0..1, default 1. */
export interface FaultRequest {
  readonly host: FaultHost;
  /** Only paths with this prefix, without the host prefix: `/books`. */
  readonly path?: string | undefined;
  readonly kind: FaultKind;
  readonly retryAfterSeconds?: number | undefined;
  /** The delay of `latency`, and the duration of `drip`. */
  readonly latencyMs?: number | undefined;
  /** The status of `status500`, 500..599. Default 500. */
  readonly status?: number | undefined;
  /** `cdn_cache` only: the lifetime of an answer. Gamma's lists have 300. */
  readonly maxAgeSeconds?: number | undefined;
  readonly field?: { readonly from: string; readonly to: string } | undefined;
  /**
   * The value that `set_field` gives to this key: any JSON, also of a wrong type or size. Every occurrence of the key, or every
   * n-th occurrence in an answer, so that some records are bad among good ones.
   */
  readonly set?: { readonly field: string; readonly value: unknown; readonly every?: number | undefined } | undefined;
  /** `bad_member` only. */
  readonly members?: BadMembers | undefined;
  /** `trade_feed` only. */
  readonly feed?: FeedFault | undefined;
  /** `socket` only. */
  readonly socket?: SocketFault | undefined;
  readonly count?: number | undefined;
  /** The fault ends after so many simulated seconds. */
  readonly seconds?: number | undefined;
  readonly probability?: number | undefined;
  /** Truncate only: the announced length, of the cut or the full body. Default `cut`. */
  readonly contentLength?: 'cut' | 'full' | undefined;
}

export interface Fault extends FaultRequest {
  readonly id: number;
  /** The number of affected requests. */
  readonly applied: number;
}

interface ActiveFault {
  readonly id: number;
  readonly request: FaultRequest;
  readonly endSecond: number;
  applied: number;
}

const FAULT_DOMAIN = 61;

/** The active faults. A probability selects requests by the seed and the order of requests only. */
export class FaultBoard {
  private readonly random: RandomStream;
  private readonly nowSecond: () => number;
  private active: ActiveFault[] = [];
  private nextId = 1;

  /** @param nowSecond the simulated clock */
  constructor(seed: number, nowSecond: () => number) {
    this.random = new RandomStream(seed, FAULT_DOMAIN);
    this.nowSecond = nowSecond;
  }

  /** @throws SimControlError for an invalid request */
  add(request: FaultRequest): Fault {
    check(request);
    const endSecond = request.seconds === undefined ? Number.POSITIVE_INFINITY : this.nowSecond() + request.seconds;
    // A copy, because the memory of a fault belongs to its request, and a test may add one request twice.
    const fault = { id: this.nextId, request: { ...request }, endSecond, applied: 0 };
    this.nextId += 1;
    this.active.push(fault);
    return view(fault);
  }

  list(): Fault[] {
    this.endExpired();
    return this.active.map(view);
  }

  /** Clears one fault, or all; returns the number of cleared faults. */
  clear(id?: number): number {
    const before = this.active.length;
    this.active = id === undefined ? [] : this.active.filter((fault) => fault.id !== id);
    return before - this.active.length;
  }

  /** The faults of this request; counts them, and removes exhausted ones. */
  take(asked: AskedRequest): FaultRequest[] {
    this.endExpired();
    const hits: FaultRequest[] = [];
    for (const fault of this.active) {
      const { request } = fault;
      if (request.kind === 'socket' || !isOf(request.host, asked.host)) continue;
      if (request.path !== undefined && !asked.path.startsWith(request.path)) continue;
      if (request.feed !== undefined && !hitsFeed(request.feed, asked)) continue;
      if (request.members !== undefined && !request.members.inAnswer && !namesBad(request.members, asked)) continue;
      if (request.probability !== undefined && !this.random.chance(Math.round(request.probability * 1_000_000)))
        continue;
      fault.applied += 1;
      hits.push(request);
    }
    this.active = this.active.filter(({ request, applied }) => request.count === undefined || applied < request.count);
    return hits;
  }

  /** The faults of the feeds of a host at this place; counts them. */
  socketFaults(host: FeedHost, place: SocketPlace): SocketFault[] {
    if (this.active.length === 0) return [];
    this.endExpired();
    const hits: SocketFault[] = [];
    for (const fault of this.active) {
      const { host: faulty, socket } = fault.request;
      if (socket === undefined || placeOf(socket) !== place || !isOf(faulty, host)) continue;
      fault.applied += 1;
      hits.push(socket);
    }
    this.active = this.active.filter(({ request, applied }) => request.count === undefined || applied < request.count);
    return hits;
  }

  private endExpired(): void {
    if (this.active.every(({ endSecond }) => endSecond === Number.POSITIVE_INFINITY)) return;
    const now = this.nowSecond();
    this.active = this.active.filter(({ endSecond }) => now < endSecond);
  }
}

type AskedRequest = Pick<SimRequest, 'host' | 'path' | 'query'> & Partial<Pick<SimRequest, 'body'>>;

function namesBad({ ids, together = false }: BadMembers, { path, query, body = '' }: AskedRequest): boolean {
  const named = new Set([
    ...path.split('/').map(decodeURIComponent),
    ...[...query.values()].flatMap((value) => [value, ...value.split(',')]),
  ]);
  const isNamed = (id: string) => named.has(id) || body.includes(JSON.stringify(id));
  return together ? ids.every(isNamed) : ids.some(isNamed);
}

/** Whether a request fails for its answer. */
export function isBadAnswer({ members }: FaultRequest, body: string): boolean {
  if (!members?.inAnswer) return false;
  const isNamed = (id: string) => body.includes(JSON.stringify(id));
  return members.together ? members.ids.every(isNamed) : members.ids.some(isNamed);
}

function hitsFeed({ hitsHistory = false }: FeedFault, asked: Pick<SimRequest, 'host' | 'path' | 'query'>): boolean {
  return hitsHistory ? tradeRouteOf(asked) !== undefined : isLiveFeed(asked);
}

function isOf(faulty: FaultHost, host: string): boolean {
  return faulty === '*' || faulty === host || (faulty === 'polymarket' && POLYMARKET_HOSTS.includes(host));
}

function view(fault: ActiveFault): Fault {
  return { id: fault.id, ...fault.request, applied: fault.applied };
}

function check(request: FaultRequest): void {
  const refuse = (message: string) => new SimControlError(400, 'invalid_fault', message);
  if (!FAULT_KINDS.includes(request.kind)) throw refuse(`kind must be one of ${FAULT_KINDS.join(' ')}`);
  if (!FAULT_HOSTS.includes(request.host)) throw refuse(`host must be one of ${FAULT_HOSTS.join(' ')}`);
  const { latencyMs, count, probability, retryAfterSeconds, field, set, status, maxAgeSeconds } = request;
  if (['latency', 'drip'].includes(request.kind) && !(latencyMs !== undefined && latencyMs >= 0))
    throw refuse(`${request.kind} needs latencyMs`);
  if (request.kind === 'rename_field' && (!field?.from || !field.to))
    throw refuse('rename_field needs field {from, to}');
  if (request.kind === 'set_field' && (!set?.field || !('value' in set)))
    throw refuse('set_field needs set {field, value}');
  if (request.kind === 'cdn_cache' && !(Number.isInteger(maxAgeSeconds) && Number(maxAgeSeconds) > 0))
    throw refuse('cdn_cache needs maxAgeSeconds, a positive integer');
  if (set?.every !== undefined && !(Number.isInteger(set.every) && set.every > 0))
    throw refuse('set.every must be a positive integer');
  if (status !== undefined && !(Number.isInteger(status) && status >= 500 && status <= 599))
    throw refuse('status must be 500..599');
  if (count !== undefined && !(Number.isInteger(count) && count > 0)) throw refuse('count must be a positive integer');
  if (probability !== undefined && !(probability >= 0 && probability <= 1)) throw refuse('probability must be 0..1');
  const { seconds, feed } = request;
  if (seconds !== undefined && !(Number.isInteger(seconds) && seconds > 0))
    throw refuse('seconds must be a positive integer');
  if ((request.kind === 'trade_feed') !== (feed !== undefined))
    throw refuse('trade_feed, and nothing else, needs feed');
  if ((request.kind === 'bad_member') !== (request.members !== undefined))
    throw refuse('bad_member, and nothing else, needs members');
  const reasonOfMembers = request.members && membersProblem(request.members);
  if (reasonOfMembers) throw refuse(reasonOfMembers);
  if ((request.kind === 'socket') !== (request.socket !== undefined))
    throw refuse('socket, and nothing else, needs socket');
  if (request.socket !== undefined) checkSocketFault(request.host, request.socket);
  const reason = feed && feedProblem(feed);
  if (reason) throw refuse(reason);
  if (retryAfterSeconds !== undefined && !(retryAfterSeconds >= 0)) throw refuse('retryAfterSeconds must be >= 0');
}

function membersProblem({ ids, status }: BadMembers): string | undefined {
  const isId = (id: unknown) => typeof id === 'string' && id !== '';
  if (!Array.isArray(ids) || ids.length === 0 || !ids.every(isId)) return 'members.ids must be a list of ids';
  const isStatus = status === undefined || (Number.isInteger(status) && status >= 400 && status <= 599);
  return isStatus ? undefined : 'members.status must be 400..599';
}

function feedProblem({ how, share, omits, repeats, maxAgeSeconds }: FeedFault): string | undefined {
  if (!FEED_FAULTS.includes(how)) return `feed.how must be one of ${FEED_FAULTS.join(' ')}`;
  if (share !== undefined && !(share >= 0 && share <= 1)) return 'feed.share must be 0..1';
  if (omits !== undefined && !['oldest', 'random'].includes(omits)) return 'feed.omits must be oldest or random';
  if (repeats !== undefined && !['rows', 'page'].includes(repeats)) return 'feed.repeats must be rows or page';
  const isAge = maxAgeSeconds === undefined || (Number.isInteger(maxAgeSeconds) && maxAgeSeconds > 0);
  return isAge ? undefined : 'feed.maxAgeSeconds must be a positive integer';
}

/** Replaces the value of every n-th occurrence of a key in a JSON text. */
export function setField(text: string, field: string, value: unknown, every = 1): string {
  let places = 0;
  return JSON.stringify(
    JSON.parse(text, (key, old: unknown) => {
      if (key !== field) return old;
      places += 1;
      return places % every === 0 ? value : old;
    }),
  );
}

/** Renames every occurrence of a key in a JSON text. */
export function renameField(text: string, from: string, to: string): string {
  return JSON.stringify(
    JSON.parse(text, (_key, value: unknown) => {
      if (typeof value !== 'object' || value === null || Array.isArray(value) || !(from in value)) return value;
      return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key === from ? to : key, inner]));
    }),
  );
}
