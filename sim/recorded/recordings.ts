import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { RecordingsError } from '../errors.ts';
import { childSlices } from './json-slices.ts';

/** A recorded object with its original text. */
export interface Recorded {
  readonly value: Record<string, unknown>;
  readonly text: string;
}

/** The contents of a folder by kind, without repetitions. */
export interface Recordings {
  /** Gamma markets, one per condition id. */
  readonly gammaMarkets: readonly Recorded[];
  /** Gamma events by id. */
  readonly gammaEvents: ReadonlyMap<string, Recorded>;
  /** Books by token id. */
  readonly books: ReadonlyMap<string, Recorded>;
  /** CLOB markets by condition id. */
  readonly clobMarkets: ReadonlyMap<string, Recorded>;
  /** Rows of the Data API's `/trades` and `/v2/trades`. Equal rows inside one file are kept; repetitions in other files are not. */
  readonly trades: readonly Recorded[];
}

interface Draft {
  readonly gammaMarkets: Map<string, Recorded>;
  readonly gammaEvents: Map<string, Recorded>;
  readonly books: Map<string, Recorded>;
  readonly clobMarkets: Map<string, Recorded>;
  trades: Recorded[];
}

const CONDITION_ID = /^0x[0-9a-f]{64}$/i;
const MAX_DEPTH = 6;

/** Reads every `.json` and `.jsonl` (also `.gz`) under a folder. @throws RecordingsError */
export async function loadRecordings(folder: string): Promise<Recordings> {
  const draft: Draft = {
    gammaMarkets: new Map(),
    gammaEvents: new Map(),
    books: new Map(),
    clobMarkets: new Map(),
    trades: [],
  };
  for (const file of await payloadFiles(folder)) {
    const text = await textOf(file);
    const seenBefore = new Map<string, number>();
    for (const row of draft.trades) seenBefore.set(row.text, (seenBefore.get(row.text) ?? 0) + 1);
    const fromFile: Recorded[] = [];
    for (const document of /\.jsonl(\.gz)?$/.test(file) ? text.split('\n').filter(Boolean) : [text]) {
      collect(draft, fromFile, document, 0);
    }
    draft.trades.push(...fromFile.filter((row) => !isRepeated(seenBefore, row.text)));
  }
  return { ...draft, gammaMarkets: [...draft.gammaMarkets.values()] };
}

/** Whether the earlier files contain another copy of this row. */
function isRepeated(seenBefore: Map<string, number>, text: string): boolean {
  const left = seenBefore.get(text) ?? 0;
  if (left > 0) seenBefore.set(text, left - 1);
  return left > 0;
}

async function payloadFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    throw new RecordingsError(`cannot read the recordings in ${folder}: ${String(error)}`);
  });
  return entries
    .filter((entry) => entry.isFile() && /\.jsonl?(\.gz)?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

async function textOf(file: string): Promise<string> {
  const bytes = await readFile(file);
  return (basename(file).endsWith('.gz') ? gunzipSync(bytes) : bytes).toString('utf8');
}

/** Collects the objects that it recognises by their fields, and searches all other containers. */
function collect(draft: Draft, trades: Recorded[], text: string, depth: number): void {
  if (depth > MAX_DEPTH || !/^\s*[[{]/.test(text)) return;
  const parsed = JSON.parse(text) as unknown;
  if (Array.isArray(parsed)) {
    for (const { text: item } of childSlices(text)) collect(draft, trades, item, depth + 1);
    return;
  }
  const value = parsed as Record<string, unknown>;
  const recorded: Recorded = { value, text: text.trim() };
  if (isGammaMarket(value)) {
    keepBest(draft.gammaMarkets, String(value['conditionId']).toLowerCase(), recorded);
    return;
  }
  if (isTrade(value)) {
    trades.push(recorded);
    return;
  }
  if (isBook(value)) {
    keepBest(draft.books, String(value['asset_id']), recorded);
    return;
  }
  if (isClobMarket(value)) {
    keepBest(draft.clobMarkets, String(value['condition_id']).toLowerCase(), recorded);
    return;
  }
  if (isGammaEvent(value)) keepBest(draft.gammaEvents, String(value['id']), recorded);
  for (const { text: item } of childSlices(text)) collect(draft, trades, item, depth + 1);
}

function isGammaMarket(value: Record<string, unknown>): boolean {
  return typeof value['question'] === 'string' && CONDITION_ID.test(String(value['conditionId']));
}

function isGammaEvent(value: Record<string, unknown>): boolean {
  return typeof value['id'] === 'string' && typeof value['title'] === 'string' && Array.isArray(value['markets']);
}

function isTrade(value: Record<string, unknown>): boolean {
  if (typeof value['proxyWallet'] === 'string' && typeof value['asset'] === 'string') return 'transactionHash' in value;
  // Rows of a wallet's activity have the same fields and a type.
  return typeof value['proxy_wallet'] === 'string' && 'transaction_hash' in value && !('type' in value);
}

/** Messages of the socket channel resemble books, but name their kind. */
function isBook(value: Record<string, unknown>): boolean {
  return typeof value['asset_id'] === 'string' && Array.isArray(value['bids']) && !('event_type' in value);
}

function isClobMarket(value: Record<string, unknown>): boolean {
  return CONDITION_ID.test(String(value['condition_id'])) && Array.isArray(value['tokens']);
}

/** Of two recordings of one object the later one wins, and of equally old ones the fuller one. */
function keepBest(map: Map<string, Recorded>, key: string, candidate: Recorded): void {
  const known = map.get(key);
  const age = ({ value }: Recorded) => String(value['updatedAt'] ?? value['timestamp'] ?? '');
  if (known !== undefined) {
    if (age(known) > age(candidate)) return;
    if (age(known) === age(candidate) && known.text.length >= candidate.text.length) return;
  }
  map.set(key, candidate);
}
