import { UNKNOWN_FEE_REASONS } from '../markets/fee.ts';
import { MARKET_STATUSES, ORDER_SIDES } from '../markets/market.ts';
import {
  PAYOUT_REASONS,
  RESOLUTION_SOURCES,
  RESOLUTION_STATES,
  RESOLUTION_TRANSITIONS,
} from '../markets/resolution.ts';
import type { Fields } from './fields.ts';

/*
 * The objects of market data: answers of the API and messages of the streams have these fields. The SQL of the journal, the rows and
 * answers of markets, the data of messages and the documents of the API follow from them. Trades, candles and levels of books, of which an
 * answer holds thousands, are presented by literals: objects with computed names take three times as long. The types of the literals
 * follow from these fields too.
 */

const id = { kind: 'id' } as const;
const text = { kind: 'text' } as const;
const unknownText = { kind: 'text', optional: true } as const;
const amount = { kind: 'decimal' } as const;
const unknownAmount = { kind: 'decimal', optional: true } as const;
const unknownTime = { kind: 'time', optional: true } as const;
const count = { kind: 'count' } as const;
const status = { kind: 'word', words: MARKET_STATUSES } as const;

const OUTCOME = { outcome_id: id, label: text } as const satisfies Fields;

/** A market (specification section 2.3). */
export const MARKET = {
  market_id: { ...id, about: "The venue's own id." },
  venue: text,
  event_id: unknownText,
  event_title: { ...unknownText, about: 'The title of its event.' },
  title: text,
  sibling_label: {
    ...unknownText,
    about: 'Distinguishes the market from other markets of its event with the same title.',
  },
  description: text,
  category: { ...unknownText, about: "The venue's spelling." },
  tags: { kind: 'texts' },
  status,
  outcomes: { kind: 'list', of: OUTCOME, about: 'Alerts name an `outcome_id` in their field `tokenMint`.' },
  created_at: unknownTime,
  open_at: unknownTime,
  close_at: unknownTime,
  resolved_at: unknownTime,
  winning_outcome_id: unknownText,
  resolution_state: {
    kind: 'word',
    words: RESOLUTION_STATES,
    about: 'Where its result stands. Only `resolved`, `settled` and `voided` are results.',
  },
  resolution_criteria: unknownText,
  url: unknownText,
  volume: { ...unknownAmount, about: "Lifetime volume in the venue's unit." },
  volume_24h: unknownAmount,
  liquidity: unknownAmount,
  updated_at: { kind: 'time', about: 'When oddswire received this version.' },
} as const satisfies Fields;

const { description: _description, resolution_criteria: _criteria, ...withoutLongTexts } = MARKET;
/** A market in a message, which omits its long texts. */
export const MARKET_CHANGE = withoutLongTexts;

export const PAYOUT = {
  outcome_id: id,
  payout: { ...amount, about: 'Per unit of the outcome.' },
} as const satisfies Fields;

/** A row of the timeline of the result of a market. */
export const RESOLUTION = {
  market_id: id,
  transition: { kind: 'word', words: RESOLUTION_TRANSITIONS },
  state: { kind: 'word', words: RESOLUTION_STATES, about: 'The state of the market after it.' },
  round: { ...count, optional: true, about: 'The number of the proposal, from 1, if the venue counts them.' },
  at: { ...unknownTime, about: "The venue's time, if it sends one." },
  received_at: { kind: 'time', about: 'When oddswire learned it.' },
  payouts: {
    kind: 'list',
    of: PAYOUT,
    nullable: true,
    about: 'Null: not stated, see `reason`. Of a proposal: the proposed ones.',
  },
  reason: {
    kind: 'word',
    words: PAYOUT_REASONS,
    optional: true,
    about: 'Why `payouts` is null, or needs care.',
  },
  source: {
    kind: 'word',
    words: RESOLUTION_SOURCES,
    about:
      'With `route` the venue stated it as the present, with `history` as an earlier step, and with `feed` its feed announced it.',
  },
  proposer: unknownText,
  disputer: unknownText,
  transaction: unknownText,
  bond: unknownText,
  observed_value: { ...unknownText, about: 'The value that decided the market.' },
  strike: { ...unknownText, about: 'The bounds that the value was compared with.' },
  raw_state: { ...unknownText, about: "The venue's word, if oddswire does not know it." },
} as const satisfies Fields;

/** A venue's event, which groups markets. */
export const MARKET_EVENT = {
  event_id: { ...id, about: "The venue's own id." },
  venue: text,
  title: { ...unknownText, about: 'Absent while oddswire knows only the id.' },
  category: { ...unknownText, about: 'The most frequent category of its markets.' },
  tags: { kind: 'texts', about: 'The tags of its markets.' },
  status: {
    ...status,
    about: 'The first of open, halted, created, closed, resolved, settled that a market of it has.',
  },
  market_count: count,
  created_at: { ...unknownTime, about: 'When its first market was created.' },
  open_at: { ...unknownTime, about: 'When its first market opens.' },
  close_at: { ...unknownTime, about: 'When its last market closes.' },
  url: unknownText,
  volume: { ...unknownAmount, about: 'Sum of the known volumes of its markets.' },
  volume_24h: unknownAmount,
  updated_at: { kind: 'time', about: 'When the event or one of its markets last changed.' },
} as const satisfies Fields;

const QUOTE = {
  price: unknownAmount,
  probability: { kind: 'probability', optional: true },
  best_bid: unknownAmount,
  best_ask: unknownAmount,
} as const satisfies Fields;

/** The price of one outcome in a price snapshot of its market (specification section 2.4). */
export const OUTCOME_PRICE = { outcome_id: id, ...QUOTE } as const satisfies Fields;

/** The changed price of one outcome. */
export const PRICE = {
  market_id: id,
  outcome_id: id,
  as_of: { kind: 'time', about: "The venue's time of the price." },
  ...QUOTE,
} as const satisfies Fields;

/** A trade (specification section 2.7, plus `outcome_id`). */
export const TRADE = {
  trade_id: id,
  market_id: id,
  outcome_id: id,
  timestamp: { kind: 'time' },
  price: amount,
  size: amount,
  side: { kind: 'word', words: ['buy', 'sell'], optional: true, about: 'Side of the taker, if known.' },
  received_at: {
    ...unknownTime,
    about: 'When oddswire stored it: within this second. Absent for trades of an earlier release.',
  },
} as const satisfies Fields;

export const LEVEL = {
  price: amount,
  size: amount,
  count: { ...count, optional: true, about: 'Orders at this price, if the venue reports it.' },
} as const satisfies Fields;

/** An orderbook snapshot (specification section 2.6). */
export const BOOK = {
  market_id: id,
  outcome_id: id,
  as_of: { kind: 'time', about: 'Time of the book.' },
  bids: { kind: 'list', of: LEVEL, about: 'Best price first (falling).' },
  asks: { kind: 'list', of: LEVEL, about: 'Best price first (rising).' },
  best_bid: unknownAmount,
  best_ask: unknownAmount,
  spread: unknownAmount,
} as const satisfies Fields;

const derived = { kind: 'decimal', nullable: true } as const;

/** What an order that takes from a book costs or pays (docs/executable.md). */
export const EXECUTABLE = {
  market_id: id,
  outcome_id: id,
  side: { kind: 'word', words: ORDER_SIDES, about: 'A `buy` takes asks, a `sell` takes bids.' },
  size: { ...unknownAmount, about: 'Of the request. Absent for an order by notional.' },
  notional: { ...unknownAmount, about: 'Of the request. Absent for an order by size.' },
  filled_size: { ...amount, about: 'What the stored book has for the order.' },
  filled_notional: { ...amount, about: 'Price times size of the fills, without the fee.' },
  average_price: { ...derived, about: 'Null without a fill.' },
  worst_price: { ...derived, about: 'The price of the last level. Null without a fill.' },
  levels: { ...count, about: 'Levels of the book that the order takes from.' },
  fee: {
    ...derived,
    about: 'In the currency of the venue. Null without a fill, and when it is not known: see `fee_reason`.',
  },
  fee_reason: {
    kind: 'word',
    words: UNKNOWN_FEE_REASONS,
    optional: true,
    about: 'Why the fee is not known.',
  },
  total: { ...derived, about: 'What a buyer pays or a seller gets, with the fee. Null without the fee.' },
  price_with_fee: { ...derived, about: 'Per unit of `total`. Null without the fee.' },
  slippage: {
    ...derived,
    about:
      'How much worse `average_price` is than the middle of the best prices. Null without a fill or with an empty side.',
  },
  complete: { kind: 'flag', about: 'Whether the stored book fills the whole order.' },
  missing_size: {
    ...unknownAmount,
    about: 'What the book of the venue lacks. Absent for a book that is stored in part.',
  },
  missing_notional: { ...unknownAmount, about: 'As `missing_size`, for an order by notional.' },
  reason: {
    kind: 'word',
    words: ['book_truncated', 'below_step'],
    optional: true,
    about:
      'Why the order is not complete. `book_truncated`: it takes all stored levels, and the venue may have more. `below_step`: the notional is less than the price of the smallest size.',
  },
  crossed: { kind: 'flag', about: 'Whether the best bid is at the best ask or above it.' },
  as_of: { kind: 'time', about: 'Time of the book.' },
} as const satisfies Fields;

export const CANDLE = {
  timestamp: { kind: 'bucket', about: 'Start of the bucket, epoch seconds.' },
  open: amount,
  high: amount,
  low: amount,
  close: amount,
  volume: { ...amount, about: 'Units traded.' },
  notional: { ...amount, about: 'Sum of price times size.' },
  trades: count,
  closed: { kind: 'flag', about: 'Whether the bucket has ended.' },
} as const satisfies Fields;
