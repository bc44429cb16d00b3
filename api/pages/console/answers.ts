import type { z } from 'zod';
import type { AlertStatus, Direction, Unit } from '../../../src/domain/alerts/condition.ts';
import type { Condition } from '../../../src/domain/alerts/conditions.ts';
import type { ChatFormat } from '../../../src/domain/chat/chat-url.ts';
import type { OrderSide } from '../../../src/domain/markets/market.ts';
import type { ResolutionState } from '../../../src/domain/markets/resolution.ts';
import type { ExactNumber } from '../../../src/domain/values/api-json.ts';
import type { FilterCondition } from '../../../src/domain/webhooks/filter.ts';
import type { OrderBy } from '../../../src/domain/webhooks/order.ts';
import type { WalletEventType } from '../../../src/store/wallets/wallet-reads.ts';
import type { BookBody, LevelBody } from '../../contract/book.ts';
import type { AttemptBody } from '../../contract/delivery.ts';
import type { ExecutableBody } from '../../contract/executable.ts';
import type { MarketBody } from '../../contract/market.ts';
import type { PricesBody } from '../../contract/price.ts';
import type { resolution } from '../../contract/resolution.ts';
import type { CandleBody, snapshot } from '../../contract/series.ts';
import type { TradeBody } from '../../contract/trade.ts';
import type { WalletBalanceBody, WalletBody } from '../../contract/wallet.ts';
import { ApiError } from '../../errors.ts';

/** A decimal of an answer: a number, or text when DECIMAL_FORMAT is `string`. */
export type Decimal = number | string;

/** An answer as parsed JSON. */
type Parsed<T> =
  T extends ExactNumber<'decimal'>
    ? Decimal
    : T extends ExactNumber<'number'>
      ? number
      : T extends object
        ? { [Name in keyof T]: Parsed<T[Name]> }
        : T;

export type Market = Parsed<MarketBody>;
export type Prices = Parsed<PricesBody>;
export type Book = Parsed<BookBody>;
export type Executable = Parsed<ExecutableBody>;
export type Level = Parsed<LevelBody>;
export type Trade = Parsed<TradeBody>;
export type Candle = Parsed<CandleBody>;
export type Resolution = Parsed<z.output<typeof resolution>>;
export type Snapshot = Parsed<z.output<typeof snapshot>>;

/* The fields of the other answers that the pages show. */

export interface AlertScope {
  market_id?: string;
  event_id?: string;
  venue?: string;
  category?: string;
  q?: string;
}

export interface Alert {
  id: string;
  tokenMint?: string;
  scope?: AlertScope;
  condition: Condition;
  price?: Decimal;
  direction?: Direction;
  change?: Decimal;
  unit?: Unit;
  windowSeconds?: number;
  notional?: Decimal;
  times?: Decimal;
  windows?: number;
  states?: ResolutionState[];
  side?: OrderSide;
  size?: Decimal;
  sellTokenMint?: string;
  repeat?: true;
  cooldownSeconds?: number;
  expiresAt?: string;
  name?: string;
  note?: string;
  status: AlertStatus;
  webhookId?: string;
  createdAt: string;
  triggeredAt?: string;
  triggeredPrice?: Decimal;
  expiredAt?: string;
  eventId?: string;
  currency?: string;
  firings?: Firing[];
}

export interface Firing {
  at: string;
  tokenMint?: string;
  venue?: string;
  marketId?: string;
  price?: Decimal;
  fromPrice?: Decimal;
  value?: Decimal;
  eventId: string;
}

export interface BacktestFiring extends Omit<Firing, 'eventId'> {
  /** Of a market. */
  status?: string;
}

export interface BacktestGap {
  start: string;
  end: string;
  cause: string;
  venue: string;
}

export interface BacktestResult {
  firings: BacktestFiring[];
  firingCount: number;
  observations: number;
  gaps: BacktestGap[];
  approximate: boolean;
  exactFrom?: string;
}

/** The result, or the job that computes it. */
export type Backtest =
  | BacktestResult
  | { id: string; progress: number; result?: BacktestResult; error?: { code: string; message: string } };

export interface Webhook {
  id: string;
  url: string;
  events: string[];
  status: 'active' | 'paused';
  createdAt?: string;
  pauseReason?: string;
  ordered?: true;
  orderBy?: OrderBy;
  filter?: FilterCondition[];
  maxPerSecond?: number;
  headerNames?: string[];
  description?: string;
  /** Absent: signed JSON. */
  format?: ChatFormat;
}

export interface Delivery {
  id: string;
  eventId: string;
  eventType: string;
  status: string;
  attempts: number;
  createdAt: string;
  nextAttemptAt?: string;
  deliveredAt?: string;
  lastStatusCode?: number;
  lastError?: string;
  skipped?: true;
}

export type Attempt = AttemptBody;

export interface AccountEvent {
  id: string;
  type: string;
  createdAt: string;
  deliveries: number;
  undelivered: boolean;
  payload: { data?: { [field: string]: unknown } };
}

export type Wallet = Parsed<WalletBody>;
export type WalletBalance = Parsed<WalletBalanceBody>;

export interface WalletEvent {
  id: string;
  type: WalletEventType;
  createdAt: string;
  deliveries: { id: string; webhookId: string; status: string }[];
  payload: { data: WalletEventData };
}

/** The fields of both types. */
interface WalletEventData {
  tokenMint?: string;
  tokenSymbol?: string;
  marketId?: string;
  previousBalance?: Decimal;
  currentBalance?: Decimal;
  transactionId?: string;
  type?: string;
  status?: string;
  side?: string;
  timestamp?: string;
  transfers?: { tokenMint: string; tokenSymbol?: string; change: Decimal }[];
}

export interface ApiKey {
  id: string;
  name: string;
  scopes: string[];
  status: 'active' | 'expired' | 'revoked';
  current: boolean;
  createdAt: string;
  expiresAt?: string;
  lastUsedAt?: string;
  revokedAt?: string;
}

/** Nothing where the API has no data yet, which is a normal state of a page. */
export async function orNothing<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ApiError && error.status < 500) return undefined;
    throw error;
  }
}
