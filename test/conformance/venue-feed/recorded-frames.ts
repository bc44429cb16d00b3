import { basename, join } from 'node:path';
import type { FeedMarket, FeedSession } from '../../../src/venues/feeds/port.ts';
import { createKalshiSession } from '../../../src/venues/kalshi/feed/feed.ts';
import { outcomeIdsOf } from '../../../src/venues/kalshi/tickers.ts';
import { createLimitlessSession } from '../../../src/venues/limitless/feed/feed.ts';
import { createPolymarketSession } from '../../../src/venues/polymarket/feed/feed.ts';
import {
  listRecordedFiles,
  readRecordedJson,
  readRecordedLines,
  readRecordedText,
  reportedFiles,
  venueDataFolder,
} from '../../support/venue-data.ts';

/** Later than every recording: no recorded time is in the future. */
export const NOW_MS = Date.UTC(2026, 9, 20);

type Json = Record<string, unknown>;

/** One recorded session: frames in order, and the state before the first one. */
export interface RecordedFrames {
  venue: 'polymarket' | 'kalshi' | 'limitless';
  /** Path below the folder of all recordings. */
  file: string;
  /** Frames of the venue that the recording lacks: acknowledgements, or the books before a batch. */
  prelude: readonly string[];
  frames: readonly string[];
  markets: readonly FeedMarket[];
  createSession(): FeedSession;
}

/** All recorded frames, or undefined when the folder is absent. */
export function recordedFrames(): RecordedFrames[] | undefined {
  const folder = venueDataFolder('feeds');
  const kalshi = venueDataFolder('kalshi');
  if (folder === undefined || kalshi === undefined) return undefined;
  const stream = '2026-08_cockpit/ws_orderbook_stream.json';
  return [
    ...listRecordedFiles(folder).flatMap((file) => readFile(folder, file)),
    kalshiSession(join('kalshi', stream), streamFrames(join(kalshi, stream))),
    ...reportedFiles()
      .filter(({ name }) => /^reports\/polymarket_ws_/.test(name))
      .map(({ name, path }) => polymarketSession(name, readRecordedLines(path).map(frameOf))),
  ];
}

function readFile(folder: string, file: string): RecordedFrames[] {
  const path = join(folder, file);
  const name = join('feeds', file);
  if (/^polymarket\/ws_.*\.start\.json$/.test(file)) return [];
  if (/^polymarket\/ws_.*trimmed\.json$/.test(file))
    return [polymarketSession(name, [JSON.stringify(readRecordedJson(path))])];
  if (/^polymarket\/ws_/.test(file)) {
    const frames = readRecordedLines(path).map(frameOf);
    return [polymarketSession(name, frames, startOf(folder, file))];
  }
  if (file === 'kalshi/ws_2026-08-17_demo_60_markets.json') return [kalshiSession(name, reportedFrames(path))];
  if (/^kalshi\/ws_/.test(file))
    return [
      kalshiSession(
        name,
        readRecordedLines(path).map((each) => JSON.stringify(each)),
      ),
    ];
  if (/^limitless\/ws_/.test(file)) return [limitlessSession(name, readRecordedText(path).split('\n').filter(Boolean))];
  return [];
}

/** A line is a frame, or the journal entry of its recorder with the frame as `data`. */
function frameOf(line: unknown): string {
  const { data } = line as { data?: unknown };
  return typeof data === 'string' ? data : JSON.stringify(line);
}

/** The books before a recorded batch, as the snapshot that a subscription would have brought. */
function startOf(folder: string, file: string): string[] {
  const start = file.replace(/\.(jsonl|ndjson)$/, '.start.json');
  if (!listRecordedFiles(folder).includes(start)) return [];
  const { books } = readRecordedJson(join(folder, start)) as { books: Json[] };
  const market = '0x86964402baab9700a765594e0856dcfce5120b44e0016d98e01801f0856f9118';
  return [JSON.stringify(books.map((book) => ({ market, tick_size: '0.001', last_trade_price: '0.368', ...book })))];
}

function polymarketSession(file: string, frames: string[], prelude: string[] = []): RecordedFrames {
  const tokens = new Map<string, Set<string>>();
  for (const frame of [...prelude, ...frames]) {
    for (const message of [JSON.parse(frame) as Json | Json[]].flat()) {
      const legs = (message['price_changes'] as Json[] | undefined) ?? [message];
      const set = tokens.get(String(message['market'])) ?? new Set<string>();
      tokens.set(String(message['market']), set);
      for (const leg of legs) if (typeof leg['asset_id'] === 'string') set.add(leg['asset_id']);
    }
  }
  const markets = [...tokens].map(([marketId, outcomeIds]) => ({ marketId, outcomeIds: [...outcomeIds] }));
  return { venue: 'polymarket', file, prelude, frames, markets, createSession: createPolymarketSession };
}

/** The frames inside the report of a recorder, in the order of their arrival. */
function reportedFrames(path: string): string[] {
  const { wire } = readRecordedJson(path) as { wire: Json };
  const found = new Map<number, string>();
  const visit = (value: unknown): void => {
    if (value === null || typeof value !== 'object') return;
    const { frame, ordinal } = value as { frame?: unknown; ordinal?: unknown };
    if (frame !== undefined && typeof ordinal === 'number') found.set(ordinal, JSON.stringify(frame));
    else for (const item of Object.values(value)) visit(item);
  };
  visit(wire);
  return [...found].sort(([a], [b]) => a - b).map(([, frame]) => frame);
}

function streamFrames(path: string): string[] {
  const { frames } = readRecordedJson(path) as { frames: { frame: Json }[] };
  return frames.map(({ frame }) => JSON.stringify(frame));
}

const CHANNELS: Readonly<Record<string, string>> = {
  orderbook_snapshot: 'orderbook_delta',
  orderbook_delta: 'orderbook_delta',
  ticker: 'ticker',
  trade: 'trade',
  market_lifecycle_v2: 'market_lifecycle_v2',
};

/** Adds the acknowledgement of each `sid` that the recording uses without one. */
function kalshiSession(file: string, frames: string[]): RecordedFrames {
  const acknowledged = new Set<unknown>();
  const missing = new Map<unknown, string>();
  const tickers = new Set<string>();
  for (const frame of frames) {
    const { type, sid, msg } = JSON.parse(frame) as { type: string; sid?: number; msg: Json };
    if (type === 'subscribed') acknowledged.add(msg['sid']);
    const channel = CHANNELS[type];
    if (channel !== undefined && !acknowledged.has(sid)) missing.set(sid, channel);
    if (typeof msg['market_ticker'] === 'string') tickers.add(msg['market_ticker']);
  }
  const prelude = [...missing].map(([sid, channel]) =>
    JSON.stringify({ type: 'subscribed', id: 1, msg: { channel, sid } }),
  );
  const markets = [...tickers].map((marketId) => ({ marketId, outcomeIds: Object.values(outcomeIdsOf(marketId)) }));
  // Two recordings state `use_yes_price: true`. The other two list NO bids.
  const usesYesPrice = !/ws_2026-08-27_demo|ws_orderbook_stream/.test(basename(file));
  return {
    venue: 'kalshi',
    file,
    prelude,
    frames,
    markets,
    createSession: () => createKalshiSession({ usesYesPrice }),
  };
}

/** The recording does not name the NO token. */
function limitlessSession(file: string, frames: string[]): RecordedFrames {
  const updates = frames.flatMap((frame) => {
    const [, slug, token] = /"marketSlug":"([^"]+)".*"tokenId":"(\d+)"/.exec(frame) ?? [];
    return slug !== undefined && token !== undefined ? [{ marketId: slug, outcomeIds: [token, '1'] }] : [];
  });
  return { venue: 'limitless', file, prelude: [], frames, markets: updates, createSession: createLimitlessSession };
}
