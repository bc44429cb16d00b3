import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import WebSocket from 'ws';
import type { RandomStream } from '../../../sim/random.ts';
import { forwardAbort } from '../../../src/domain/values/signals.ts';
import type { Fleet } from '../../support/processes/fleet.ts';
import { API_KEY } from '../../support/processes/system.ts';

const CHANNELS = ['prices', 'trades', 'books', 'candles', 'markets'] as const;
/** The pause of a client before it connects again, milliseconds. */
const RECONNECT_MS = [50, 800] as const;
/** A connection without any byte for this long is dead. Heartbeats and their substitutes come more often. */
const SILENCE_LIMIT_MS = 20_000;

/** A message as a client gets it. */
export interface Received {
  type: string;
  seq: number;
  market_id?: string;
  outcome_id?: string;
  conflated?: number;
  /** On a WebSocket. */
  cursor?: string;
  data: Record<string, unknown>;
}

/** A message with the last number of the connections before its own. */
export interface Logged extends Received {
  resumedAt: number;
}

export interface ClientFilter {
  channels: readonly string[];
  marketIds?: readonly string[];
  /** Over a WebSocket instead of server-sent events. */
  isSocket?: boolean;
}

/** A reader of one market stream that connects again after every end, to any API process, with its last cursor. */
export class StreamReader {
  /** Every message except heartbeats, in the order of arrival. */
  readonly log: Logged[] = [];
  /** Violations that need no ledger, such as a heartbeat that passes an unsent change. */
  readonly violations: string[] = [];
  /** The client has everything after this number. Undefined before the first heartbeat. */
  from: number | undefined;
  /** The last number that a heartbeat confirmed. */
  confirmed = -1;
  connections = 0;
  #resumedAt = -1;
  readonly filter: ClientFilter;
  readonly #fleet: Fleet;
  readonly #random: RandomStream;
  readonly #over = new AbortController();
  readonly #running: Promise<void>;
  #cursor: string | undefined;

  constructor(fleet: Fleet, filter: ClientFilter, random: RandomStream) {
    this.filter = filter;
    this.#fleet = fleet;
    this.#random = random;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      this.#resumedAt = this.#last;
      await (this.filter.isSocket ? this.#connectSocket() : this.#connect()).catch(() => undefined);
      await delay(this.#random.between(...RECONNECT_MS), undefined, { signal }).catch(() => undefined);
    }
  }

  async #connect(): Promise<void> {
    const { channels, marketIds } = this.filter;
    const query = new URLSearchParams({ channels: channels.join(',') });
    if (marketIds) query.set('market_ids', marketIds.join(','));
    const silence = new AbortController();
    const unlink = forwardAbort(this.#over.signal, silence);
    try {
      await this.#read(query, silence);
    } finally {
      unlink();
    }
  }

  async #read(query: URLSearchParams, silence: AbortController): Promise<void> {
    const response = await fetch(`${this.#random.pick(this.#fleet.apis())}/v1/polymarket/stream?${query}`, {
      headers: {
        authorization: `Bearer ${API_KEY}`,
        ...(this.#cursor !== undefined && { 'last-event-id': this.#cursor }),
      },
      signal: silence.signal,
    });
    if (response.status === 400) this.violations.push(`400: ${await response.text()}`);
    if (response.status !== 200 || !response.body) return void (await response.body?.cancel());
    this.connections += 1;
    let watchdog = setTimeout(() => silence.abort(), SILENCE_LIMIT_MS);
    try {
      let text = '';
      for await (const bytes of response.body.pipeThrough(new TextDecoderStream())) {
        clearTimeout(watchdog);
        watchdog = setTimeout(() => silence.abort(), SILENCE_LIMIT_MS);
        const events = (text + bytes).split('\n\n');
        text = events.pop() ?? '';
        for (const event of events) this.#take(event);
      }
    } finally {
      clearTimeout(watchdog);
    }
  }

  async #connectSocket(): Promise<void> {
    const { channels, marketIds } = this.filter;
    const url = `${this.#random.pick(this.#fleet.apis()).replace('http', 'ws')}/v1/stream`;
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${API_KEY}` } });
    const end = () => socket.terminate();
    this.#over.signal.addEventListener('abort', end);
    let watchdog = setTimeout(end, SILENCE_LIMIT_MS);
    try {
      socket.on('error', () => undefined);
      socket.on('open', () => {
        this.connections += 1;
        const cursor = this.#cursor;
        const filter = { venue: 'polymarket', channels, ...(marketIds && { market_ids: marketIds }) };
        socket.send(JSON.stringify({ type: 'subscribe', id: 's', ...filter, ...(cursor !== undefined && { cursor }) }));
      });
      socket.on('message', (bytes) => {
        clearTimeout(watchdog);
        watchdog = setTimeout(end, SILENCE_LIMIT_MS);
        const message = JSON.parse(String(bytes)) as Received;
        if (message.type === 'subscribed') return;
        // A process that starts or stops refuses a subscription; then the reader goes to another one.
        if (message.type === 'error') end();
        else this.#note(message, message.cursor);
      });
      await once(socket, 'close');
    } finally {
      clearTimeout(watchdog);
      this.#over.signal.removeEventListener('abort', end);
      socket.terminate();
    }
  }

  /** An event that was cut off by the end of its connection never comes here. */
  #take(event: string): void {
    const fields = new Map(
      event.split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]),
    );
    const data = fields.get('data');
    if (data === undefined) return;
    const message = JSON.parse(data) as Received;
    if (fields.get('event') !== message.type) this.violations.push(`event ${fields.get('event')} with ${data}`);
    this.#note(message, fields.get('id'));
  }

  get #last(): number {
    return Math.max(this.confirmed, this.log.at(-1)?.seq ?? -1);
  }

  #note(message: Received, cursor: string | undefined): void {
    const last = this.#last;
    switch (message.type) {
      case 'heartbeat':
        if (message.seq < last) this.violations.push(`heartbeat ${message.seq} after ${last}`);
        this.from ??= message.seq;
        this.confirmed = message.seq;
        break;
      case 'stale':
        break;
      default:
        if (this.from === undefined) this.from = message.seq - 1;
        // A gap names numbers, and has one only as the position after it.
        if (message.type !== 'gap' && message.type !== 'lagged' && message.seq <= last)
          this.violations.push(`${message.type} ${message.seq} after ${last}`);
        this.log.push({ ...message, resumedAt: this.#resumedAt });
    }
    this.#cursor = cursor ?? this.#cursor;
  }
}

/** Readers of different parts of a venue: everything, one channel, or some markets; two of seven over WebSockets. */
export function startReaders(
  fleet: Fleet,
  { count, marketIds, random }: { count: number; marketIds: readonly string[]; random: RandomStream },
): StreamReader[] {
  return Array.from({ length: count }, (_, number) => {
    const some = Array.from({ length: random.between(1, 3) }, () => random.pick(marketIds));
    const filter: ClientFilter =
      number % 20 === 0
        ? { channels: CHANNELS }
        : number % 20 === 1
          ? { channels: ['trades'] }
          : {
              channels: CHANNELS.filter(() => random.chance(600_000))
                .concat('trades')
                .filter(isFirst),
              marketIds: [...new Set(some)],
            };
    return new StreamReader(fleet, { ...filter, isSocket: number % 7 < 2 }, random);
  });
}

function isFirst<T>(value: T, index: number, all: readonly T[]): boolean {
  return all.indexOf(value) === index;
}
