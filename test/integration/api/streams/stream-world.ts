import { afterEach, beforeEach, expect } from 'vitest';
import { asyncApiText } from '../../../../api/routes/documents.ts';
import { createLogger } from '../../../../src/observe/logger.ts';
import { sql } from '../../../../src/store/db/tx.ts';
import { startPublisher } from '../../../../src/store/journal/publisher.ts';
import { AsyncContract, type StreamChannel } from '../../../support/async-contract.ts';
import { type ConfirmedJournal, confirmJournal, type NewChange } from '../../../support/journal.ts';
import { openSocket, type SocketReader } from '../../../support/socket.ts';
import { openSse, type SseReader } from '../../../support/sse.ts';
import type { Client, TestApi } from '../api-harness.ts';
import { withApi } from '../with-api.ts';

const NEW_EPOCH = sql(
  'test_new_epoch',
  `INSERT INTO journal_head (turn, epoch, origin, seq, oldest_seq, at, checked_at, closed_until, published)
   SELECT turn + 1, gen_random_uuid(), origin, seq + 1000, seq + 1001, at, clock_timestamp(), closed_until, published
   FROM journal_head ORDER BY turn DESC LIMIT 1`,
);

/** Opens streams of an API with a confirmed journal, and checks every message against the document. */
export interface StreamWorld {
  readonly api: TestApi;
  readonly client: Client;
  readonly stranger: Client;
  readonly journal: ConfirmedJournal;
  /** Appends changes; returns the new `seq`. */
  append(...changes: NewChange[]): Promise<number>;
  /** A market stream. */
  follow(
    query: string,
    headers?: Record<string, string>,
    options?: { url?: string; venue?: string; key?: string },
  ): Promise<SseReader>;
  /** Begins another epoch of the journal, as a restored database does. */
  beginEpoch(): Promise<unknown>;
  /** The stream of account events. */
  followEvents(headers?: Record<string, string>, query?: string): Promise<SseReader>;
  /** A WebSocket with the key of the client, or without a key. */
  connect(options?: { key?: string | null; headers?: Record<string, string>; url?: string }): Promise<SocketReader>;
}

/** The journal of a publisher, which publishes what the test stores. */
function publishedJournal(databaseUrl: string): ConfirmedJournal {
  const log = createLogger({ process: 'test', level: 'silent' });
  const publisher = startPublisher({ databaseUrl, log, retentionMinutes: 120, maxBytes: 1_000_000_000 });
  // A claim of the publisher at the same time lets the write of the head fail.
  const run: ConfirmedJournal['run'] = (write) => write().catch(() => run(write));
  const append = () => Promise.reject(new TypeError('the publisher alone appends changes'));
  return { run, append, stop: () => publisher.stop() };
}

/** With `isPublished`, a publisher runs; otherwise the test appends the changes of the journal. */
export function withStreams({ isPublished = false } = {}): StreamWorld {
  const started = withApi();
  let journal: ConfirmedJournal;
  let contract: AsyncContract | undefined;
  const streams: { reader: SseReader; channel: StreamChannel }[] = [];
  const sockets: SocketReader[] = [];
  beforeEach(() => {
    journal = isPublished ? publishedJournal(started.api.databaseUrl) : confirmJournal(started.api.db);
  });
  afterEach(async () => {
    contract ??= new AsyncContract(asyncApiText(started.api.deps));
    const problems: string[] = [];
    for (const { reader, channel } of streams.splice(0)) {
      reader.close();
      for (const { text } of reader.events) problems.push(...contract.problemsOf(channel, text));
    }
    for (const socket of sockets.splice(0)) {
      socket.close();
      for (const text of socket.texts) problems.push(...contract.problemsOf('socket', text));
    }
    await journal.stop();
    expect(problems).toEqual([]);
  });
  return {
    ...started,
    get journal() {
      return journal;
    },
    append: (...changes) => journal.append(changes),
    beginEpoch: () => journal.run(() => started.api.db.query(NEW_EPOCH)),
    async follow(query, headers = {}, { url = started.api.url, venue = 'all', key = started.client.key } = {}) {
      const reader = await openSse(`${url}/v1/${venue}/stream?${query}`, {
        authorization: `Bearer ${key}`,
        ...headers,
      });
      streams.push({ reader, channel: 'marketStream' });
      return reader;
    },
    async followEvents(headers = {}, query = '') {
      const reader = await openSse(`${started.api.url}/v1/events/stream${query}`, {
        'x-api-key': started.client.key,
        ...headers,
      });
      streams.push({ reader, channel: 'accountEvents' });
      return reader;
    },
    async connect({ key = started.client.key, headers = {}, url = started.api.url } = {}) {
      const socket = await openSocket(`${url.replace('http', 'ws')}/v1/stream`, {
        ...(key !== null && { authorization: `Bearer ${key}` }),
        ...headers,
      });
      sockets.push(socket);
      return socket;
    },
  };
}

let made = 0;

export function aPrice(marketId = 'm1', outcomeId = `${marketId}-yes`): NewChange {
  made += 1;
  const body = { as_of: made, price: `0.${String(made).padStart(4, '0')}`, best_bid: '0.10' };
  return { kind: 'price', venue: 'polymarket', marketId, outcomeId, body };
}

export function aTrade(marketId = 'm1', size = '3'): NewChange {
  made += 1;
  const body = { trade_id: `t${made}`, timestamp: made, price: '0.5', size };
  return { kind: 'trade', venue: 'polymarket', marketId, outcomeId: `${marketId}-yes`, body };
}

export function aBook(marketId = 'm1'): NewChange {
  made += 1;
  const body = { as_of: made, bids: [{ price: '0.4', size: '10' }], asks: [], best_bid: '0.4' };
  return { kind: 'book', venue: 'polymarket', marketId, outcomeId: `${marketId}-yes`, body };
}
