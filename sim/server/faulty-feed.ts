import { createHash } from 'node:crypto';
import type { FaultRequest, FeedFault } from '../faults.ts';
import { hashWord } from '../random.ts';
import { type FeedPage, type TradeRoute, tradeRouteOf } from '../trade-routes.ts';
import type { Reply, SimRequest } from './reply.ts';

const OMIT_DOMAIN = 62;
const MILLION = 1_000_000;
const DEFAULT_SHARE = 0.5;

interface Tape {
  /** The index after the newest trade. */
  end(): number;
  /** The simulated clock, epoch seconds. */
  second(): number;
}

/** The memory of one fault; it ends with the fault. */
interface Memory {
  /** The view of `cached`: the trades before `end`, made at `second`. */
  view: { readonly end: number; readonly second: number } | undefined;
  /** The first page of each path, which `repeating` repeats. */
  readonly pages: Map<string, FeedPage>;
}

/** Answers of trade routes during a `trade_feed` fault. The totals of the markets come from other routes and stay right. */
export class FaultyFeed {
  private readonly seed: number;
  private readonly tape: Tape;
  private readonly memories = new WeakMap<FaultRequest, Memory>();

  constructor(seed: number, tape: Tape) {
    this.seed = seed;
    this.tape = tape;
  }

  answer(request: SimRequest, fault: FaultRequest, origin: (request: SimRequest) => Reply): Reply {
    const { feed } = fault;
    const route = tradeRouteOf(request);
    if (feed === undefined || route === undefined) return origin(request);
    const memory = this.memories.get(fault) ?? { view: undefined, pages: new Map() };
    this.memories.set(fault, memory);
    if (feed.how === 'cached') return this.olderView(request, feed, memory, origin);
    const reply = origin(request);
    if (reply.status !== 200) return reply;
    const page = route.read(JSON.parse(reply.body));
    return { ...reply, body: JSON.stringify(route.write(this.faultyPage(request, route, page, feed, memory))) };
  }

  /** The route as it was when the fault began, or when the last view expired. */
  private olderView(
    request: SimRequest,
    { maxAgeSeconds = Number.POSITIVE_INFINITY, hasAge = false }: FeedFault,
    memory: Memory,
    origin: (request: SimRequest) => Reply,
  ): Reply {
    const now = this.tape.second();
    if (memory.view === undefined || now - memory.view.second >= maxAgeSeconds) {
      memory.view = { end: this.tape.end(), second: now };
    }
    const { end, second } = memory.view;
    const reply = origin({ ...request, tapeEnd: end });
    if (!hasAge || reply.status !== 200) return reply;
    const headers = { ...reply.headers, 'x-cache': 'Hit from cloudfront', age: String(now - second) };
    return { ...reply, headers };
  }

  private faultyPage(
    request: SimRequest,
    route: TradeRoute,
    page: FeedPage,
    feed: FeedFault,
    memory: Memory,
  ): FeedPage {
    if (feed.how === 'empty') return { rows: [], place: { ...page.place, ...route.end } };
    if (feed.how === 'truncated') return { ...page, rows: this.truncated(request, route, page.rows, feed) };
    const kept = memory.pages.get(request.path) ?? page;
    memory.pages.set(request.path, kept);
    const rows = kept.rows.slice(0, Number(request.query.get('limit') ?? kept.rows.length));
    if (feed.repeats !== 'page') return { ...page, rows };
    // The size of a page belongs to the request.
    const { limit: _, ...place } = kept.place;
    return { rows, place: { ...page.place, ...place } };
  }

  private truncated(
    request: SimRequest,
    route: TradeRoute,
    rows: readonly object[],
    { share = DEFAULT_SHARE, omits = 'random' }: FeedFault,
  ): readonly object[] {
    if (omits === 'random') return rows.filter((row) => this.drawOf(route.keyOf(row)) >= share * MILLION);
    const count = Math.ceil(rows.length * share);
    return route.isOldestFirst(request) ? rows.slice(count) : rows.slice(0, rows.length - count);
  }

  /** A number below a million that depends on the seed and the row only: an omitted row stays omitted. */
  private drawOf(key: string): number {
    return hashWord(this.seed, OMIT_DOMAIN, createHash('sha256').update(key).digest().readUInt32BE(0)) % MILLION;
  }
}
