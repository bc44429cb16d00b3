import { SimControlError } from './errors.ts';
import type { Fault, FaultRequest } from './faults.ts';
import type { LiveClock } from './live-clock.ts';
import { type MarketLedger, resolutionLedger } from './resolution-ledger.ts';
import type { RequestRecord } from './server/request-log.ts';
import { formatScaled, parseScaled } from './wire/decimal-text.ts';
import { tokenQuote } from './wire/prices.ts';
import type { FeeRequest } from './world/fees.ts';
import { forcePrice } from './world/forced-price.ts';
import { transactionHashOf, walletOf } from './world/identity.ts';
import { type Market, type MarketPhase, UNITS } from './world/market.ts';
import { visibleMarket } from './world/quiet-market.ts';
import { MARKET_ACTIONS, type Steering, steerMarket } from './world/steering.ts';
import type { Intent, Trade } from './world/trade-tape.ts';
import type { World } from './world/world.ts';

/** One outcome as the control routes show it; prices are decimal text, absent when unknown. */
interface OutcomeState {
  readonly tokenId: string;
  readonly label: string;
  readonly bestBid?: string | undefined;
  readonly bestAsk?: string | undefined;
  readonly last?: string | undefined;
}

export interface MarketState {
  readonly id: string;
  readonly conditionId: string;
  readonly slug: string;
  readonly phase: MarketPhase;
  readonly tickSize: string;
  readonly negRisk: boolean;
  readonly hasTraders: boolean;
  /** Trading is suspended by hand; the phase is still `open`. */
  readonly halted: boolean;
  readonly trades: number;
  readonly volume: string;
  readonly winner?: number | undefined;
  readonly outcomes: readonly [OutcomeState, OutcomeState];
}

/** Markets with an id at the venues; an answer over HTTP lists the first 500. */
interface ExchangeState {
  readonly mode: 'simulated' | 'recorded';
  readonly seed: number;
  readonly paused: boolean;
  readonly steps: number;
  /** Simulated now, epoch seconds. */
  readonly second: number;
  readonly trades: { readonly total: number; readonly kept: number; readonly firstIndex: number };
  readonly marketCount: number;
  readonly markets: readonly MarketState[];
}

/** One fill of the engine, for test oracles: the taker's view, and the maker's of the same fill. */
export interface LedgerRow {
  readonly index: number;
  readonly timestamp: number;
  readonly conditionId: string;
  readonly tokenId: string;
  readonly outcomeIndex: number;
  readonly side: 'BUY' | 'SELL';
  readonly price: string;
  readonly size: string;
  readonly transactionHash: string;
  readonly proxyWallet: string;
  readonly maker: {
    readonly tokenId: string;
    readonly side: 'BUY' | 'SELL';
    readonly price: string;
    readonly proxyWallet: string;
  };
}

/** `firstIndex` is the oldest row still kept: a `since` below it has lost rows. */
interface LedgerPage {
  readonly firstIndex: number;
  readonly nextIndex: number;
  readonly trades: readonly LedgerRow[];
}

export interface PriceRequest {
  readonly tokenId: string;
  /** Decimal text or number on the market's tick grid. */
  readonly price: string | number;
  /** How long random traders pause while a strong maker holds the level. Default 10,000. */
  readonly holdMs?: number | undefined;
}

interface ForcedPrice {
  readonly tokenId: string;
  readonly price: string;
  readonly fills: number;
  readonly nextIndex: number;
  readonly second: number;
  readonly holdUntilSecond: number;
}

export interface SteerRequest extends Omit<Steering, 'payout'> {
  readonly conditionId: string;
  /** The winning outcome, for an action that decides. Default: the outcome that its traders believe in. */
  readonly winner?: 0 | 1 | undefined;
  /** Instead of a winner, the payout of the first outcome: decimal text from 0 to 1. */
  readonly payout?: string | undefined;
}

/** The actions of tests and of the control routes, on one object. */
export interface ExchangeControl {
  state(): ExchangeState;
  /** Simulated now, epoch seconds. */
  second(): number;
  /** Fills from index `since` on, at most `limit` (default all). */
  ledger(since?: number, limit?: number): LedgerPage;
  /** @throws SimControlError for an unknown token, a price off the grid, or a market without trading */
  forcePrice(request: PriceRequest): ForcedPrice;
  /** Ends the hold of a forced price with the next second. @throws SimControlError for an unknown token */
  releasePrice(tokenId: string): void;
  /** Performs an action on one market. @throws SimControlError */
  steer(request: SteerRequest): void;
  /** Changes a fee, now or as an announced change. @throws SimControlError */
  changeFee(request: FeeRequest): void;
  /** The true changes of all results, as each venue shows them. */
  resolutions(): readonly MarketLedger[];
  pause(): void;
  resume(): void;
  /** Plays seconds by hand, paused or not. */
  step(steps: number): void;
  /** Advances the clock without trades. Phases that fall due change with the next step. */
  idle(seconds: number): void;
  addFault(request: FaultRequest): Fault;
  faults(): Fault[];
  clearFaults(id?: number): number;
  /** The latest requests to the three hosts, oldest first. */
  requests(): readonly RequestRecord[];
}

type EngineControl = Omit<ExchangeControl, 'addFault' | 'faults' | 'clearFaults' | 'requests'>;

const DEFAULT_HOLD_MS = 10_000;
const MAX_STEPS = 1_000_000;

/** The controls of a running engine. */
export function engineControl(world: World, clock: LiveClock): EngineControl {
  return {
    state: () => {
      clock.catchUp();
      return stateOf(world, clock);
    },
    second: () => {
      clock.catchUp();
      return world.second;
    },
    ledger: (since = 0, limit = Number.POSITIVE_INFINITY) => {
      clock.catchUp();
      const { firstIndex, nextIndex } = world.tape;
      return { firstIndex, nextIndex, trades: world.tape.from(since, limit).map((trade) => ledgerRow(world, trade)) };
    },
    forcePrice: (request) => {
      clock.catchUp();
      return force(world, request);
    },
    releasePrice: (tokenId) => {
      clock.catchUp();
      const { pin } = marketOf(world, tokenId);
      if (pin !== undefined) pin.untilSecond = world.second;
    },
    steer: (request) => {
      clock.catchUp();
      steer(world, request);
    },
    changeFee: (request) => {
      clock.catchUp();
      const { conditionId } = request;
      const market = world.markets.find(({ spec }) => spec.conditionId === conditionId);
      if (conditionId !== undefined && market === undefined) {
        throw new SimControlError(404, 'market_not_found', `no market ${conditionId}`);
      }
      world.fees.change(request, market, world.second);
    },
    resolutions: () => {
      clock.catchUp();
      return resolutionLedger(world);
    },
    pause: () => clock.pause(),
    resume: () => clock.resume(),
    step: (steps) => {
      if (!Number.isInteger(steps) || steps < 1 || steps > MAX_STEPS) {
        throw new SimControlError(400, 'invalid_steps', `steps must be a whole number from 1 to ${MAX_STEPS}`);
      }
      for (let at = 0; at < steps; at += 1) world.step();
    },
    idle: (seconds) => {
      if (!Number.isInteger(seconds) || seconds < 1) {
        throw new SimControlError(400, 'invalid_seconds', 'seconds must be a positive whole number');
      }
      world.skipTo(world.second + seconds);
    },
  };
}

/** The full text of the tape: equal for equal seed, start and number of steps. */
function ledgerRow(world: World, trade: Trade): LedgerRow {
  const market = world.markets[trade.marketNo];
  if (market === undefined) throw new RangeError(`no market ${trade.marketNo}`);
  const { seed } = world.options;
  const priceOf = (intent: Intent) =>
    formatScaled(market.yesTicks(trade.ticks, intent.outcomeIndex), market.spec.ticksPerUnit);
  return {
    index: trade.index,
    timestamp: trade.second,
    conditionId: market.spec.conditionId,
    tokenId: market.spec.tokenIds[trade.takerIntent.outcomeIndex],
    outcomeIndex: trade.takerIntent.outcomeIndex,
    side: trade.takerIntent.side,
    price: priceOf(trade.takerIntent),
    size: formatScaled(trade.size, UNITS),
    transactionHash: transactionHashOf(seed, trade.orderNo),
    proxyWallet: walletOf(seed, trade.taker).address,
    maker: {
      tokenId: market.spec.tokenIds[trade.makerIntent.outcomeIndex],
      side: trade.makerIntent.side,
      price: priceOf(trade.makerIntent),
      proxyWallet: walletOf(seed, trade.maker).address,
    },
  };
}

function stateOf(world: World, clock: LiveClock): ExchangeState {
  const { tape, options } = world;
  const visible = world.markets.filter((market) => market.isListed);
  return {
    mode: 'simulated',
    seed: options.seed,
    paused: clock.isPaused,
    steps: world.steps,
    second: world.second,
    trades: { total: tape.nextIndex, kept: tape.length, firstIndex: tape.firstIndex },
    marketCount: visible.length,
    markets: visible.map((market) => marketState(market, world)),
  };
}

function marketState(market: Market, world: World): MarketState {
  const shown = visibleMarket(market, world);
  const { spec } = market;
  const outcome = (index: 0 | 1): OutcomeState => {
    const { bid, ask } = tokenQuote(shown, index);
    const text = (ticks: number | undefined) =>
      ticks === undefined ? undefined : formatScaled(ticks, spec.ticksPerUnit);
    const last = text(market.lastByToken[index]?.ticks);
    return { tokenId: spec.tokenIds[index], label: spec.outcomes[index], bestBid: text(bid), bestAsk: text(ask), last };
  };
  return {
    id: spec.id,
    conditionId: spec.conditionId,
    slug: spec.slug,
    phase: market.phase,
    tickSize: formatScaled(1, spec.ticksPerUnit),
    negRisk: market.event.negRiskId !== undefined,
    hasTraders: spec.hasTraders,
    halted: market.isHalted,
    trades: market.tradeCount,
    volume: formatScaled(market.volumeMicroUsd, UNITS),
    winner: market.phase === 'resolved' ? market.winner : undefined,
    outcomes: [outcome(0), outcome(1)],
  };
}

function steer(world: World, { conditionId, payout, ...steering }: SteerRequest): void {
  const { action, winner, rules, lateSeconds } = steering;
  const market = world.markets.find(({ spec }) => spec.conditionId === conditionId);
  if (market === undefined) throw new SimControlError(404, 'market_not_found', `no market ${conditionId}`);
  const refuse = (code: string, message: string) => new SimControlError(400, code, message);
  if (!MARKET_ACTIONS.includes(action)) {
    throw refuse('invalid_action', `action must be one of ${MARKET_ACTIONS.join(' ')}`);
  }
  if (winner !== undefined && winner !== 0 && winner !== 1) throw refuse('invalid_winner', 'winner must be 0 or 1');
  const micros = payout === undefined ? undefined : parseScaled(String(payout), UNITS);
  if (payout !== undefined && (micros === undefined || micros < 0 || micros > UNITS)) {
    throw refuse('invalid_payout', 'payout must be a decimal text from 0 to 1 with at most six places');
  }
  if (rules !== undefined && typeof rules !== 'string') throw refuse('invalid_rules', 'rules must be a string');
  if (lateSeconds !== undefined && !(Number.isInteger(lateSeconds) && lateSeconds > 0)) {
    throw refuse('invalid_seconds', 'lateSeconds must be a positive whole number');
  }
  steerMarket(world, market, { ...steering, payout: micros });
}

function marketOf(world: World, tokenId: string): Market {
  const market = world.markets.find(({ spec }) => spec.tokenIds.includes(tokenId));
  if (market === undefined) throw new SimControlError(404, 'token_not_found', `no token ${tokenId}`);
  return market;
}

function force(world: World, request: PriceRequest): ForcedPrice {
  const market = marketOf(world, request.tokenId);
  if (!market.isTrading) throw new SimControlError(409, 'market_not_trading', `market is ${market.phase}, or halted`);
  if (!market.spec.hasTraders) throw new SimControlError(409, 'market_not_trading', 'market has no live traders');
  const { ticksPerUnit, tokenIds } = market.spec;
  const ticks = parseScaled(String(request.price), ticksPerUnit);
  if (ticks === undefined || ticks < 1 || ticks >= ticksPerUnit) {
    const tick = formatScaled(1, ticksPerUnit);
    throw new SimControlError(400, 'invalid_price', `price must be a multiple of ${tick} between 0 and 1`);
  }
  const holdMs = request.holdMs ?? DEFAULT_HOLD_MS;
  if (!Number.isFinite(holdMs) || holdMs < 0) throw new SimControlError(400, 'invalid_hold', 'holdMs must be >= 0');
  const holdSeconds = Math.ceil(holdMs / 1000);
  const fills = forcePrice(world, market, tokenIds[0] === request.tokenId ? 0 : 1, ticks, holdSeconds);
  return {
    tokenId: request.tokenId,
    price: formatScaled(ticks, ticksPerUnit),
    fills,
    nextIndex: world.tape.nextIndex,
    second: world.second,
    holdUntilSecond: world.second + holdSeconds,
  };
}
