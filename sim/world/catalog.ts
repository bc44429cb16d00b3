import { hashWord, RandomStream } from '../random.ts';
import {
  conditionIdOf,
  conditionIdV2Of,
  eventIdOf,
  gammaIdOf,
  negRiskIdOf,
  positionIdOf,
  tokenIdOf,
} from './identity.ts';

/** The constant facts of a market. Seconds are epoch seconds, prices millionths of a dollar. */
export interface MarketSpec {
  readonly no: number;
  readonly eventNo: number;
  readonly id: string;
  /** Polymarket's protocol, which decides the form of the condition and outcome ids. */
  readonly protocol: 'v1' | 'v2';
  readonly conditionId: string;
  readonly tokenIds: readonly [string, string];
  readonly outcomes: readonly [string, string];
  readonly question: string;
  readonly slug: string;
  readonly groupItemTitle: string | undefined;
  readonly groupItemThreshold: string;
  readonly ticksPerUnit: 100 | 1000;
  readonly createdSecond: number;
  readonly endSecond: number;
  /** Trading stops; undefined: never within this run. */
  readonly stopSecond: number | undefined;
  readonly resolveSecond: number | undefined;
  readonly isDisputed: boolean;
  readonly startFundamental: number;
  /** Largest move of the belief in a minute, in millionths. */
  readonly volatility: number;
  /** Activity: 1000 is the average market. */
  readonly activity: number;
  readonly hasTraders: boolean;
}

export interface EventSpec {
  readonly no: number;
  readonly id: string;
  readonly slug: string;
  readonly title: string;
  readonly negRiskId: string | undefined;
  readonly createdSecond: number;
  readonly endSecond: number;
  readonly marketNos: readonly number[];
}

interface CatalogPlan {
  readonly seed: number;
  /** The number of existing and planned markets, without the rolling series. */
  readonly markets: number;
  readonly liveMarkets: number;
  readonly historyStartSecond: number;
  /** Markets older than the history are also older than this. */
  readonly oldestSecond: number;
  readonly nowSecond: number;
}

export interface Catalog {
  readonly markets: MarketSpec[];
  readonly events: EventSpec[];
}

const DAY = 86_400;
const PLAN_DOMAIN = 21;
const CLOSE_DOMAIN = 22;
const HOUR = 3600;
/** Every fourth plain market is one of protocol V2. */
const V2_EVERY = 4;

/** The planned markets: from nine on, the first five form one negative-risk event, the others stand alone. */
export function planCatalog(plan: CatalogPlan): Catalog {
  const catalog: Catalog = { markets: [], events: [] };
  const grouped = plan.markets >= 9 ? NEG_RISK_ANSWERS.length : 0;
  if (grouped > 0) addNegRiskEvent(catalog, plan);
  for (let no = grouped; no < plan.markets; no += 1) addPlainMarket(catalog, plan, no);
  return catalog;
}

function addNegRiskEvent(catalog: Catalog, plan: CatalogPlan): void {
  const endSecond = Math.ceil(plan.nowSecond / DAY) * DAY + 30 * DAY;
  const createdSecond = plan.oldestSecond - 9 * DAY;
  const month = new Date(endSecond * 1000).toLocaleString('en-US', { month: 'long', timeZone: 'UTC' });
  const event: EventSpec = {
    no: 0,
    id: eventIdOf(0),
    slug: slugOf(`Central bank decision in ${month}`, 0),
    title: `Central bank decision in ${month}?`,
    negRiskId: negRiskIdOf(plan.seed, 0),
    createdSecond,
    endSecond,
    marketNos: NEG_RISK_ANSWERS.map((_answer, no) => no),
  };
  catalog.events.push(event);
  for (const [no, answer] of NEG_RISK_ANSWERS.entries()) {
    const question = `Will the central bank ${answer.phrase} after the ${month} meeting?`;
    catalog.markets.push({
      no,
      eventNo: 0,
      id: gammaIdOf(plan.seed, no),
      protocol: 'v1',
      conditionId: conditionIdOf(plan.seed, no),
      tokenIds: [tokenIdOf(plan.seed, no, 0), tokenIdOf(plan.seed, no, 1)],
      outcomes: ['Yes', 'No'],
      question,
      slug: slugOf(question, no),
      groupItemTitle: answer.title,
      groupItemThreshold: String(no),
      ticksPerUnit: 1000,
      createdSecond: createdSecond + no,
      endSecond,
      stopSecond: undefined,
      resolveSecond: undefined,
      isDisputed: false,
      startFundamental: answer.fundamental,
      volatility: 2500,
      activity: 1500,
      hasTraders: no < plan.liveMarkets,
    });
  }
}

function addPlainMarket(catalog: Catalog, plan: CatalogPlan, no: number): void {
  const random = new RandomStream(plan.seed, PLAN_DOMAIN, no);
  const eventNo = catalog.events.length;
  const { question, outcomes } = plainQuestion(no, random, plan.nowSecond);
  const life = plainLife(plan, no, random);
  const slug = slugOf(question, no);
  const isV2 = no % V2_EVERY === V2_EVERY - 1;
  const protocol = isV2 ? 'v2' : 'v1';
  const conditionId = isV2 ? conditionIdV2Of(plan.seed, no) : conditionIdOf(plan.seed, no);
  const spec: MarketSpec = {
    no,
    eventNo,
    id: gammaIdOf(plan.seed, no),
    protocol,
    conditionId,
    tokenIds: isV2
      ? [positionIdOf(conditionId, 0), positionIdOf(conditionId, 1)]
      : [tokenIdOf(plan.seed, no, 0), tokenIdOf(plan.seed, no, 1)],
    outcomes,
    question,
    slug,
    groupItemTitle: undefined,
    groupItemThreshold: '0',
    ticksPerUnit: random.chance(250_000) ? 1000 : 100,
    startFundamental: random.between(80_000, 920_000),
    volatility: random.between(1500, 9000),
    activity: random.pick([150, 400, 1000, 1000, 1500, 3000]),
    hasTraders: no < plan.liveMarkets,
    // Written out: a spread is the largest cost in a catalog of 100,000.
    createdSecond: life.createdSecond,
    endSecond: life.endSecond,
    stopSecond: life.stopSecond,
    resolveSecond: life.resolveSecond,
    isDisputed: life.isDisputed,
  };
  catalog.markets.push(spec);
  catalog.events.push(singleEvent(eventNo, spec));
}

/** A market of the rolling series: opens at `startSecond`, stops `lengthSeconds` later, resolves soon after. */
export function rollingMarket(
  catalog: Catalog,
  seed: number,
  startSecond: number,
  lengthSeconds: number,
): { market: MarketSpec; event: EventSpec } {
  const no = catalog.markets.length;
  const endSecond = startSecond + lengthSeconds;
  const label = `${isoLabel(startSecond)}-${isoLabel(endSecond).slice(-5)} UTC`;
  const slug = `btc-updown-${Math.round(lengthSeconds / 60)}m-${startSecond}`;
  const market: MarketSpec = {
    no,
    id: gammaIdOf(seed, no),
    protocol: 'v1',
    conditionId: conditionIdOf(seed, no),
    tokenIds: [tokenIdOf(seed, no, 0), tokenIdOf(seed, no, 1)],
    eventNo: catalog.events.length,
    outcomes: ['Up', 'Down'],
    question: `Bitcoin Up or Down - ${label}`,
    slug,
    groupItemTitle: undefined,
    groupItemThreshold: '0',
    ticksPerUnit: 100,
    createdSecond: startSecond,
    endSecond,
    stopSecond: endSecond,
    resolveSecond: endSecond + 20 + (hashWord(seed, PLAN_DOMAIN, no) % 40),
    isDisputed: false,
    startFundamental: 500_000,
    volatility: 40_000,
    activity: 2000,
    hasTraders: true,
  };
  const event = singleEvent(catalog.events.length, market);
  catalog.markets.push(market);
  catalog.events.push(event);
  return { market, event };
}

type Life = Pick<MarketSpec, 'createdSecond' | 'endSecond' | 'stopSecond' | 'resolveSecond' | 'isDisputed'>;

/** Of every twelve plain markets one ends in the history, two soon after it, one starts in it and one after it. */
function plainLife(plan: CatalogPlan, no: number, random: RandomStream): Life {
  const { historyStartSecond, oldestSecond, nowSecond } = plan;
  const historySeconds = Math.max(1, nowSecond - historyStartSecond);
  const old = oldestSecond - random.between(1, 60) * DAY - random.below(DAY);
  const days = random.between(2, 300);
  const stopAt = (stopSecond: number, createdSecond: number): Life => {
    const isDisputed = no % 12 === 11;
    const resolveSecond = stopSecond + random.between(30, 120) + (isDisputed ? 120 : 0);
    return { createdSecond, endSecond: stopSecond, stopSecond, resolveSecond, isDisputed };
  };
  const stays = (createdSecond: number, endSecond = nowSecond + days * DAY): Life => {
    return { createdSecond, endSecond, stopSecond: undefined, resolveSecond: undefined, isDisputed: false };
  };
  if (no >= plan.liveMarkets) return stays(old, nowSecond + secondsToClose(hashWord(plan.seed, CLOSE_DOMAIN, no)));
  switch (no % 12) {
    case 6:
      return stopAt(historyStartSecond + Math.floor((historySeconds * random.between(30, 80)) / 100), old);
    case 9:
      return stays(historyStartSecond + Math.floor((historySeconds * random.between(20, 90)) / 100));
    case 10:
      return stays(nowSecond + random.between(45, 300));
    case 11:
      return stopAt(nowSecond + random.between(90, 600), old);
    case 1:
      return stopAt(nowSecond + random.between(900, 7200), old);
    default:
      return stays(old);
  }
}

/** The ends of quiet markets as on a real venue, `[days from, days to]` for every tenth of them: most within two weeks, a few within a year. */
const CLOSES_IN_DAYS = [
  [0.25, 1],
  [0.25, 1],
  [1, 3],
  [1, 3],
  [3, 7],
  [3, 7],
  [7, 14],
  [14, 45],
  [45, 120],
  [120, 365],
] as const;

/** On full hours, where venues close many markets at once. */
function secondsToClose(word: number): number {
  const [from, to] = CLOSES_IN_DAYS[word % 10] ?? [1, 365];
  const share = Math.floor(word / 10) / (2 ** 32 / 10);
  return Math.round(((from + share * (to - from)) * DAY) / HOUR) * HOUR;
}

function singleEvent(no: number, market: MarketSpec): EventSpec {
  return {
    no,
    id: eventIdOf(no),
    slug: market.slug,
    title: market.question,
    negRiskId: undefined,
    createdSecond: market.createdSecond,
    endSecond: market.endSecond,
    marketNos: [market.no],
  };
}

function isoLabel(second: number): string {
  return new Date(second * 1000).toISOString().slice(0, 16).replace('T', ' ');
}

/** The answers of the one negative-risk event; the beliefs sum to exactly one. */
const NEG_RISK_ANSWERS = [
  { title: '50+ bps decrease', phrase: 'decrease interest rates by 50+ bps', fundamental: 31_000 },
  { title: '25 bps decrease', phrase: 'decrease interest rates by 25 bps', fundamental: 236_000 },
  { title: 'No change', phrase: 'leave interest rates unchanged', fundamental: 612_000 },
  { title: '25 bps increase', phrase: 'increase interest rates by 25 bps', fundamental: 94_000 },
  { title: '50+ bps increase', phrase: 'increase interest rates by 50+ bps', fundamental: 27_000 },
] as const;

const SUBJECTS = [
  'a crewed lunar landing',
  'a national rail strike',
  'a new world marathon record',
  'a category 5 Atlantic hurricane',
  'a ceasefire agreement',
  'a snap general election',
  'the spot silver price above $60',
  'a top-ten box office sequel',
  'a magnitude 8 earthquake',
  'a stablecoin law',
  'a record monthly temperature',
  'a public listing of a rocket company',
  'a tariff reduction deal',
  'a new central bank governor',
  'a merger of two airlines',
  'a 5th major for the title holder',
];
const FRAMES = ['Will there be {s} by {d}?', 'Will {s} be confirmed by {d}?', 'Will we see {s} before {d}?'];
const TEAMS = ['Northport', 'Riverton', 'Stonebridge', 'Ashford', 'Lakemont', 'Westhaven', 'Oakfield', 'Kingsport'];

const DAY_NAME = new Intl.DateTimeFormat('en-US', { month: 'long', day: 'numeric', year: 'numeric', timeZone: 'UTC' });

/** A generated question; about one in six has two named sides instead of yes and no. */
function plainQuestion(
  no: number,
  random: RandomStream,
  nowSecond: number,
): { question: string; outcomes: readonly [string, string] } {
  if (random.chance(160_000)) {
    const home = random.below(TEAMS.length);
    const away = (home + 1 + random.below(TEAMS.length - 1)) % TEAMS.length;
    const sides: readonly [string, string] = [TEAMS[home] ?? 'Home', TEAMS[away] ?? 'Away'];
    return { question: `${sides[0]} vs. ${sides[1]} (round ${no})`, outcomes: sides };
  }
  const day = DAY_NAME.format((nowSecond + random.between(20, 300) * 86_400) * 1000);
  const question = random.pick(FRAMES).replace('{s}', random.pick(SUBJECTS)).replace('{d}', day);
  return { question, outcomes: ['Yes', 'No'] };
}

/** Lower-case words joined by dashes, made unique by the market's number as the venue does. */
function slugOf(text: string, no: number): string {
  const words = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  return `${words}-${no}`;
}
