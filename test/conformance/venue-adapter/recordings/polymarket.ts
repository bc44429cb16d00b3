import { join } from 'node:path';
import { inVersion2 } from '../../../support/data-api.ts';
import {
  listRecordedFiles,
  readRecordedCsv,
  readRecordedJson,
  readRecordedLines,
  reportedFiles,
  venueDataFolder,
} from '../../../support/venue-data.ts';
import type { PollKind, RecordedFile, Recordings } from '../venue-under-test.ts';

/** Later than every recording: no recorded time is in the future. */
const NOW_MS = Date.UTC(2026, 9, 1);

interface Reader {
  kind: PollKind;
  pattern: RegExp;
  /** The records of one file. */
  read(path: string): unknown[];
}

/** Converts each recorded file to the rows of an endpoint that the adapter reads. */
const READERS: readonly Reader[] = [
  {
    kind: 'markets',
    pattern: /^2026-07_btc5m_markets\/.*\.jsonl\.gz$/,
    read: (path) => readRecordedLines(path).map((line) => (line as { raw: unknown }).raw),
  },
  {
    // A field subset of `?closed=true`: the value that the request fixed is added again.
    kind: 'markets',
    pattern: /^gamma_resolved_2024-25\/markets\.json\.gz$/,
    read: (path) => (readRecordedJson(path) as object[]).map((row) => ({ ...row, closed: true })),
  },
  {
    kind: 'markets',
    pattern: /(gamma-event|gamma-search|gamma_event|search_response|http_event)\.json$/,
    read: nested,
  },
  {
    kind: 'markets',
    pattern:
      /(polymarket_markets|gamma_markets_closed_batch|market_12|gamma_market[a-z_]*|http_market_slug|http_markets_list)\.json$/,
    read: listed,
  },
  { kind: 'markets', pattern: /^reports\/polymarket_gamma_.*\.json$/, read: listed },
  { kind: 'books', pattern: /^reports\/polymarket_clob_.*_book_.*\.json$/, read: listed },
  {
    kind: 'books',
    pattern: /(clob-books|http_book|ws_book|clob_book_response|ws_market_book_msg)\.json$/,
    read: listed,
  },
  {
    kind: 'trades',
    pattern: /^(wallet_trades_2026-01\/.*|nautilus_py\/http_trades|nautilus_rust\/data_api_trades_response)\.json$/,
    read: (path) => listed(path).map(inVersion2),
  },
  {
    kind: 'trades',
    pattern:
      /^(data_api_v2_2026-09\/trades|feeds\/data_v2_.*_trades|reports\/polymarket_data_v2_.*_trades_captured)\.json$/,
    read: inEnvelope,
  },
  { kind: 'trades', pattern: /^trade_tape_2026-02_fed\/.*\.csv$/, read: (path) => readRecordedCsv(path).map(tapeRow) },
];

/** Recorded endpoints that the adapter does not read. */
const UNREAD: readonly { pattern: RegExp; reason: string }[] = [
  { pattern: /^shapes_2026-06\//, reason: 'shapes without values' },
  { pattern: /manifest\.json$/, reason: 'describes a recording' },
  { pattern: /(clob-markets|clob_market_[a-z_]*|http_market|http_markets)\.json$/, reason: 'CLOB market objects' },
  { pattern: /gamma_tags\.json$/, reason: 'the list of tags' },
  { pattern: /\/ws_(?!.*book)[a-z_0-9]*\.json$/, reason: 'websocket messages that are no book' },
  { pattern: /positions/, reason: 'wallet positions' },
  { pattern: /^data_api_v2_2026-09\/(?!trades)/, reason: 'Data API v2 routes of other kinds' },
  { pattern: /http_events_list\.json$/, reason: 'events whose markets are ids only' },
];

/** All recordings of Polymarket, or undefined when the folder is absent. */
export function polymarketRecordings(): Recordings | undefined {
  const folder = venueDataFolder('polymarket');
  if (folder === undefined) return undefined;
  const files: RecordedFile[] = [];
  const unread = new Map<string, string>();
  for (const file of listRecordedFiles(folder)) {
    const reader = READERS.find((each) => each.pattern.test(file));
    if (reader) files.push({ file, kind: reader.kind, nowMs: NOW_MS, records: reader.read(join(folder, file)) });
    else unread.set(file, UNREAD.find((each) => each.pattern.test(file))?.reason ?? 'unaccounted');
  }
  const feeds = listRecordedFiles(join(folder, '../feeds/polymarket')).map((file) => {
    return { name: `feeds/${file}`, path: join(folder, '../feeds/polymarket', file) };
  });
  for (const { name, path } of [...feeds, ...reportedFiles()]) {
    const reader = READERS.find((each) => each.pattern.test(name));
    if (reader) files.push({ file: name, kind: reader.kind, nowMs: NOW_MS, records: reader.read(path) });
  }
  return { files, unread };
}

/** A bare record or a list of them. */
function listed(path: string): unknown[] {
  const json = readRecordedJson(path);
  return Array.isArray(json) ? json : [json];
}

/** The rows of an answer of version 2, with and without its envelope. */
function inEnvelope(path: string): unknown[] {
  const json = readRecordedJson(path) as { data?: unknown[] } | unknown[];
  return Array.isArray(json) ? json : (json.data ?? []);
}

/** The markets inside an event, a list of events or a search answer. */
function nested(path: string): unknown[] {
  const json = readRecordedJson(path) as { events?: unknown };
  const events = (Array.isArray(json) ? json : (json.events ?? [json])) as { markets: unknown[] }[];
  return events.flatMap((event) => event.markets);
}

/**
 * A line of the flattened tape in the form of its original row. The tape has no hash, no token id and only some wallets, so constants
 * replace them; equal lines stay equal.
 */
function tapeRow(line: Record<string, string>): unknown {
  return {
    transaction_hash: '0xtape',
    proxy_wallet: line['user_id'] || 'nameless',
    token_id: `${line['option_type']}/${line['option_yes_no']}`,
    side: line['trade_direction'],
    size: Number(line['shares']),
    price: Number(line['price']),
    timestamp: Date.parse((line['timestamp'] ?? '').replace(/^\w+, /, '').replace(' EST', ' GMT-0500')) / 1000,
  };
}
