import { hashHex } from '../random.ts';
import { shownDoubleTicks } from '../wire/prices.ts';
import { type Market, UNITS } from '../world/market.ts';
import { rulesOf } from '../world/resolution.ts';
import type { World } from '../world/world.ts';

/** JSON values of the venue; a key with the value `undefined` is not sent. */
export type Wire = Record<string, unknown>;

/** A contract of the simulated venue: binary for a plain market; for a negative-risk event, one contract with an answer per market. */
export interface Contract {
  readonly id: string;
  readonly slug: string;
  readonly createdMs: number;
  /** Its markets: one, or one per answer. */
  readonly markets: readonly Market[];
  readonly isMultiple: boolean;
}

/** By id. */
export type Contracts = ReadonlyMap<string, Contract>;

const DOMAIN = { contract: 71, answer: 72, bet: 73, user: 74 };
/** The venue's "never": a day in the year 9999. */
const NEVER_MS = 253_399_726_740_000;
const SITE = 'https://manifold.markets';

/** A poll, which has no tradable outcomes; the listing always contains it. */
export const POLL_ID = 'pollOfNobody';

function contractIdOf(seed: number, isMultiple: boolean, no: number): string {
  return hashHex(2, seed, DOMAIN.contract, isMultiple ? 1 : 0, no).slice(0, 12);
}

export function answerIdOf(seed: number, marketNo: number): string {
  return hashHex(2, seed, DOMAIN.answer, marketNo).slice(0, 10);
}

const ROLES = ['taker', 'maker', 'redemption', 'arbitrage'] as const;

export function betIdOf(seed: number, index: number, role: (typeof ROLES)[number]): string {
  return hashHex(2, seed, DOMAIN.bet, index, ROLES.indexOf(role)).slice(0, 14);
}

export function userIdOf(seed: number, walletNo: number): string {
  return hashHex(4, seed, DOMAIN.user, walletNo).slice(0, 28);
}

/** The contract and the answer (if any) of a market of the engine. */
export function placeOf(market: Market, seed: number): { contractId: string; answerId: string | undefined } {
  if (market.event.negRiskId === undefined) {
    return { contractId: contractIdOf(seed, false, market.spec.no), answerId: undefined };
  }
  return { contractId: contractIdOf(seed, true, market.event.no), answerId: answerIdOf(seed, market.spec.no) };
}

/** All visible contracts. */
export function contractsOf(world: World): Contract[] {
  const { seed } = world.options;
  const groups = new Set<number>();
  const contracts: Contract[] = [];
  for (const market of world.markets) {
    if (!market.isListed) continue;
    const { no, createdSecond } = market.spec;
    if (market.event.negRiskId === undefined) {
      const createdMs = createdSecond * 1000 + (no % 1000);
      const { slug } = market.spec;
      contracts.push({ id: contractIdOf(seed, false, no), slug, createdMs, markets: [market], isMultiple: false });
    } else if (!groups.has(market.event.no)) {
      groups.add(market.event.no);
      contracts.push({
        id: contractIdOf(seed, true, market.event.no),
        slug: market.event.slug,
        createdMs: market.event.createdSecond * 1000,
        markets: world.siblingsOf(market).filter((sibling) => sibling.isListed),
        isMultiple: true,
      });
    }
  }
  return contracts;
}

/** Milliseconds of the last change; markets that changed in the same second differ by their numbers. */
export function updatedMs(contract: Contract): number {
  return Math.max(...contract.markets.map((market) => market.changedAtMs + (market.spec.no % 1000)));
}

/** The probability of a market's first outcome: the middle, else the last trade, else the makers' estimate. */
export function probabilityOf(market: Market): number {
  if (market.phase === 'resolved' && market.payout !== undefined) return market.payout / UNITS;
  const double = shownDoubleTicks(market);
  return double === undefined ? market.fundamental / UNITS : double / (2 * market.spec.ticksPerUnit);
}

/** A `LiteMarket`. */
export function liteMarket(contract: Contract, second: number): Wire {
  const { markets, isMultiple } = contract;
  const [first] = markets;
  if (first === undefined) return {};
  const { spec, event } = first;
  const isResolved = markets.every((market) => market.phase === 'resolved');
  const volume = markets.reduce((sum, market) => sum + market.volumeMicroUsd, 0);
  const day = markets.reduce((sum, market) => sum + market.dayVolume(second).microUsd, 0);
  return {
    id: contract.id,
    creatorId: 'simulatedCreator',
    creatorUsername: 'simulator',
    creatorName: 'Simulator',
    createdTime: contract.createdMs,
    closeTime: closeMs(contract),
    question: isMultiple ? event.title : spec.question,
    slug: contract.slug,
    url: `${SITE}/simulator/${contract.slug}`,
    pool: isMultiple ? undefined : { YES: 200, NO: 49.999999999999986 },
    probability: isMultiple ? undefined : probabilityOf(first),
    p: isMultiple ? undefined : 0.5000000000000001,
    totalLiquidity: 100 * markets.length,
    outcomeType: isMultiple ? 'MULTIPLE_CHOICE' : 'BINARY',
    mechanism: isMultiple ? 'cpmm-multi-1' : 'cpmm-1',
    volume: volume / UNITS,
    volume24Hours: day / UNITS,
    isResolved,
    ...(isResolved && resolutionOf(contract)),
    uniqueBettorCount: 12,
    lastUpdatedTime: updatedMs(contract),
    token: 'MANA',
  };
}

/** The close of a single answer leaves its contract open. */
function closeMs({ markets: [first], isMultiple }: Contract): number | undefined {
  if (first === undefined) return undefined;
  const stopSecond = isMultiple ? undefined : first.stopSecond;
  if (stopSecond !== undefined) return stopSecond * 1000;
  return first.spec.no % 7 === 0 ? NEVER_MS : first.spec.endSecond * 1000;
}

/** A `FullMarket`. */
export function fullMarket(contract: Contract, seed: number, second: number): Wire {
  const [first] = contract.markets;
  const description = first === undefined ? '' : rulesOf(first, `Resolves by the simulator: ${first.spec.question}`);
  const answers = contract.markets.map((market, index) => ({
    id: answerIdOf(seed, market.spec.no),
    contractId: contract.id,
    index,
    text: market.spec.groupItemTitle ?? market.spec.question,
    createdTime: contract.createdMs,
    probability: probabilityOf(market),
    pool: { YES: 100, NO: 100 },
    ...(market.phase === 'resolved' && answerResolution(market)),
  }));
  return {
    ...liteMarket(contract, second),
    ...(contract.isMultiple && { answers, shouldAnswersSumToOne: true, addAnswersMode: 'DISABLED' }),
    description: { type: 'doc', content: [{ type: 'paragraph', content: [{ type: 'text', text: description }] }] },
    textDescription: description,
    groupSlugs: ['simulation'],
  };
}

/** A poll in the listing: votes without prices. */
export function pollMarket(createdMs: number): Wire {
  return {
    id: POLL_ID,
    createdTime: createdMs,
    lastUpdatedTime: createdMs,
    question: 'Which of these do you like best?',
    slug: 'which-of-these-do-you-like-best',
    outcomeType: 'POLL',
    mechanism: 'none',
    volume: 0,
    volume24Hours: 0,
    isResolved: false,
    token: 'MANA',
  };
}

function answerResolution({ split, winner }: Market): Wire {
  if (split !== undefined) return { resolution: 'MKT', resolutionProbability: split / UNITS };
  if (winner === undefined) return { resolution: 'CANCEL' };
  return { resolution: winner === 0 ? 'YES' : 'NO' };
}

/** Whether a binary contract ends as `CANCEL`. A planned dispute ends so, because the venue has no disputes. */
export function isCancelled({ isVoid, isManual, spec }: Pick<Market, 'isVoid' | 'isManual' | 'spec'>): boolean {
  return isVoid || (spec.isDisputed && !isManual);
}

function resolutionOf({ markets, isMultiple }: Contract): Wire {
  const [first] = markets;
  const resolutionTime = Math.max(...markets.map((market) => (market.closedSecond ?? 0) * 1000));
  if (isMultiple || first === undefined) return { resolution: 'MKT', resolutionTime };
  if (isCancelled(first)) return { resolution: 'CANCEL', resolutionTime };
  const resolutionProbability = first.split === undefined ? 1 : first.split / UNITS;
  return { ...answerResolution(first), resolutionTime, resolutionProbability };
}
