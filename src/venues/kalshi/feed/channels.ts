import type { Quotes } from '../../../domain/markets/quoted-price.ts';
import { compareDecimals, type Decimal, parseDecimal, ZERO } from '../../../domain/values/decimal.ts';
import { isPlausibleQuantity } from '../../quantity.ts';
import { accept, type Reading, reject } from '../../rejection.ts';
import { MAX_AHEAD_MS } from '../../venue-time.ts';
import { readPrice } from '../dollars.ts';
import { realQuote } from '../parse-price.ts';

/** Tickers of one command. Larger commands are not recorded. */
const TICKERS_PER_COMMAND = 100;

/** The channels with subscribed markets. `market_lifecycle_v2` has no filter and covers every market. */
const MARKET_CHANNELS = ['orderbook_delta', 'ticker', 'trade'] as const;
const LIFECYCLE = 'market_lifecycle_v2';

/** The place of a message in its channel. */
type Place = 'next' | 'repeated' | 'gap' | 'uncounted';

interface Subscription {
  readonly channel: string;
  /** The last number; undefined before the first message. */
  seq: number | undefined;
}

/**
 * The subscriptions of one connection: a `sid` for each channel, with its own contiguous numbers. `ok`, `unsubscribed` and errors with a
 * `sid` have a number too.
 */
export class KalshiChannels {
  readonly #bySid = new Map<number, Subscription>();
  readonly #usesYesPrice: boolean;
  /** Markets that wait for the first `subscribed` of each channel. */
  readonly #waiting = new Map<string, Set<string>>(MARKET_CHANNELS.map((channel) => [channel, new Set()]));
  #isRequested = false;
  #nextId = 1;

  constructor(usesYesPrice: boolean) {
    this.#usesYesPrice = usesYesPrice;
  }

  channelOf(sid: number | null | undefined): string | undefined {
    return sid === null || sid === undefined ? undefined : this.#bySid.get(sid)?.channel;
  }

  openLifecycle(): string {
    return this.#command('subscribe', { channels: [LIFECYCLE] });
  }

  /** The commands that add markets. The first one makes the channels; the next ones need the `sid` of its answer. */
  add(tickers: readonly string[]): string[] {
    if (tickers.length === 0) return [];
    if (!this.#isRequested) {
      this.#isRequested = true;
      const first = tickers.slice(0, TICKERS_PER_COMMAND);
      for (const waiting of this.#waiting.values()) {
        for (const ticker of tickers.slice(TICKERS_PER_COMMAND)) waiting.add(ticker);
      }
      const params = { channels: MARKET_CHANNELS, market_tickers: first, use_yes_price: this.#usesYesPrice };
      return [this.#command('subscribe', params)];
    }
    for (const waiting of this.#waiting.values()) for (const ticker of tickers) waiting.add(ticker);
    return this.#flush();
  }

  remove(tickers: readonly string[]): string[] {
    for (const waiting of this.#waiting.values()) for (const ticker of tickers) waiting.delete(ticker);
    return this.#sids().flatMap((sid) => this.#update(sid, 'delete_markets', tickers));
  }

  /** Snapshots exist in the channel of books only. */
  requestSnapshots(tickers: readonly string[]): string[] {
    const sid = this.#sidOf('orderbook_delta');
    return sid === undefined ? [] : this.#update(sid, 'get_snapshot', tickers);
  }

  /** A channel exists from now on; the commands that waited for it. */
  opened(channel: string, sid: number): string[] {
    this.#bySid.set(sid, { channel, seq: undefined });
    return this.#flush();
  }

  closed(sid: number): void {
    this.#bySid.delete(sid);
  }

  /** Counts a message of this `sid`. After a gap, counting continues behind it. */
  count(sid: number | null | undefined, seq: number | null | undefined): Place {
    const subscription = sid === null || sid === undefined ? undefined : this.#bySid.get(sid);
    if (subscription === undefined || seq === null || seq === undefined) return 'uncounted';
    const last = subscription.seq;
    if (last !== undefined && seq <= last) return 'repeated';
    subscription.seq = seq;
    // The numbers of a channel begin with 1.
    return seq === (last ?? 0) + 1 ? 'next' : 'gap';
  }

  #sids(): number[] {
    return [...this.#bySid].filter(([, { channel }]) => channel !== LIFECYCLE).map(([sid]) => sid);
  }

  #sidOf(channel: string): number | undefined {
    return [...this.#bySid].find(([, each]) => each.channel === channel)?.[0];
  }

  #flush(): string[] {
    return [...this.#waiting].flatMap(([channel, tickers]) => {
      const sid = this.#sidOf(channel);
      if (sid === undefined || tickers.size === 0) return [];
      const added = [...tickers];
      tickers.clear();
      return this.#update(sid, 'add_markets', added);
    });
  }

  #update(sid: number, action: string, tickers: readonly string[]): string[] {
    const commands: string[] = [];
    for (let at = 0; at < tickers.length; at += TICKERS_PER_COMMAND) {
      const market_tickers = tickers.slice(at, at + TICKERS_PER_COMMAND);
      commands.push(this.#command('update_subscription', { sids: [sid], action, market_tickers }));
    }
    return commands;
  }

  #command(cmd: string, params: object): string {
    const id = this.#nextId;
    this.#nextId += 1;
    return JSON.stringify({ id, cmd, params });
  }
}

/** The price and the change of size of a delta. */
export function readChange(
  raw: { price_dollars: string; delta_fp: string; ts_ms?: number | null | undefined },
  nowMs: number,
): Reading<{ price: Decimal; delta: Decimal }> {
  const price = readPrice('price_dollars', raw.price_dollars, undefined);
  if (!price.ok) return price;
  const delta = parseDecimal(raw.delta_fp);
  if (price.value === undefined || delta === null) return reject('invalid_field', 'delta_fp: not a number');
  if (!isPlausibleQuantity(delta)) return reject('size_out_of_range', `delta_fp: ${delta.slice(0, 40)}`);
  const isAhead = typeof raw.ts_ms === 'number' && raw.ts_ms > nowMs + MAX_AHEAD_MS;
  return isAhead ? reject('timestamp_in_future', `ts_ms: ${raw.ts_ms}`) : accept({ price: price.value, delta });
}

/** The quotes of a ticker, and the price of its last trade. */
export function readTicker(
  raw: { price_dollars: string; yes_bid_dollars: string; yes_ask_dollars: string; ts_ms?: number | null | undefined },
  nowMs: number,
): Reading<Quotes & { last: Decimal | undefined }> {
  const bid = readPrice('yes_bid_dollars', raw.yes_bid_dollars, undefined);
  if (!bid.ok) return bid;
  const ask = readPrice('yes_ask_dollars', raw.yes_ask_dollars, undefined);
  if (!ask.ok) return ask;
  const last = readPrice('price_dollars', raw.price_dollars, undefined);
  if (!last.ok) return last;
  if (typeof raw.ts_ms === 'number' && raw.ts_ms > nowMs + MAX_AHEAD_MS) {
    return reject('timestamp_in_future', `ts_ms: ${raw.ts_ms}`);
  }
  const quotes = { bid: realQuote(bid.value), ask: realQuote(ask.value) };
  if (quotes.bid !== undefined && quotes.ask !== undefined && compareDecimals(quotes.bid, quotes.ask) > 0) {
    return reject('crossed_quote', `bid ${quotes.bid} above ask ${quotes.ask}`);
  }
  return accept({ ...quotes, last: last.value === ZERO ? undefined : last.value });
}
