import { parseActivity } from '../../../../src/venues/polymarket/wallet-activity.ts';
import { rejectRecord } from '../../../../src/venues/rejection.ts';
import { parseTransaction } from '../../../../src/venues/solana/parse-transaction.ts';
import { readRecordedJson } from '../../../support/venue-data.ts';
import type { ParsedRecords } from '../venue-under-test.ts';

/** Later than every recording. */
const NOW_MS = Date.UTC(2026, 10, 1);

/** Recordings of wallets: paths below the folder of all recordings, their rows, and the parser of these rows. */
interface WalletReader {
  pattern: RegExp;
  read(path: string): unknown[];
  parse(rows: readonly unknown[]): ParsedRecords;
}

export const WALLET_READERS: readonly WalletReader[] = [
  {
    pattern: /^(polymarket\/data_api_v2_2026-09\/activity|feeds\/polymarket\/data_v2_.*activity(_rows)?)\.json$/,
    read: rowsOf,
    parse: (rows) => parseActivity(rows, NOW_MS),
  },
  { pattern: /^feeds\/solana\/.*_block_.*\.json$/, read: blockTransactions, parse: parseTransactions },
  { pattern: /^reports\/solana_.*\.json$/, read: oneTransaction, parse: parseTransactions },
];

/** Recorded files without records that oddswire stores, with the reason. Files in a venue's own folder are in its `UNREAD` table. */
export const NOT_APPLICABLE: readonly { pattern: RegExp; reason: string }[] = [
  { pattern: /^((feeds|reports)\/)?SOURCES\.md$/, reason: 'describes the recordings' },
  { pattern: /^reports\/polymarket_ws_/, reason: 'frames: see test/conformance/venue-feed' },
  { pattern: /^feeds\/kalshi\/ws_/, reason: 'frames: see test/conformance/venue-feed' },
  { pattern: /^feeds\/polymarket\/ws_/, reason: 'frames: see test/conformance/venue-feed' },
  { pattern: /^feeds\/limitless\/ws_/, reason: 'frames: see test/conformance/venue-feed' },
  { pattern: /^feeds\/polymarket\/data_v2_2026-09-14_status\.json$/, reason: 'the state of the API' },
  {
    pattern: /^feeds\/polymarket\/data_v2_.*_resolutions_pending\.json$/,
    reason: 'a route that oddswire does not read',
  },
];

/** A list, the `data` of an answer, or rows by name. */
function rowsOf(path: string): unknown[] {
  const json = readRecordedJson(path) as { data?: unknown[] };
  if (Array.isArray(json)) return json;
  return json.data ?? Object.values(json).filter((row) => row !== null && typeof row === 'object');
}

/** The transactions of a block in the form of `getTransaction`. */
function blockTransactions(path: string): unknown[] {
  const { parentSlot, blockTime, transactions } = readRecordedJson(path) as {
    parentSlot: number;
    blockTime: number;
    transactions: object[];
  };
  return transactions.map((each) => ({ ...each, slot: parentSlot + 1, blockTime }));
}

/** The answer of `getTransaction`. */
function oneTransaction(path: string): unknown[] {
  return [(readRecordedJson(path) as { result: unknown }).result];
}

/** An address, with its source where the node parsed the transaction. */
type AccountKey = string | { pubkey: string };

/** Each transaction from the point of view of its payer. */
function parseTransactions(rows: readonly unknown[]): ParsedRecords {
  const batch: ParsedRecords & { records: unknown[] } = { records: [], rejected: [] };
  for (const row of rows) {
    const { transaction } = row as { transaction: { signatures: string[]; message: { accountKeys: AccountKey[] } } };
    const [signature = ''] = transaction.signatures;
    const [payer = ''] = transaction.message.accountKeys;
    const address = typeof payer === 'string' ? payer : payer.pubkey;
    const reading = parseTransaction(row, { address, signature, fallbackMs: NOW_MS });
    if (reading.ok) batch.records.push(reading.value.record);
    else batch.rejected.push(rejectRecord('wallets', row, reading.rejection, signature));
  }
  return batch;
}
