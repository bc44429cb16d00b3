import { BACKENDS, type BackendKind } from '../../test/support/redis/queue-backends.ts';

/** The settings of a run. */
export interface SteadyOptions {
  /** `exchange`: `oddswire start` on a simulated exchange of each size, with the default intervals; `demo`: `oddswire demo`. */
  readonly world: 'exchange' | 'demo';
  readonly queues: BackendKind;
  /** Trades per second of all venues together, that the exchange aims at. */
  readonly rates: readonly number[];
  /** Open markets of all four venues together. */
  readonly markets: readonly number[];
  /** The length of the window. */
  readonly seconds: number;
  /** Between the moment at which the service has caught up and the window. */
  readonly warmUpSeconds: number;
  readonly feeds: boolean;
  /** Whether Postgres counts statements, which costs it some percent of its CPU. */
  readonly statements: boolean;
  /** Statements, tables and kinds of a list, the largest first. */
  readonly top: number;
  /** The folder for CPU profiles of every process. */
  readonly profiles?: string;
  /** The file to which the JSON lines are appended. */
  readonly output?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Reads STEADY_*; `defaults` are those of the brief run or of the matrix. @throws RangeError for an invalid value */
export function steadyOptions(
  environment: Environment,
  defaults: Pick<SteadyOptions, 'rates' | 'markets' | 'seconds' | 'warmUpSeconds' | 'top'>,
): SteadyOptions {
  const choice = <Value extends string>(name: string, values: readonly Value[]): Value => {
    const given = environment[name];
    const found = given ? values.find((value) => value === given) : values[0];
    if (found === undefined) throw new RangeError(`${name} must be one of ${values.join(', ')}, not ${given}`);
    return found;
  };
  const numbers = (name: string, fallback: readonly number[], least: number): readonly number[] => {
    const text = environment[name];
    const found = text ? text.split(',').map(Number) : fallback;
    if (found.some((each) => !(each >= least))) throw new RangeError(`${name} must hold numbers of ${least} and more`);
    return found;
  };
  const number = (name: string, fallback: number, least: number) => numbers(name, [fallback], least)[0] ?? fallback;
  const { STEADY_PROFILES: profiles, STEADY_OUTPUT: output } = environment;
  return {
    world: choice('STEADY_WORLD', ['exchange', 'demo']),
    queues: choice('STEADY_QUEUES', BACKENDS),
    rates: numbers('STEADY_RATES', defaults.rates, 0),
    markets: numbers('STEADY_MARKETS', defaults.markets, 4),
    seconds: number('STEADY_SECONDS', defaults.seconds, 1),
    warmUpSeconds: number('STEADY_WARM_UP_SECONDS', defaults.warmUpSeconds, 0),
    feeds: choice('STEADY_FEEDS', ['on', 'off']) === 'on',
    statements: choice('STEADY_STATEMENTS', ['on', 'off']) === 'on',
    top: number('STEADY_TOP', defaults.top, 1),
    ...(profiles && { profiles }),
    ...(output && { output }),
  };
}

/** The markets with traders, and the speed of those, for a rate. */
interface Activity {
  readonly liveMarkets: number;
  readonly speed: number;
}

/** Trades per second that all venues report of one market with traders at speed 1, measured. */
const TRADES_PER_LIVE_MARKET = 1.25;

/**
 * As many markets trade at the usual speed as the rate needs, so that new prices and books stay in proportion to the trades; beyond the
 * number of markets they trade faster.
 */
export function activityOf(rate: number, marketsPerVenue: number): Activity {
  const needed = rate / TRADES_PER_LIVE_MARKET;
  const liveMarkets = Math.min(marketsPerVenue, Math.ceil(needed));
  return { liveMarkets, speed: liveMarkets === 0 ? 1 : Number((needed / liveMarkets).toFixed(3)) };
}
