import { parseArgs } from 'node:util';
import type { ExchangeOptions } from './options.ts';

export const USAGE = `sim [--port N] [--seed N] [--markets N] [--live-markets N] [--history-hours N] [--speed N]
    [--rolling-seconds N] [--deep-markets N] [--deep-days N] [--deep-prints N] [--kalshi-live-hours N]
    [--solana-v1-share N] [--quiet-moves-per-minute N] [--delay-ms N] [--kalshi-page-delay-ms N] [--enforce-rates]
    [--now-second N] [--paused] [--host ADDRESS] [--recorded DIR] [--kalshi-key-file FILE]
SIM_PORT is the port when --port is absent; 0 or neither takes a free one.`;

/** An unknown flag or an invalid value. */
export class UsageError extends Error {
  readonly code = 'usage';
  readonly retryable = false;
}

/** Reads the command line. @throws UsageError */
export function parseCommandLine(args: readonly string[], simPort: string | undefined): ExchangeOptions {
  const values = parse(args);
  return {
    host: values.host,
    recorded: values.recorded,
    kalshiKeyFile: values['kalshi-key-file'],
    port: numeric('port', values.port ?? simPort, 65_535),
    seed: numeric('seed', values.seed, 4_294_967_295),
    markets: numeric('markets', values.markets, 100_000),
    liveMarkets: numeric('live-markets', values['live-markets'], 100_000),
    historyHours: numeric('history-hours', values['history-hours'], 24 * 31),
    speed: numeric('speed', values.speed, 1000),
    rollingSeconds: numeric('rolling-seconds', values['rolling-seconds'], 86_400),
    deepMarkets: numeric('deep-markets', values['deep-markets'], 1000),
    deepDays: numeric('deep-days', values['deep-days'], 365),
    deepPrints: numeric('deep-prints', values['deep-prints'], 20_000),
    kalshiLiveHours: numeric('kalshi-live-hours', values['kalshi-live-hours'], 24 * 365),
    solanaV1Share: numeric('solana-v1-share', values['solana-v1-share'], 1),
    quietMovesPerMinute: numeric('quiet-moves-per-minute', values['quiet-moves-per-minute'], 60),
    delayMs: numeric('delay-ms', values['delay-ms'], 60_000),
    kalshiPageDelayMs: numeric('kalshi-page-delay-ms', values['kalshi-page-delay-ms'], 60_000),
    enforcesRates: values['enforce-rates'],
    nowSecond: numeric('now-second', values['now-second'], 9_999_999_999),
    paused: values.paused,
  };
}

function parse(args: readonly string[]) {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        host: text,
        port: text,
        seed: text,
        markets: text,
        'live-markets': text,
        'history-hours': text,
        speed: text,
        'rolling-seconds': text,
        'deep-markets': text,
        'deep-days': text,
        'deep-prints': text,
        'kalshi-live-hours': text,
        'solana-v1-share': text,
        'quiet-moves-per-minute': text,
        'delay-ms': text,
        'kalshi-page-delay-ms': text,
        'enforce-rates': flag,
        'now-second': text,
        paused: flag,
        recorded: text,
        'kalshi-key-file': text,
      },
    });
    return values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

const FRACTIONS = new Set([
  'speed',
  'history-hours',
  'deep-days',
  'kalshi-live-hours',
  'solana-v1-share',
  'quiet-moves-per-minute',
]);

function numeric(name: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined || text === '') return undefined;
  const value = Number(text);
  const isFine =
    Number.isFinite(value) && value >= 0 && value <= most && (FRACTIONS.has(name) || Number.isInteger(value));
  if (!isFine) throw new UsageError(`--${name} must be a number from 0 to ${most}, got ${text}`);
  return value;
}
