import { expect, it } from 'vitest';
import { parseCommandLine, UsageError } from '../../../sim/cli.ts';

it('the command line accepts every flag', () => {
  const args = '--port 9000 --seed 4 --markets 50 --history-hours 0.5 --speed 2.5 --recorded some/dir'.split(' ');
  expect(parseCommandLine(args, '7000')).toMatchObject({
    port: 9000,
    seed: 4,
    markets: 50,
    historyHours: 0.5,
    speed: 2.5,
    recorded: 'some/dir',
  });
});

it('the command line accepts the flags about the past', () => {
  const args = '--deep-markets 2 --deep-days 1.5 --deep-prints 4000 --kalshi-live-hours 0'.split(' ');
  expect(parseCommandLine(args, undefined)).toMatchObject({
    deepMarkets: 2,
    deepDays: 1.5,
    deepPrints: 4000,
    kalshiLiveHours: 0,
  });
});

it('the command line accepts the share of version 1 transactions on Solana, a fraction up to 1', () => {
  expect(parseCommandLine(['--solana-v1-share', '0.25'], undefined)).toMatchObject({ solanaV1Share: 0.25 });
  expect(() => parseCommandLine(['--solana-v1-share', '1.5'], undefined)).toThrow(UsageError);
});

it('the command line accepts the flags about large catalogs and slow venues', () => {
  const args = '--quiet-moves-per-minute 0.02 --delay-ms 150 --kalshi-page-delay-ms 400 --enforce-rates'.split(' ');
  expect(parseCommandLine([...args, '--now-second', '1790000000', '--paused'], undefined)).toMatchObject({
    quietMovesPerMinute: 0.02,
    delayMs: 150,
    kalshiPageDelayMs: 400,
    enforcesRates: true,
    nowSecond: 1_790_000_000,
    paused: true,
  });
});

it('the command line uses SIM_PORT without a flag', () => {
  expect(parseCommandLine([], '7000').port).toBe(7000);
  expect(parseCommandLine([], undefined).port).toBeUndefined();
});

it.each([
  [['--port', 'x']],
  [['--port', '70000']],
  [['--markets', '1.5']],
  [['--speed', '-1']],
  [['--what', '1']],
  [['stray']],
])('the command line rejects %j', (args) => {
  expect(() => parseCommandLine(args, undefined)).toThrow(UsageError);
});
