import { type DecimalType, quoteNumbers } from './decimals.ts';
import { OddswireApiError, OddswireConnectionError } from './errors.ts';
import type { operations, paths } from './schema.ts';
import { type SseEvent, SseParser } from './sse.ts';
import { pause, piecesOf, type Transport } from './transport.ts';
import type { EventStreamMessage, StreamMessage } from './types.ts';

type MarketQuery = NonNullable<operations['streamMarkets']['parameters']['query']>;

/** The parameters of a market stream. */
export interface StreamQuery {
  /** The name of a venue, or `all` (default). */
  venue?: string;
  /** Default: `prices`. */
  channels?: readonly ('prices' | 'trades' | 'books' | 'candles' | 'markets' | 'resolutions' | 'executable')[];
  /** At most 100. Default: all markets. */
  market_ids?: readonly string[];
  outcome_ids?: readonly string[];
  category?: string;
  /** Of the channel `executable`, which needs it with `market_ids` or `outcome_ids`: at most 5 sizes in units of the outcome. */
  sizes?: readonly string[];
  /** Of the channel `executable`. Default: both. */
  side?: 'buy' | 'sell';
  /** Sends the prices of `market_ids` first. */
  snapshot?: boolean;
  /** The `cursor` of the last message that you have. */
  cursor?: string;
}

export interface StreamOptions {
  /** Ends the stream with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** The longest wait before a new connection. Default 10,000. */
  maxDelayMs?: number;
  /** The time without a heartbeat, beyond its interval, after which the stream reports `silent` and connects again. Default 5,000. */
  graceMs?: number;
}

/** No heartbeat arrived in time, or the connection was lost: the stream may lack changes until the next heartbeat. */
export interface SilentMessage {
  type: 'silent';
  data: {
    reason: 'no_heartbeat' | 'connection_lost';
    /** `checked_at` of the last heartbeat; absent before the first one. */
    checked_at?: string | undefined;
  };
}

/** The place of a message: a stream with this `cursor` continues behind it. */
interface Placed {
  cursor: string;
}

export type StreamItem<D extends DecimalType = number> = (StreamMessage<D> & Placed) | SilentMessage;
/** `body` is the exact text of `EventStreamMessage`, which a webhook gets and which signatures cover. */
export type EventStreamItem = (EventStreamMessage & Placed & { body: string }) | SilentMessage;

const FIRST_DELAY_MS = 250;
const DEFAULT_MAX_DELAY_MS = 10_000;
const DEFAULT_GRACE_MS = 5_000;
/** The interval of heartbeats until the first one states it. */
const DEFAULT_INTERVAL_MS = 15_000;

export function streamCalls<D extends DecimalType>(transport: Transport<D>) {
  return {
    /**
     * Follows changes of markets. Connects again after a loss and resumes behind the last message, so no message is lost or repeated; a
     * `gap` names changes that you lack: the service does not store them any more, or a venue's feed may have lost them. `silent` reports a
     * missing heartbeat or a lost connection. Ends only with `break`, with the signal, or with an error that another attempt would repeat.
     * @throws OddswireApiError for an invalid request or key.
     */
    stream({ venue = 'all', ...query }: StreamQuery = {}, options: StreamOptions = {}) {
      const { channels, market_ids, outcome_ids, category, sizes, side, snapshot, cursor } = query;
      const asked = new URLSearchParams();
      if (channels !== undefined) asked.set('channels' satisfies keyof MarketQuery, channels.join(','));
      if (market_ids !== undefined) asked.set('market_ids' satisfies keyof MarketQuery, market_ids.join(','));
      if (outcome_ids !== undefined) asked.set('outcome_ids' satisfies keyof MarketQuery, outcome_ids.join(','));
      if (category !== undefined) asked.set('category' satisfies keyof MarketQuery, category);
      if (sizes !== undefined) asked.set('sizes' satisfies keyof MarketQuery, sizes.join(','));
      if (side !== undefined) asked.set('side' satisfies keyof MarketQuery, side);
      if (snapshot !== undefined) asked.set('snapshot' satisfies keyof MarketQuery, String(snapshot));
      return follow<StreamMessage<D> & Placed>(transport, '/v1/{venue}/stream', { venue }, asked, cursor, options);
    },
    /** Follows the events of the account, with the body that a webhook gets. Resumes as `stream` does. */
    eventStream({ cursor }: { cursor?: string } = {}, options: StreamOptions = {}) {
      return follow<EventStreamMessage & Placed & { body: string }>(
        transport,
        '/v1/events/stream',
        {},
        new URLSearchParams(),
        cursor,
        options,
      );
    },
  };
}

/** A proxy answers with these while no process of the service does. A stream is a read, so it may begin again. */
const PROXY_STATUSES: ReadonlySet<number> = new Set([502, 504]);

/** All messages of a stream, over as many connections as it needs. */
async function* follow<Message extends Placed & { type: string }>(
  transport: Transport<DecimalType>,
  path: keyof paths,
  values: Record<string, string>,
  query: URLSearchParams,
  start: string | undefined,
  { signal, maxDelayMs = DEFAULT_MAX_DELAY_MS, graceMs = DEFAULT_GRACE_MS }: StreamOptions,
): AsyncGenerator<Message | SilentMessage, void, undefined> {
  const state: State = { cursor: start, seq: -1, checkedAt: undefined, intervalMs: DEFAULT_INTERVAL_MS };
  let isReported = false;
  for (let failures = 0; ; failures += 1) {
    signal?.throwIfAborted();
    let delayMs = Math.min(maxDelayMs, FIRST_DELAY_MS * 2 ** Math.min(failures, 10)) * (1 - Math.random() / 2);
    // A service that stops ends its streams: then the next connection decides whether the client is cut off.
    let reason: SilentMessage['data']['reason'] | undefined = 'connection_lost';
    try {
      const connection = { path, values, query, state, signal, graceMs };
      for await (const message of readOnce<Message>(transport, connection)) {
        failures = 0;
        isReported = false;
        reason = undefined;
        if (message !== REPEATED) yield message;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof OddswireApiError) {
        if (!error.retryable && !PROXY_STATUSES.has(error.status)) throw error;
        delayMs = Math.min(maxDelayMs, Math.max(delayMs, (error.retryAfterSeconds ?? 0) * 1_000));
      } else if (!(error instanceof OddswireConnectionError)) throw error;
      reason =
        error instanceof OddswireConnectionError && error.code === 'timeout' ? 'no_heartbeat' : 'connection_lost';
    }
    if (reason !== undefined && !isReported) {
      isReported = true;
      yield { type: 'silent', data: { reason, checked_at: state.checkedAt } };
    }
    await pause(delayMs, signal);
  }
}

/** The state that the connections of one stream share. */
interface State {
  cursor: string | undefined;
  /** The last number of a change that the caller has, or of a heartbeat that states it. */
  seq: number;
  checkedAt: string | undefined;
  intervalMs: number;
}

interface Connection {
  path: keyof paths;
  values: Record<string, string>;
  query: URLSearchParams;
  state: State;
  signal: AbortSignal | undefined;
  graceMs: number;
}

/** Stands for a message that the caller has. */
const REPEATED = Symbol('repeated');

/**
 * The messages of one connection. Returns when the service ends it.
 * @throws OddswireConnectionError `timeout` without a heartbeat, `connection_failed` for a message that is not JSON
 */
async function* readOnce<Message extends Placed>(
  transport: Transport<DecimalType>,
  { path, values, query, state, signal, graceMs }: Connection,
): AsyncGenerator<Message | typeof REPEATED, void, undefined> {
  const connection = new AbortController();
  const forward = () => connection.abort(signal?.reason);
  signal?.addEventListener('abort', forward, { once: true });
  let timer: ReturnType<typeof setTimeout> | undefined;
  let isCallerBusy = false;
  let isOverdue = false;
  const expectWithin = (limitMs: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      // A heartbeat may have arrived: a process that was suspended runs its timers before it reads, and nothing is read while the caller
      // works on a message.
      timer = setTimeout(() => {
        if (isCallerBusy) isOverdue = true;
        else connection.abort(new OddswireConnectionError('timeout', `no heartbeat within ${limitMs} ms`));
      });
    }, limitMs);
  };
  const expectHeartbeat = () => expectWithin(state.intervalMs + graceMs);
  try {
    expectHeartbeat();
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (state.cursor !== undefined) headers['Last-Event-ID'] = state.cursor;
    const response = await transport.open(path, { values, query, headers, signal: connection.signal });
    const parser = new SseParser();
    for await (const bytes of piecesOf(response, connection.signal)) {
      for (const event of parser.push(bytes)) {
        const message = messageOf<Message & Numbered>(event, transport.decimals, path);
        if (event.type === 'heartbeat') noteHeartbeat(message, state);
        if (event.type === 'heartbeat' || event.type === 'stale') expectHeartbeat();
        const isRepeated = isKnown(message, state);
        if (!isRepeated) {
          noteSeq(message, state);
          // Noted before the message is handed on: a caller that breaks has it.
          if (event.id !== '') state.cursor = event.id;
        }
        isCallerBusy = true;
        yield isRepeated ? REPEATED : message;
        isCallerBusy = false;
        if (isOverdue) expectWithin(graceMs);
        isOverdue = false;
      }
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', forward);
    connection.abort();
  }
}

/** The fields of a message that decide where a stream continues. Account events have no `seq`. */
interface Numbered {
  type: string;
  seq?: number;
  data?: { checked_at?: string; interval_seconds?: number; reason?: string; from?: number };
}

/** Messages of which each has a number of its own. States, such as the prices of a snapshot, share the number of a change. */
const CHANGES: ReadonlySet<string> = new Set(['price', 'trade', 'book', 'candle', 'market', 'resolution', 'gap']);

/** Whether the caller has a message that arrives again, as a proxy may cause. A gap that names lost changes never is. */
function isKnown(message: Numbered, { seq }: State): boolean {
  if (isLoss(message) || isNewEpoch(message)) return false;
  return CHANGES.has(message.type) && message.seq !== undefined && message.seq <= seq;
}

function noteSeq(message: Numbered, state: State): void {
  const { type, seq } = message;
  if (seq === undefined) return;
  if (isNewEpoch(message)) state.seq = seq;
  else if (CHANGES.has(type) || type === 'heartbeat') state.seq = Math.max(state.seq, seq);
}

/** Whether the message names changes that this stream lacks. It has the number of its last change, which a heartbeat may have stated. */
function isLoss({ type, data }: Numbered): boolean {
  return type === 'gap' && data?.from !== undefined;
}

/** Whether the numbers begin anew behind this message. */
function isNewEpoch({ type, data }: Numbered): boolean {
  return type === 'gap' && data?.reason === 'epoch';
}

function noteHeartbeat({ data }: Numbered, state: State): void {
  if (data?.checked_at === undefined || !(Number(data.interval_seconds) >= 0)) {
    throw new OddswireConnectionError('connection_failed', 'a heartbeat is not complete');
  }
  state.checkedAt = data.checked_at;
  state.intervalMs = Number(data.interval_seconds) * 1_000;
}

/** @throws OddswireConnectionError for text that is not JSON: the next connection continues before it. */
function messageOf<Message>(event: SseEvent, decimals: 'number' | 'string', path: keyof paths): Message {
  const isOfEvents = path === '/v1/events/stream';
  try {
    const text = decimals === 'string' && !isOfEvents ? quoteNumbers(event.data, 'decimals') : event.data;
    const message = { ...(JSON.parse(text) as Message), cursor: event.id };
    return isOfEvents ? { ...message, body: event.data } : message;
  } catch (error) {
    throw new OddswireConnectionError('connection_failed', 'a message is not JSON', error);
  }
}
