import type { Direction, Scope, Unit } from '../../../domain/alerts/condition.ts';
import type { Condition } from '../../../domain/alerts/conditions.ts';
import type { OrderSide } from '../../../domain/markets/market.ts';
import type { ResolutionState } from '../../../domain/markets/resolution.ts';
import type { Decimal } from '../../../domain/values/decimal.ts';

/** An alert that is active from `startMs` until before `endMs`, epoch milliseconds. */
export interface BacktestRequest {
  /** Exactly one of token and scope is given. */
  tokenMint?: string | undefined;
  scope?: Scope | undefined;
  scopeKey: string | null;
  condition: Condition;
  threshold?: Decimal | undefined;
  direction?: Direction | undefined;
  unit?: Unit | undefined;
  windowSeconds?: number | undefined;
  windows?: number | undefined;
  states?: ResolutionState[] | undefined;
  /** The order of a condition on books. */
  side?: OrderSide | undefined;
  size?: Decimal | undefined;
  notional?: Decimal | undefined;
  sellTokenMint?: string | undefined;
  /** Absent: fires once on each outcome or market. */
  cooldownSeconds?: number | undefined;
  startMs: number;
  endMs: number;
  /** The alert ends at this moment. */
  expiresMs?: number | undefined;
}

/** The size of a backtest. */
export interface WorkLimits {
  markets: number;
  rows: number;
}

/** The bounds of an answer at once, and of a job. */
export const ANSWER_LIMITS: WorkLimits = { markets: 500, rows: 1_000_000 };
/** Of a form that evaluates its alert while its fields change. */
export const AT_ONCE_LIMITS: WorkLimits = { markets: 100, rows: 250_000 };
export const JOB_LIMITS: WorkLimits = { markets: 20_000, rows: 50_000_000 };
