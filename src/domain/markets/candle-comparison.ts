import { compareDecimals, type Decimal } from '../values/decimal.ts';

/** What two sources may both say of a bucket; a venue leaves prices out where nothing was traded. */
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
 * Where our candles and a venue's own differ, by bucket and field. A bucket without a trade (no candle, or volume 0) has no
 * prices to compare: what a venue carries forward into it is its own habit.
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
