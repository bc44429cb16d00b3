import { compareDecimals, type Decimal } from '../values/decimal.ts';

/** The intervals of candles and volume windows, with their length in seconds. */
export const INTERVAL_SECONDS = { '1m': 60, '5m': 300, '15m': 900, '1h': 3600, '4h': 14_400, '1d': 86_400 } as const;
export type Interval = keyof typeof INTERVAL_SECONDS;
export const INTERVALS = Object.keys(INTERVAL_SECONDS) as Interval[];

/** A candle from either source. A venue omits the prices of a bucket without trades. */
interface ComparedCandle {
  /** Start of the bucket, epoch seconds. */
  start: number;
  open?: Decimal;
  high?: Decimal;
  low?: Decimal;
  close?: Decimal;
  volume: Decimal;
}

export interface CandleDisagreement {
  start: number;
  field: 'open' | 'high' | 'low' | 'close' | 'volume';
  ours?: Decimal;
  theirs?: Decimal;
}

const FIELDS = ['open', 'high', 'low', 'close', 'volume'] as const;

/**
 * The differences between our candles and the venue's own, by bucket and field. A bucket without trades (no candle, or volume 0)
 * has no prices to compare: venues carry older prices forward in different ways.
 */
export function compareCandles(
  ours: readonly ComparedCandle[],
  theirs: readonly ComparedCandle[],
): CandleDisagreement[] {
  const ourCandles = new Map(traded(ours).map((candle) => [candle.start, candle]));
  const theirCandles = new Map(traded(theirs).map((candle) => [candle.start, candle]));
  const starts = [...new Set([...ourCandles.keys(), ...theirCandles.keys()])].sort((a, b) => a - b);
  return starts.flatMap((start) =>
    FIELDS.flatMap((field): CandleDisagreement[] => {
      const a = ourCandles.get(start)?.[field];
      const b = theirCandles.get(start)?.[field];
      if (a === b || (a !== undefined && b !== undefined && compareDecimals(a, b) === 0)) return [];
      return [{ start, field, ...(a !== undefined && { ours: a }), ...(b !== undefined && { theirs: b }) }];
    }),
  );
}

function traded(candles: readonly ComparedCandle[]): ComparedCandle[] {
  return candles.filter(({ volume }) => compareDecimals(volume, '0' as Decimal) > 0);
}
