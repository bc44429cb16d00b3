import { describe, expect, it } from 'vitest';
import type { FeedReading } from '../../../src/venues/feeds/port.ts';
import { FeedBook } from '../../../src/venues/polymarket/feed/book.ts';
import { deepFreeze, MUTATIONS, mutate, mutateAt, representatives, seededRandom } from '../venue-adapter/mutations.ts';
import { PINNED } from './pinned.ts';
import { type RecordedFrames, recordedFrames } from './recorded-frames.ts';
import { checkReading, prepared, replay, summary } from './replay.ts';

const recordings = recordedFrames();

/** Frames of all replays with a mutation, per file. */
const MUTATED_FRAMES = 1_500;

describe.skipIf(recordings !== undefined)('recorded frames', () => {
  it.skip('SKIPPED: the recorded frames are absent (../shared/venue-data or ODDSWIRE_VENUE_DATA)', () => {
    expect(recordings).toBeDefined();
  });
});

describe.skipIf(recordings === undefined)('recorded frames', () => {
  const files = recordings ?? [];

  it('are all in the table of expected results', () => {
    expect(files.map(({ file }) => file).sort()).toEqual(Object.keys(PINNED).sort());
  });

  describe.each(files)('$file', (recorded) => {
    it('ends each message as an update, a skip or a rejection, with these counts', () => {
      expect(summary(replay(recorded))).toEqual(PINNED[recorded.file]);
    });

    it('gives the same readings again', () => {
      const once = replay(deepFreeze({ ...recorded })).readings;
      expect(replay(recorded).readings).toEqual(once);
    });

    it('survives every mutation of every field', () => {
      const values = recorded.frames.map(jsonOf).filter((value) => value !== undefined);
      for (const { record, paths } of representatives(values)) {
        const { session, nowMs } = prepared(recorded, recorded.frames);
        for (const path of paths) {
          for (const mutation of MUTATIONS) {
            const frame = withJson(recorded, JSON.stringify(mutateAt(record, path, mutation)) ?? '');
            checkReading(session, session.take(frame, nowMs), nowMs);
          }
        }
      }
    });

    it('survives texts that are not frames', () => {
      const { session, nowMs } = prepared(recorded, recorded.frames);
      const whole = recorded.frames.at(-1) ?? '';
      const cut = Array.from({ length: 50 }, (_, at) => whole.slice(0, Math.floor((whole.length * at) / 50)));
      const garbage = [
        'null',
        '7',
        '"text"',
        '[]',
        '[[]]',
        '[null]',
        '{}',
        '[{}]',
        '\u0000',
        '['.repeat(5_000),
        ...cut,
      ];
      for (const frame of garbage) checkReading(session, session.take(frame, nowMs), nowMs);
    });

    it('stays sound when one frame of the session is mutated', () => {
      const random = seededRandom(recorded.frames.length * 7919 + recorded.file.length);
      const rounds = Math.ceil(MUTATED_FRAMES / Math.max(recorded.frames.length, 25));
      for (let round = 0; round < rounds; round += 1) replay(recorded, mutatedFrames(recorded, random));
    });

    it('stays sound when frames are lost, repeated and reordered', () => {
      const random = seededRandom(recorded.file.length);
      const rounds = Math.ceil(MUTATED_FRAMES / Math.max(recorded.frames.length, 25) / 2);
      for (let round = 0; round < rounds; round += 1) {
        const frames = recorded.frames.flatMap((frame) => {
          const draw = random();
          return draw < 0.1 ? [] : draw < 0.2 ? [frame, frame] : [frame];
        });
        const at = Math.floor(random() * frames.length);
        replay(recorded, [...frames.slice(0, at), ...frames.slice(at).reverse()]);
      }
    });
  });
});

describe.skipIf(recordings === undefined)('the hash of Polymarket books', () => {
  const files = (recordings ?? []).filter(({ venue }) => venue === 'polymarket');
  const live = files.filter(({ file }) => file.includes('live_1'));
  /** From its first delta on, the hashes of this market do not fit: the recording lacks a change between snapshot and delta. */
  const LOST_MARKET = '0x690fafd3b7bb8b4919ccf0f219b0014b65334411a1076162e76353e76d7f9bec';

  it('recomputes for every recorded snapshot that its source did not cut', () => {
    // A snapshot after the first one does not state the last trade of its market.
    const lastTrades = Array.from({ length: 1_001 }, (_, at) => (at / 1_000).toFixed(3));
    const tickSizes = ['0.01', '0.001'];
    const results = files.flatMap(({ file, frames }) => {
      const snapshots = frames.flatMap(messagesOf).filter(({ event_type }) => event_type === 'book');
      return snapshots.map((message) => {
        const book = new FeedBook(message.market, message.asset_id, message);
        const lastTradePrices =
          message.last_trade_price !== undefined ? [message.last_trade_price] : ['', ...lastTrades];
        const ticks = message.tick_size === undefined ? tickSizes : [message.tick_size];
        const isVerified = ticks.some((tickSize) => book.identify(message.hash, { tickSize, lastTradePrices }));
        return { file, isVerified };
      });
    });
    expect(results.filter(({ isVerified }) => !isVerified).map(({ file }) => file)).toEqual([
      'feeds/polymarket/ws_2026-08-14_frames.jsonl',
    ]);
    expect(results.length).toBe(25);
  });

  it('confirms books made of deltas, and finds the market of which a change was lost', () => {
    for (const recorded of live) {
      const { session, endMs } = replay(recorded);
      expect(session.check(endMs + 3_000)).toEqual([
        { of: 'books', reason: 'hash_mismatch', marketIds: [LOST_MARKET] },
      ]);
      const others = recorded.markets.filter(({ marketId }) => marketId !== LOST_MARKET);
      for (const outcomeId of others.flatMap(({ outcomeIds }) => outcomeIds))
        expect(session.book(outcomeId)).toBeDefined();
    }
  });

  it('confirms each book of a burst that crosses: every best price is that of its frame', () => {
    const burst = files.find(({ file }) => file.includes('crossing_burst'));
    if (burst === undefined) throw new Error('no burst');
    const [outcomeId = ''] = burst.markets[0]?.outcomeIds ?? [];
    const seen: string[] = [];
    const { session, endMs } = replay(burst, burst.frames, (each) => {
      const book = each.book(outcomeId);
      seen.push(`${book?.bids[0]?.price} ${book?.asks[0]?.price}`);
    });
    const stated = burst.frames.map((frame) => {
      const legs = (JSON.parse(frame) as { price_changes?: { asset_id: string; best_bid: string; best_ask: string }[] })
        .price_changes;
      const leg = legs?.find((each) => each.asset_id === outcomeId);
      return leg === undefined ? '0.3 0.397' : `${leg.best_bid} ${leg.best_ask}`;
    });
    expect(seen).toEqual(stated);
    expect(session.check(endMs + 3_000)).toEqual([]);
  });

  it('lets no announced book differ from the real ones when a frame is mutated', () => {
    for (const recorded of live) {
      const real = announcedBooks(recorded, recorded.frames);
      const random = seededRandom(27);
      for (let round = 0; round < 150; round += 1) {
        // The first frame has the snapshots: before them, no context of the hash is known.
        const frames = mutatedFrames(recorded, random, 1);
        for (const book of announcedBooks(recorded, frames)) expect(real).toContain(book);
      }
    }
  });

  function announcedBooks(recorded: RecordedFrames, frames: readonly string[]): Set<string> {
    const books = new Set<string>();
    replay(recorded, frames, (session, reading: FeedReading) => {
      for (const update of reading.updates) {
        const book = update.kind === 'book' ? session.book(update.outcomeId) : undefined;
        if (book) books.add(JSON.stringify([book.outcomeId, book.bids, book.asks]));
      }
    });
    return books;
  }
});

interface SnapshotMessage {
  event_type: string;
  market: string;
  asset_id: string;
  timestamp: string;
  hash: string;
  bids: { price: string; size: string }[];
  asks: { price: string; size: string }[];
  tick_size?: string;
  last_trade_price?: string;
}

function messagesOf(frame: string): SnapshotMessage[] {
  return [JSON.parse(frame) as SnapshotMessage | SnapshotMessage[]].flat();
}

const PACKET = /^\d+(?:\/markets,)?/;

/** The JSON of a frame; a frame of Socket.IO has a packet type before it. */
function jsonOf(frame: string): unknown {
  const json = frame.startsWith('{') || frame.startsWith('[') ? frame : frame.replace(PACKET, '');
  return json === '' ? undefined : JSON.parse(json);
}

function withJson({ venue }: RecordedFrames, json: string): string {
  return venue === 'limitless' ? `42/markets,${json}` : json;
}

/** The frames with one mutation, at position `from` or later. */
function mutatedFrames(recorded: RecordedFrames, random: () => number, from = 0): string[] {
  const at = from + Math.floor(random() * (recorded.frames.length - from));
  const frames = [...recorded.frames];
  const value = jsonOf(frames[at] ?? '');
  if (value !== undefined) frames[at] = withJson(recorded, JSON.stringify(mutate(value, random).record) ?? '');
  return frames;
}
