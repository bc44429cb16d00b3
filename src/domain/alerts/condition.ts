import type { Executable, Order } from '../markets/executable.ts';
import type { OrderSide } from '../markets/market.ts';
import type { ResolutionState } from '../markets/resolution.ts';
import { compareDecimals, type Decimal } from '../values/decimal.ts';
import type { ChatFacts, Content, Data } from '../webhooks/chat-values.ts';

/*
 * A file of `conditions` defines a condition with everything that depends on it: its fields, its evaluation live and in a backtest,
 * its place in the index of rules, and its words. `conditions.ts` is the table of all.
 */

/** The fields of an alert that depend on its condition, in the order of the documents. */
export const CONDITION_FIELDS = [
  'price',
  'direction',
  'change',
  'unit',
  'windowSeconds',
  'notional',
  'times',
  'windows',
  'states',
  'side',
  'size',
  'sellTokenMint',
] as const;
type ConditionField = (typeof CONDITION_FIELDS)[number];

/** The fields that hold a threshold; an alert has at most one. `notional` is the order, and no threshold, of a condition on books. */
export const THRESHOLD_FIELDS = ['price', 'change', 'notional', 'times'] as const;
export type ThresholdField = (typeof THRESHOLD_FIELDS)[number];

/** The values of the fields; `Value` is the type of a decimal where they are used. */
interface ConditionValues<Value> {
  price?: Value | undefined;
  direction?: Direction | undefined;
  change?: Value | undefined;
  unit?: Unit | undefined;
  windowSeconds?: number | undefined;
  notional?: Value | undefined;
  times?: Value | undefined;
  windows?: number | undefined;
  states?: readonly ResolutionState[] | undefined;
  side?: OrderSide | undefined;
  size?: Value | undefined;
  sellTokenMint?: string | undefined;
}

/** How a page writes the subject of an alert, and values of it. */
interface Wording<Value> {
  /** The outcome or the market: `it`, or its name. */
  subject: string;
  /** The outcome that an order sells, of two orders. */
  other: string;
  /** The subject behind a preposition, after a space; empty where the text around it names the subject. */
  after(preposition: string): string;
  /** Something that the subject has: `its spread`, or `the spread of Yes`. */
  its(noun: string): string;
  price(value: Value | undefined): string;
  /** The difference of two prices. */
  difference(value: Value | undefined): string;
  /** An amount of money. */
  amount(value: Value | undefined): string;
  /** A size, a percentage or a count. */
  number(value: Value | number | undefined): string;
}

/** The fields given in a request, each valid by itself. */
export type GivenFields = Readonly<Record<string, unknown>>;
type AddFault = (field: ConditionField, message: string) => void;

/** A `price_alert` event whose message a chat receives. */
interface ChatAlert {
  /** The outcome or the token. */
  subject: string;
  /** The market. */
  name: string;
  data: Data;
  facts: ChatFacts;
}

/** The stored fields of a condition, except its threshold. */
export interface RuleShape {
  direction?: Direction | undefined;
  unit?: Unit | undefined;
  windowSeconds?: number | undefined;
  windows?: number | undefined;
  states?: readonly ResolutionState[] | undefined;
}

interface ConditionBase {
  /** Its name in a list of choices. */
  readonly label: string;
  readonly required: readonly ConditionField[];
  readonly optional?: readonly ConditionField[];
  /** The name of `price` when it is no target. */
  readonly priceLabel?: string;
  /** The choice of `direction`, the default first; an empty value omits the field. */
  readonly direction?: {
    readonly label: string;
    readonly options: readonly (readonly [value: Direction | '', text: string])[];
  };
  /** Adds the faults of fields that depend on each other. */
  faults?(given: GivenFields, addFault: AddFault): void;
  /** The field that holds the threshold; null for a condition without one. */
  threshold(shape: Pick<RuleShape, 'windows'>): ThresholdField | null;
  /** The name of the part of the index that contains a rule, `name` or `name:seconds`. */
  probe(shape: RuleShape): string;
  /** When it fires, in words that continue "when". */
  sentence<Value>(values: ConditionValues<Value>, words: Wording<Value>): string;
  chat(alert: ChatAlert): Content;
  /** A firing for a line on a terminal, from the data of its event; without it `<condition> <target price>: <price>`. */
  line?(data: Data): string;
}

/** One observation of an outcome. docs/alerts.md defines its order and its time. */
export interface Observed {
  /** The place in the order of the outcome. 0 for the quote in effect before the first stored observation. */
  n: bigint;
  /** The time of receipt, epoch milliseconds. */
  atMs: number;
  price: Decimal;
  bid: Decimal | null;
  ask: Decimal | null;
  /** The size of a trade; null for a quote. */
  size: Decimal | null;
}

/** The values that an evaluation compares with. */
export interface Terms {
  /** The target price, the spread, the change, the notional, or with `windows` the multiple of their mean. */
  threshold: Decimal;
  direction?: Direction | undefined;
  unit?: Unit | undefined;
  windowMs?: number | undefined;
  windows?: number | undefined;
}

/** The values of a firing, besides its price. */
export interface Measure {
  /** The price that a change started from. */
  fromPrice?: Decimal;
  /** The spread, or the notional of the trade or window. */
  value?: Decimal;
}

/** The evaluation of a rule over the observations of an outcome, in their order. */
export interface Evaluation {
  /** Takes an observation before it is measured. */
  enter?(observed: Observed): void;
  /** The measured values when the observation meets the condition. `before` is the price of the observation before it. */
  measure(observed: Observed, before: Decimal | undefined): Measure | undefined;
  /** Takes an observation after it was measured. A firing restarts a window: a move or a volume counts once. */
  leave?(observed: Observed, isFiring: boolean): void;
}

/** The extremes of new observations of an outcome. Numbers are approximate. */
export interface ProbeFacts {
  low: number;
  high: number;
  /** The price before them; null when none is known, or no threshold lies between. */
  before: number | null;
  leastSpread: number | null;
  greatestSpread: number | null;
  /** The largest notional of a new trade; null without one. */
  notional: number | null;
}

/** The extremes and the notional of a window that ends with the new observations. */
export interface WindowFacts {
  low: number;
  high: number;
  notional: number;
}

/** Thresholds are greater than 0. */
export interface ProbeRange {
  from: number;
  to: number;
}

/**
 * A part of the index of rules. New observations of an outcome give a range of thresholds that they may meet, so a batch reads the rules
 * that it may fire, and not the others. The range may name too many rules, never too few.
 */
export interface ProbePart {
  /** Only a trade may fire its rules. */
  readonly isOfTrades?: true;
  /** The side of a crossing, which needs the price before the new observations. */
  readonly crosses?: 'above' | 'below';
  /** The thresholds that the observations may meet; null for none. `window` is given for a probe with a window. */
  range(facts: ProbeFacts, window: WindowFacts | undefined): ProbeRange | null;
}

/** The observations that may fire a rule, or that the evaluation of others needs. Without `side` all of their kind. */
export interface NeededObservations {
  /** Prices are of quotes and trades, spreads of quotes, notionals of trades. */
  of: 'price' | 'spread' | 'notional';
  /** The side of the threshold on which they are. */
  side?: 'at_least' | 'at_most';
  /** Only observations whose neighbour is on the other side. */
  isCrossing?: true;
}

/** A condition on the observations of one outcome. */
export interface OutcomeCondition extends ConditionBase {
  readonly of: 'outcome';
  /** Whether the quote in effect at the start may meet it: it is a state and no event. */
  readonly isState: boolean;
  readonly probes: Readonly<Record<string, ProbePart>>;
  /** The time before an observation that its evaluation needs, in milliseconds, besides the one observation before that time. */
  lookbackMs?(terms: Pick<Terms, 'windowMs' | 'windows'>): number;
  needs(terms: Pick<Terms, 'direction'>): NeededObservations;
  evaluation(terms: Terms): Evaluation;
}

/** A condition on the state of one market. */
export interface MarketCondition extends ConditionBase {
  readonly of: 'market';
  /** Whether it needs a scope, because no outcome exists yet. */
  readonly needsScope: boolean;
  /**
   * Whether a change meets it. `former` is the status before; null for a new market. `reached` are the states of the resolution that the
   * market reached with the change, and `states` those of the rule.
   */
  isReported: (
    change: { status: string; former: string | null; reached: readonly ResolutionState[] },
    states?: readonly ResolutionState[],
  ) => boolean;
}

/** The order of a rule on books, and the threshold of its price. */
export interface BookTerms {
  threshold: Decimal;
  direction?: Direction | undefined;
  /** Of a condition with one order. */
  side?: OrderSide | undefined;
  /** What `amount` is. */
  by: Order['by'];
  amount: Decimal;
}

/** The values of a firing on books: `price` is with the fee, of the purchase when there are two orders. */
export interface BookMeasure {
  price: Decimal;
  /** The net of two orders per unit. */
  value?: Decimal;
}

/** A condition on orders that take from the books of named outcomes: docs/executable.md. */
export interface BookCondition extends ConditionBase {
  readonly of: 'book';
  /** The order on the book of each outcome; the first one is that of the alert. */
  orders(terms: BookTerms): readonly Order[];
  /** The measured values when the fills meet the condition. Each one is complete, and has a known fee. */
  measure(fills: readonly Executable[], terms: BookTerms): BookMeasure | undefined;
}

export type ConditionDefinition = OutcomeCondition | MarketCondition | BookCondition;

/** A threshold may be greater than any other double. */
export const ANY_THRESHOLD = Number.POSITIVE_INFINITY;
/** Widens a bound by more than the error of a double. */
export const wider = (value: number) => value + Math.abs(value) * 1e-9 + 1e-12;
export const narrower = (value: number) => value - Math.abs(value) * 1e-9 - 1e-12;

export const upTo = (value: number | null): ProbeRange | null =>
  value === null ? null : { from: 0, to: wider(value) };
export const from = (value: number | null): ProbeRange | null =>
  value === null ? null : { from: narrower(value), to: ANY_THRESHOLD };

export const isAtLeast = (value: Decimal, threshold: Decimal) => compareDecimals(value, threshold) >= 0;
export const isAtMost = (value: Decimal, threshold: Decimal) => compareDecimals(value, threshold) <= 0;

/** Lengths of windows in seconds. A rule is found by the shortest one that contains its own window. */
const WINDOW_CLASSES = [60, 300, 900, 3_600, 14_400, 86_400] as const;

/** The length of the window in the name of a probe. */
export function windowClass(windowSeconds = 0): number {
  return WINDOW_CLASSES.find((seconds) => seconds >= windowSeconds) ?? 86_400;
}

export const UNITS = ['absolute', 'percent'] as const;
export type Unit = (typeof UNITS)[number];

/** `at_most` and `at_least` of a spread; `up` and `down` of a change, which without one counts in both directions. */
export const DIRECTIONS = ['at_most', 'at_least', 'up', 'down'] as const;
export type Direction = (typeof DIRECTIONS)[number];

export const ALERT_STATUSES = ['active', 'paused', 'triggered', 'expired'] as const;
export type AlertStatus = (typeof ALERT_STATUSES)[number];

/** A trade print received later than this after its venue time fires no alert. */
export const STALE_OBSERVATION_MS = 600_000;

export const MAX_WINDOW_SECONDS = 86_400;
/** The longest time of all windows of a volume together. */
export const MAX_WINDOWS_SECONDS = 604_800;
export const MIN_COOLDOWN_SECONDS = 1;
/** Of an alert that repeats. */
export const DEFAULT_COOLDOWN_SECONDS = 3_600;
export const MAX_COOLDOWN_SECONDS = 2_592_000;

/** The markets of a rule. All given fields must fit. */
export interface Scope {
  market_id?: string | undefined;
  event_id?: string | undefined;
  venue?: string | undefined;
  category?: string | undefined;
  /** Every word is in the title of the market or of its event. */
  q?: string | undefined;
}
