import { join } from 'node:path';
import { withEvent } from '../../../../src/venues/kalshi/client.ts';
import {
  listRecordedFiles,
  readRecordedCsv,
  readRecordedJson,
  readRecordedLines,
  venueDataFolder,
} from '../../../support/venue-data.ts';
import type { PollKind, RecordedFile, Recordings } from '../venue-under-test.ts';

/** Later than every recording: no recorded time is in the future. */
const NOW_MS = Date.UTC(2026, 9, 1);

type Json = Record<string, unknown>;

interface Reader {
  kind: PollKind;
  pattern: RegExp;
  /** The venue's answers in one file, each as its records. */
  read(path: string): unknown[][];
}

/** Converts each recorded file to the rows of an endpoint that the adapter reads. */
const READERS: readonly Reader[] = [
  { kind: 'markets', pattern: /^2026-01_golden\/markets_list_response\.json$/, read: golden(listOf('markets')) },
  { kind: 'markets', pattern: /^2026-01_golden\/market_single_response\.json$/, read: golden(one('market')) },
  { kind: 'markets', pattern: /^2026-01_golden\/event_single_response\.json$/, read: golden(singleEvent) },
  { kind: 'books', pattern: /^2026-01_golden\/orderbook_response\.json$/, read: goldenBook },
  { kind: 'trades', pattern: /^2026-01_golden\/trades_list_response\.json$/, read: golden(listOf('trades')) },
  {
    kind: 'markets',
    pattern: /^2026-06_drmanhattan\/kalshi_markets\.json$/,
    read: (path) => [readRecordedJson(path) as Json[]],
  },
  { kind: 'markets', pattern: /^2026-07_valuelab\/kalshi_markets\.json$/, read: plain(listOf('markets')) },
  { kind: 'markets', pattern: /^2026-07_valuelab\/kalshi_events\.json$/, read: plain(nested) },
  { kind: 'markets', pattern: /^2026-07_valuelab\/ext_kalshi-market\.json$/, read: plain(one('market')) },
  { kind: 'books', pattern: /^2026-07_valuelab\/kalshi_orderbook\.json$/, read: plain((json) => [[json]]) },
  {
    kind: 'books',
    pattern: /^2026-07_valuelab\/ext_kalshi-orderbook\.json$/,
    read: plain((json) => [[{ ...json, ticker: 'KXNAMELESS' }]]),
  },
  { kind: 'trades', pattern: /^2026-07_valuelab\/kalshi_trades\.json$/, read: plain(listOf('trades')) },
  {
    kind: 'markets',
    pattern: /^2026-08_cockpit\/events_sports_nested\.json$/,
    read: (path) => nested({ events: readRecordedJson(path) }),
  },
  { kind: 'markets', pattern: /^2026-08_cockpit\/events_nfl_preseason\.json$/, read: plain(nested) },
  {
    kind: 'markets',
    pattern: /^2026-08_cockpit\/events_mlb_props_nested\.json$/,
    read: plain((json) => Object.values(json['events_by_series'] as Json).flatMap((events) => nested({ events }))),
  },
  { kind: 'markets', pattern: /^2026-08_cockpit\/markets_settled\.json$/, read: plain(listOf('markets')) },
  {
    kind: 'markets',
    pattern: /^2026-08_cockpit\/combo_priced_markets\.json$/,
    read: plain(({ combos, legs }) => [combos as unknown[], Object.values(legs as Json)]),
  },
  {
    kind: 'markets',
    pattern: /^2026-08_cockpit\/market_single\.json$/,
    read: plain(({ nested: market, single }) => [[market], [(single as Json)['market']]]),
  },
  {
    kind: 'books',
    pattern: /^2026-08_cockpit\/market_single\.json$/,
    read: plain(({ ticker, orderbook }) => [[{ ...(orderbook as Json), ticker }]]),
  },
  { kind: 'markets', pattern: /^2026-08_cockpit\/candlesticks_pregame_mlb\.json$/, read: plain(one('market')) },
  {
    kind: 'books',
    pattern: /^2026-08_cockpit\/combo_orderbooks\.json$/,
    read: (path) => [readRecordedJson(path) as Json[]],
  },
  { kind: 'books', pattern: /^2026-08_cockpit\/ws_orderbook_stream\.json$/, read: plain(snapshots) },
  { kind: 'books', pattern: /^orderbook_polls_2026-07\/.*\.jsonl\.gz$/, read: polledBooks },
  {
    kind: 'trades',
    pattern: /^trade_tape_2025-11\/.*\.csv$/,
    read: (path) => [readRecordedCsv(path).map(({ price, ...row }) => ({ ...row, yes_price_dollars: price }))],
  },
];

/** Recorded endpoints that the adapter does not read. */
const UNREAD: readonly { pattern: RegExp; reason: string }[] = [
  { pattern: /portfolio_/, reason: 'an account of its own' },
  { pattern: /candlesticks/, reason: 'candles: ours are made of trades' },
  { pattern: /events_(multivariate_)?list_response\.json$/, reason: 'events without markets' },
  { pattern: /\/series_(list|single|fee_fields)/, reason: 'series, which have the categories and tags of markets' },
  { pattern: /(event_metadata|series_|tags_by_categories|structured_targets|milestones)/, reason: 'no market data' },
  { pattern: /(exchange_|incentive_programs|price_grids|fee)/, reason: 'no market data' },
  { pattern: /(combo_collections|multivariate_event_collections)/, reason: 'what combinations may be made of' },
  { pattern: /occurrence_datetime_probe\.json$/, reason: 'a comparison of dates' },
];

interface RecordedSeries {
  ticker: string;
  category: string;
  tags: string[] | null;
}

export interface KalshiRecordings extends Recordings {
  /** The lists of series, the source of two fields of markets. */
  series: RecordedSeries[][];
}

function readSeries(folder: string): RecordedSeries[][] {
  const read = <T>(file: string) => readRecordedJson(join(folder, file)) as T;
  const list = read<{ response: { series: RecordedSeries[] } }>('2026-01_golden/series_list_response.json');
  const single = read<{ response: { series: RecordedSeries } }>('2026-01_golden/series_single_response.json');
  const several = read<{ payloads: Record<string, { series: RecordedSeries }> }>(
    '2026-08_cockpit/series_fee_fields.json',
  );
  return [list.response.series, [single.response.series], Object.values(several.payloads).map(({ series }) => series)];
}

/** All recordings of Kalshi, or undefined when the folder is absent. Market objects contain prices too. */
export function kalshiRecordings(): KalshiRecordings | undefined {
  const folder = venueDataFolder('kalshi');
  if (folder === undefined) return undefined;
  const files: RecordedFile[] = [];
  const unread = new Map<string, string>();
  for (const file of listRecordedFiles(folder)) {
    const readers = READERS.filter((each) => each.pattern.test(file));
    if (readers.length === 0) {
      unread.set(file, UNREAD.find((each) => each.pattern.test(file))?.reason ?? 'unaccounted');
    }
    for (const { kind, read } of readers) {
      for (const records of read(join(folder, file))) {
        files.push({ file, kind, nowMs: NOW_MS, records });
        if (kind === 'markets') files.push({ file, kind: 'prices', nowMs: NOW_MS, records });
      }
    }
  }
  return { files, unread, series: readSeries(folder) };
}

function plain(rowsOf: (json: Json) => unknown[][]): (path: string) => unknown[][] {
  return (path) => rowsOf(readRecordedJson(path) as Json);
}

/** The golden files contain the answer below a note about the recording. */
function golden(rowsOf: (json: Json) => unknown[][]): (path: string) => unknown[][] {
  return plain((json) => rowsOf(json['response'] as Json));
}

function goldenBook(path: string): unknown[][] {
  const { _metadata, response } = readRecordedJson(path) as { _metadata: Json; response: Json };
  return [[{ ...response, ticker: _metadata['ticker'] }]];
}

function listOf(field: string): (json: Json) => unknown[][] {
  return (json) => [json[field] as unknown[]];
}

function one(field: string): (json: Json) => unknown[][] {
  return (json) => [[json[field]]];
}

function singleEvent({ event, markets }: Json): unknown[][] {
  return [(markets as unknown[]).map((market) => withEvent(market, event))];
}

function nested({ events }: Json): unknown[][] {
  const rows = events as ({ markets: unknown[] } & Json)[];
  return [rows.flatMap(({ markets, ...event }) => markets.map((market) => withEvent(market, event)))];
}

/** A snapshot of the websocket's book channel with the keys of the REST answer. */
function snapshots({ frames }: Json): unknown[][] {
  const messages = (frames as { frame: { type: string; msg: Json } }[]).map(({ frame }) => frame);
  const books = messages.filter(({ type }) => type === 'orderbook_snapshot').map(({ msg }) => msg);
  return [
    books.map(({ market_ticker: ticker, yes_dollars_fp: yes_dollars, no_dollars_fp: no_dollars }) => ({
      ticker,
      orderbook_fp: { yes_dollars, no_dollars },
    })),
  ];
}

/** Polls of many markets, one answer per round. The recorder had converted the texts to numbers. */
function polledBooks(path: string): unknown[][] {
  const rounds = new Map<unknown, unknown[]>();
  for (const line of readRecordedLines(path) as Json[]) {
    const { capture_id, ticker, yes_bids: yes_dollars, no_bids: no_dollars } = line;
    const round = rounds.get(capture_id) ?? [];
    round.push({ ticker, orderbook_fp: { yes_dollars, no_dollars } });
    rounds.set(capture_id, round);
  }
  return [...rounds.values()];
}
