import { createHash } from 'node:crypto';
import { type Decimal, negateDecimal, parseDecimal, ZERO } from '../../domain/values/decimal.ts';
import { isStorableText } from '../../domain/values/text.ts';
import { createOrdinals } from '../ordinal-ids.ts';
import { emptyBatch, type ParsedBatch, type UnknownValue } from '../parsed-batch.ts';
import { isPlausibleQuantity, isUnitPrice } from '../quantity.ts';
import { accept, type Reading, readModel, reject, rejectRecord } from '../rejection.ts';
import type { WalletTransaction, WalletTransfer } from '../wallet-port.ts';
import { shortConditionId } from './condition-ids.ts';
import { readSecond } from './parse-trade.ts';
import { type ActivityRow, activityRow, withOurFieldNames } from './wallet-models.ts';

/** The collateral of all amounts named `usdc`, since April 2026 pUSD. The feed does not contain its address. */
const CASH = 'pUSD';

/**
 * The direction of cash and tokens by type, seen from the wallet; tokens count where a row names one. 0 where the feed gives no direction.
 */
const FLOWS: Readonly<Record<string, { cash: -1 | 0 | 1; token: -1 | 0 | 1 }>> = {
  SPLIT: { cash: -1, token: 1 },
  MERGE: { cash: 1, token: -1 },
  REDEEM: { cash: 1, token: -1 },
  CONVERSION: { cash: 0, token: 0 },
  MIGRATION: { cash: 0, token: 0 },
  REWARD: { cash: 1, token: 0 },
  YIELD: { cash: 1, token: 0 },
  MAKER_REBATE: { cash: 1, token: 0 },
  TAKER_REBATE: { cash: 1, token: 0 },
  REFERRAL_REWARD: { cash: 1, token: 0 },
  DEPOSIT: { cash: 1, token: 0 },
  WITHDRAWAL: { cash: -1, token: 0 },
};
/** Types whose direction depends on the side. */
const SIDES: Readonly<Record<string, { cash: -1 | 1; token: -1 | 0 | 1 }>> = {
  'TRADE BUY': { cash: -1, token: 1 },
  'TRADE SELL': { cash: 1, token: -1 },
  'TIP IN': { cash: 1, token: 0 },
  'TIP OUT': { cash: -1, token: 0 },
};

/** A row before its ordinal among equal rows is known. */
interface ReadRow {
  transaction: Omit<WalletTransaction, 'transactionId'>;
  transactionHash: string;
  canonical: string;
  unknown?: UnknownValue;
}

/** The epoch second of a row; undefined without a usable time. */
export function secondOf(raw: unknown, nowMs: number): number | undefined {
  const stamp = raw !== null && typeof raw === 'object' ? (raw as { timestamp?: unknown }).timestamp : undefined;
  const second = readSecond(stamp, nowMs);
  return second.ok ? second.value : undefined;
}

/**
 * The rows of a wallet's activity; pure. A transaction may have several rows, and exact duplicates are legitimate: equal rows are numbered,
 * so each second in `rows` must be complete.
 */
export function parseActivity(rows: readonly unknown[], nowMs: number): ParsedBatch<WalletTransaction> {
  const batch = emptyBatch<WalletTransaction>();
  const ordinalOf = createOrdinals();
  for (const raw of rows) {
    const named = withOurFieldNames(raw, 'size');
    const reading = readRow(named, nowMs);
    if (!reading.ok) {
      const hash = (named as { transactionHash?: unknown } | null)?.transactionHash;
      batch.rejected.push(rejectRecord('wallets', raw, reading.rejection, hash));
      continue;
    }
    const { transaction, transactionHash, canonical, unknown } = reading.value;
    if (unknown) batch.unknowns.push(unknown);
    batch.records.push({ transactionId: idOf(transactionHash, canonical, ordinalOf(canonical)), ...transaction });
  }
  return batch;
}

/**
 * The transaction's hash, which can be looked up on chain, and 64 bits of the row's own identity: type, token, side, size and its number
 * among equal rows of the transaction. Price and cash are excluded, because version 1 of the API wrote them differently.
 */
function idOf(transactionHash: string, canonical: string, ordinal: number): string {
  const digest = createHash('sha256').update(`${canonical}|${ordinal}`).digest('hex').slice(0, 16);
  return `${transactionHash}:${digest}`;
}

function readRow(named: unknown, nowMs: number): Reading<ReadRow> {
  const reading = readModel(activityRow, named);
  if (!reading.ok) return reading;
  const row = reading.value;
  const second = readSecond(row.timestamp, nowMs);
  if (!second.ok) return second;
  const unstorable = (['transactionHash', 'type', 'tokenId', 'conditionId', 'side', 'outcome'] as const).find(
    (field) => !isStorableText(row[field] ?? ''),
  );
  if (unstorable !== undefined) return reject('unstorable_text', unstorable);
  const size = readAmount(row.size, 'size');
  if (!size.ok) return size;
  const cash = readAmount(row.usdcSize, 'usdcSize');
  if (!cash.ok) return cash;
  const facts: Facts = { row, atMs: second.value * 1000, size: size.value, cash: cash.value };
  const type = row.type.toUpperCase();
  const read = type === 'TRADE' ? readTrade(facts) : accept(readOther(facts, type));
  if (!read.ok) return read;
  const transactionHash = row.transactionHash.toLowerCase();
  const canonical = [transactionHash, type, row.tokenId ?? '', (row.side ?? '').toUpperCase(), size.value].join('|');
  return accept({ ...read.value, transactionHash, canonical });
}

interface Facts {
  row: ActivityRow;
  atMs: number;
  size: Decimal;
  cash: Decimal;
}
type Reader = Pick<ReadRow, 'transaction' | 'unknown'>;

function readTrade({ row, atMs, size, cash }: Facts): Reading<Reader> {
  if (!row.tokenId) return reject('missing_field', 'tokenId');
  if (size === ZERO) return reject('size_not_positive', 'size: 0');
  const price = parseDecimal(row.price);
  if (price === null) return reject('invalid_field', 'price: not a number');
  if (!isUnitPrice(price)) return reject('price_out_of_range', `price: ${price}`);
  const side = (row.side ?? '').toUpperCase();
  const flow = SIDES[`TRADE ${side}`];
  const transaction = {
    ...common(row, atMs),
    transfers: flow ? transfersOf(row, { size, cash }, flow) : [],
    ...(flow && { side: side === 'BUY' ? ('buy' as const) : ('sell' as const) }),
    size,
    price,
    ...(row.usdcSize !== null && row.usdcSize !== undefined && { value: cash }),
  };
  return accept({ transaction, ...(!flow && { unknown: { field: 'activity side', value: side } }) });
}

function readOther({ row, atMs, size, cash }: Facts, type: string): Reader {
  const flow = SIDES[`${type} ${(row.side ?? '').toUpperCase()}`] ?? FLOWS[type];
  return {
    transaction: { ...common(row, atMs), transfers: flow ? transfersOf(row, { size, cash }, flow) : [] },
    ...(!flow && { unknown: { field: 'activity type', value: type } }),
  };
}

function common(row: ActivityRow, atMs: number) {
  return {
    type: row.type.toLowerCase(),
    status: 'confirmed' as const,
    atMs,
    ...(row.conditionId && { marketId: shortConditionId(row.conditionId) }),
  };
}

function transfersOf(
  row: ActivityRow,
  amounts: { size: Decimal; cash: Decimal },
  flow: { cash: -1 | 0 | 1; token: -1 | 0 | 1 },
): WalletTransfer[] {
  const transfers: WalletTransfer[] = [];
  if (row.tokenId && flow.token !== 0 && amounts.size !== ZERO) {
    transfers.push({
      tokenMint: row.tokenId,
      ...(row.outcome && { tokenSymbol: row.outcome }),
      change: flow.token > 0 ? amounts.size : negateDecimal(amounts.size),
    });
  }
  if (flow.cash !== 0 && amounts.cash !== ZERO) {
    const change = flow.cash > 0 ? amounts.cash : negateDecimal(amounts.cash);
    transfers.push({ tokenMint: CASH, tokenSymbol: CASH, change });
  }
  return transfers;
}

/** A decimal >= 0; an absent value is 0. */
function readAmount(value: string | number | null | undefined, field: string): Reading<Decimal> {
  if (value === null || value === undefined || value === '') return accept(ZERO);
  const parsed = parseDecimal(value);
  if (parsed === null) return reject('invalid_field', `${field}: not a number`);
  if (parsed.startsWith('-')) return reject('size_not_positive', `${field}: ${parsed.slice(0, 40)}`);
  if (!isPlausibleQuantity(parsed)) return reject('size_out_of_range', `${field}: ${parsed.slice(0, 40)}`);
  return accept(parsed);
}
