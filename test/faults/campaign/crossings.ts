import type { Exchange, MarketState, RequestRecord, SimRequest } from '../../../sim/exchange.ts';
import type { RandomStream } from '../../../sim/random.ts';
import type { CampaignLog } from './campaign-log.ts';

/** An alert whose condition the exchange met, and kept met until oddswire had polled three times. */
export interface Crossing {
  readonly alertId: string;
  readonly tokenId: string;
  readonly condition: 'above' | 'below';
  readonly target: string;
  readonly forced: string;
  readonly forcedAtMs: number;
  /** Complete answers with this token's book since then, outside of faults. */
  polls: number;
  isHeld: boolean;
}

/** A planned alert: the price to force, and the target before it. */
export interface Course {
  readonly market: MarketState;
  readonly tokenId: string;
  readonly condition: 'above' | 'below';
  readonly target: string;
  readonly forced: string;
}

const POLLS = 3;
/** Longer than any campaign: the polls end a hold. */
const HOLD_MS = 3_600_000;
/** The distance of a forced price, and of the target from it, in hundredths. */
const LEAP = 8;
const BEYOND = 3;
/** Faults that leave an answer complete. */
const HARMLESS = new Set(['latency', 'drip']);

/** The outcome's price in hundredths, as precise as the book. */
export function hundredths({ bestBid, bestAsk, last }: MarketState['outcomes'][number]): number {
  const middle =
    bestBid !== undefined && bestAsk !== undefined ? (Number(bestBid) + Number(bestAsk)) / 2 : Number(last);
  return Number.isFinite(middle) ? Math.round(middle * 100) : 50;
}

function decimalOf(inHundredths: number): string {
  return (inHundredths / 100).toFixed(2);
}

/** Forces prices across the targets of existing alerts, one at a time per market, and remembers the alerts that must fire. */
export class Crossings {
  readonly all: Crossing[] = [];
  readonly #exchange: Exchange;
  readonly #random: RandomStream;
  readonly #log: CampaignLog;
  /** Condition ids of reserved markets. */
  readonly #taken = new Set<string>();
  readonly #released = new Map<Crossing, string>();

  constructor(exchange: Exchange, random: RandomStream, log: CampaignLog) {
    this.#exchange = exchange;
    this.#random = random;
    this.#log = log;
  }

  /** Currently trading markets. */
  open(): MarketState[] {
    const { markets } = this.#exchange.state();
    return markets.filter((market) => market.phase === 'open' && !market.halted && market.hasTraders);
  }

  /** Trading markets without a reservation. */
  free(): MarketState[] {
    return this.open().filter((market) => !this.#taken.has(market.conditionId));
  }

  /** Reserves a random free market, unless no more than `spare` are left. */
  plan(spare = 0): Course | undefined {
    const free = this.free();
    if (free.length <= spare) return undefined;
    const market = this.#random.pick(free);
    const outcome = this.#random.pick(market.outcomes);
    const price = hundredths(outcome);
    const isUp = price <= LEAP + 1 || (price < 99 - LEAP && this.#random.below(2) === 0);
    const forced = isUp ? price + LEAP : price - LEAP;
    this.#taken.add(market.conditionId);
    return {
      market,
      tokenId: outcome.tokenId,
      condition: isUp ? 'above' : 'below',
      target: decimalOf(isUp ? forced - BEYOND : forced + BEYOND),
      forced: decimalOf(forced),
    };
  }

  /** Releases a reserved market. */
  forget({ market }: Course): void {
    this.#taken.delete(market.conditionId);
  }

  /** Forces the price after the creation of the alert. */
  force(course: Course, alertId: string): Crossing {
    const { tokenId, condition, target, forced, market } = course;
    const forcedAtMs = Date.now();
    this.#exchange.forcePrice({ tokenId, price: forced, holdMs: HOLD_MS });
    const crossing = { alertId, tokenId, condition, target, forced, forcedAtMs, polls: 0, isHeld: true };
    this.all.push(crossing);
    this.#released.set(crossing, market.conditionId);
    this.#log.note('crossing', { ...crossing });
    return crossing;
  }

  get held(): number {
    return this.#released.size;
  }

  /** Call it with each answer of the exchange that no fault changed. */
  answered({ host, path, body }: SimRequest, { startedAtMs, status, faults }: RequestRecord): void {
    if (host !== 'clob' || path !== '/books' || status !== 200 || !faults.every((kind) => HARMLESS.has(kind))) return;
    for (const [crossing, conditionId] of this.#released) {
      if (startedAtMs < crossing.forcedAtMs || !body.includes(crossing.tokenId)) continue;
      crossing.polls += 1;
      if (crossing.polls < POLLS) continue;
      crossing.isHeld = false;
      this.#released.delete(crossing);
      this.#taken.delete(conditionId);
      this.#exchange.releasePrice(crossing.tokenId);
      this.#log.note('released', { alertId: crossing.alertId });
    }
  }
}
